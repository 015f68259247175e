"""Runs the checks in every revision that the server supports, and collects the results.

Revisions run in parallel threads, each with its own connections. Within a revision, cases run one
after the other. Scans are evaluated last, because they inspect the frames of all cases.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from conformance import revisions
from conformance.check import CASES, EARLY, SCANS, Failed, NotApplicable, Status, Trial, load_suites
from conformance.client.stdio import end_all_children
from conformance.client.wire import Endpoint, NoServer, WireError
from conformance.context import Context, Facts, Settings, discover
from conformance.requirements import Requirement, requirements

Listener = Callable[[Trial], None]


@dataclass
class Report:
    """The results of a run."""

    server: str
    transport: str
    trials: list[Trial] = field(default_factory=list)
    facts: dict[str, Facts] = field(default_factory=dict)
    seconds: float = 0.0

    def of(self, case: str) -> list[Trial]:
        return [trial for trial in self.trials if trial.case == case]

    def cases(self) -> list[str]:
        """The ids tried, in the order of `requirements.toml`."""
        tried = {trial.case for trial in self.trials}
        return [name for name in requirements() if name in tried]

    def status(self, case: str) -> Status:
        """A case fails if it fails in any revision; it passes if it passes in one."""
        seen = {trial.status for trial in self.of(case)}
        if "failed" in seen:
            return "failed"
        return "passed" if "passed" in seen else "not applicable"

    def count(self, status: Status) -> int:
        return sum(self.status(case) == status for case in self.cases())

    def failed(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.status == "failed"]

    def failed_by_case(self) -> dict[str, list[Trial]]:
        """The failed trials of each failed case, in the order of `requirements.toml`."""
        failed = self.failed()
        return {
            case: [trial for trial in failed if trial.case == case]
            for case in self.cases()
            if self.status(case) == "failed"
        }

    def not_applicable_by_reason(self) -> dict[str, list[str]]:
        """The cases that did not apply, grouped by their reasons."""
        reasons: dict[str, list[str]] = {}
        for case in self.cases():
            if self.status(case) == "not applicable":
                given = sorted({trial.reason for trial in self.of(case) if trial.reason})
                reasons.setdefault("; ".join(given), []).append(case)
        return reasons

    @property
    def server_info(self) -> str:
        """The name and version that the server reports."""
        for facts in self.facts.values():
            info = facts.opening.get("serverInfo")
            if not isinstance(info, dict):
                meta = facts.opening.get("_meta")
                info = meta.get(revisions.SERVER_INFO) if isinstance(meta, dict) else None
            if isinstance(info, dict) and isinstance(info.get("name"), str):
                return f"{info['name']} {info.get('version', '')}".strip()
        return "unnamed server"


class CannotRun(Exception):
    """The tests could not run."""


def select(only: Iterable[str], levels: Sequence[str] = ()) -> list[Requirement]:
    """The requirements named by ids (`F02a`), id stems (`F02`) or groups (`F`)."""
    wanted = [token.strip() for token in only if token.strip()]
    rows = list(requirements().values())
    for token in wanted:
        if not any(_names(token, row.id) for row in rows):
            raise ValueError(f"unknown case {token!r}; see --list")
    return [
        row
        for row in rows
        if (not wanted or any(_names(token, row.id) for token in wanted))
        and (not levels or row.level in levels)
    ]


def _names(token: str, case: str) -> bool:
    if not case.startswith(token):
        return False
    rest = case[len(token) :]
    return not rest or token.isalpha() or not rest[0].isdigit()


def run(
    endpoint: Endpoint,
    selected: Sequence[Requirement],
    *,
    wanted: Sequence[str] = revisions.ALL,
    settings: Settings | None = None,
    jobs: int = 2,
    listener: Listener | None = None,
) -> Report:
    """Test the selected requirements. Raises CannotRun if no requested revision is supported."""
    load_suites()
    settings = settings or Settings()
    began = time.monotonic()
    report = Report(endpoint.describe(), endpoint.transport)
    try:
        report.facts = _discover_all(endpoint, wanted, settings)
        spoken = frozenset(facts.revision for facts in report.facts.values() if facts.speaks)
        if not spoken:
            reasons = "; ".join(
                f"{facts.revision}: {facts.reason}" for facts in report.facts.values()
            )
            raise CannotRun(f"the server supports none of the requested revisions ({reasons})")
        settings = replace(settings, spoken=spoken | settings.spoken)
        _run_all(endpoint, selected, settings, jobs, listener, report)
    except NoServer as error:
        raise CannotRun(str(error)) from error
    finally:
        endpoint.close()
    report.seconds = time.monotonic() - began
    return report


def _run_all(
    endpoint: Endpoint,
    selected: Sequence[Requirement],
    settings: Settings,
    jobs: int,
    listener: Listener | None,
    report: Report,
) -> None:
    """Run all revisions in parallel; an interrupt stops them and is re-raised."""
    stopped = threading.Event()
    pool = ThreadPoolExecutor(max_workers=max(1, jobs))
    try:
        runs = [
            pool.submit(_run_revision, endpoint, facts, selected, settings, listener, stopped)
            for facts in reversed(report.facts.values())  # the newest revisions have the most cases
        ]
        for future in reversed(runs):
            report.trials.extend(future.result())
    except BaseException:
        stopped.set()
        endpoint.close()
        end_all_children()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _discover_all(
    endpoint: Endpoint, wanted: Sequence[str], settings: Settings
) -> dict[str, Facts]:
    """Try 2025-11-25 first: most servers support it, and it shows the start-up time."""
    facts: dict[str, Facts] = {}
    startup = settings.timeout
    for revision in sorted(wanted, key=lambda r: (r != revisions.D, r)):
        facts[revision] = discover(endpoint, revision, settings, startup_seconds=startup)
        startup = max(0.5, facts[revision].startup_seconds) if facts[revision].speaks else 0.5
    # Later revisions met a spare child that had already started, so the longest time is correct.
    longest = max((f.startup_seconds for f in facts.values() if f.speaks), default=0.5)
    for found in facts.values():
        found.startup_seconds = longest
    return {revision: facts[revision] for revision in revisions.ALL if revision in facts}


def _run_revision(
    endpoint: Endpoint,
    facts: Facts,
    selected: Sequence[Requirement],
    settings: Settings,
    listener: Listener | None,
    stopped: threading.Event,
) -> list[Trial]:
    context = Context(endpoint, facts, settings)
    trials: list[Trial] = []
    rows = [
        row
        for row in sorted(selected, key=lambda row: row.id in SCANS)
        if facts.revision in row.revisions
        and _worth_trying(row, facts.revision, endpoint.transport, settings.spoken)
    ]
    try:
        for row in rows:
            if row.id in EARLY and facts.speaks and endpoint.transport in row.transports:
                EARLY[row.id](context)
        for row in rows:
            if stopped.is_set():
                break
            trial = _try(context, row)
            trials.append(trial)
            if listener is not None:
                listener(trial)
    finally:
        context.close()
    return trials


def _worth_trying(row: Requirement, revision: str, transport: str, spoken: frozenset[str]) -> bool:
    """Whether to try a case in this revision; `once` can limit it to one revision."""
    if row.once == "run":
        rivals = spoken & set(row.revisions)
    elif row.once == "era" or (row.once == "era over stdio" and transport == "stdio"):
        era = revisions.MODERN if revision in revisions.MODERN else revisions.LEGACY
        rivals = spoken & set(row.revisions) & set(era)
    else:
        return True
    return revision == max(rivals, default=revision)


def _try(context: Context, row: Requirement) -> Trial:
    """Try one case in one revision."""
    trial = Trial(row.id, context.revision, "not applicable")
    if not context.facts.speaks:
        trial.reason = f"the server does not support {context.revision}"
        return trial
    if context.endpoint.transport not in row.transports:
        trial.reason = f"a case for {' and '.join(row.transports)} only"
        return trial
    began = time.monotonic()
    context.begin()
    try:
        if row.id in SCANS:
            _judge(context, row.id)
        else:
            CASES[row.id](context)
        trial.status = "passed"
    except NotApplicable as error:
        trial.reason = str(error)
    except (Failed, WireError) as error:
        trial.status, trial.reason = "failed", str(error)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        # The response has a shape that the check did not expect. That is a failure of the server.
        trial.status, trial.reason = "failed", f"malformed response: {error!r}"
    finally:
        trial.seconds = time.monotonic() - began
        context.end(passed=trial.status == "passed")
        if trial.status == "failed":
            found = context.findings.get(row.id)
            trial.evidence = list(found.evidence if found is not None else context.evidence)
            trial.stderr = context.stderr
    return trial


def _judge(context: Context, name: str) -> None:
    """Raise the result of a scan over all frames."""
    from conformance.suites.scans import tour

    if not context.toured:
        context.toured = True
        tour(context)
    finding = context.findings[name]
    if finding.wrong:
        raise Failed(f"{finding.wrong} of {finding.looked} frames; the first: {finding.first}")
    if not finding.looked:
        raise NotApplicable("the server sent no frame that this rule applies to")
