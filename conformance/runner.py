"""Runs the checks in every revision that the server supports, and collects the results.

Revisions run in parallel threads, each with its own connections. Within a revision, cases run one
after the other. Scans are evaluated last, because they inspect the frames of all cases.

A failure is repeated alone on new connections before it is reported. If the second trial passes,
the result is *flaky*. A case that cannot begin (no child, no handshake) ends as an *error*, which
is counted apart. A case that a rate limit refuses waits as long as the server says, slows the whole
run down and is tried again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from conformance import revisions
from conformance.check import (
    CASES,
    EARLY,
    SCANS,
    Failed,
    NotApplicable,
    RateLimited,
    SetupFailed,
    Status,
    Trial,
    load_suites,
)
from conformance.client.stdio import StdioEndpoint, end_all_children
from conformance.client.wire import Endpoint, NoServer, WireError
from conformance.context import Context, Facts, Settings
from conformance.discovery import discover_all
from conformance.requirements import Requirement, requirements

Listener = Callable[[Trial], None]
RATE_LIMIT_RETRIES = 4
PATIENCE = 3.0
"""A repeated case has this many times as long for each response."""


@dataclass
class Report:
    """The results of a run."""

    server: str
    transport: str
    trials: list[Trial] = field(default_factory=list)
    facts: dict[str, Facts] = field(default_factory=dict)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    """Remarks about the run, such as "one instance at a time"."""
    interrupted: bool = False
    starts: int = 0
    """How often the server was started (stdio)."""

    def of(self, case: str) -> list[Trial]:
        return [trial for trial in self.trials if trial.case == case]

    def cases(self) -> list[str]:
        """The ids tried, in the order of `requirements.toml`."""
        tried = {trial.case for trial in self.trials}
        return [name for name in requirements() if name in tried]

    def status(self, case: str) -> Status:
        """A case fails if it fails in any revision; it passes if it passes in one."""
        seen = {trial.status for trial in self.of(case)}
        order: tuple[Status, ...] = ("failed", "flaky", "error", "passed")
        return next((status for status in order if status in seen), "not applicable")

    def count(self, status: Status) -> int:
        return sum(self.status(case) == status for case in self.cases())

    def errors(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.status == "error"]

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

    def __init__(self, message: str, stderr: bytes = b"") -> None:
        super().__init__(message)
        self.stderr = stderr


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
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Test the selected requirements. Raises CannotRun if no requested revision is supported.

    An interrupt ends the run early; the report then holds the trials so far.
    """
    load_suites()
    settings = settings or Settings()
    began = time.monotonic()
    report = Report(endpoint.describe(), endpoint.transport)

    def remark(text: str) -> None:
        report.notes.append(text)
        say(text)

    try:
        report.facts = discover_all(endpoint, wanted, settings, remark)
        spoken = frozenset(facts.revision for facts in report.facts.values() if facts.speaks)
        if not spoken:
            raise CannotRun(_why_not(report.facts), _stderr_of(report.facts))
        settings = replace(settings, spoken=spoken | settings.spoken)
        jobs = 1 if endpoint.exclusive else jobs
        _run_all(endpoint, selected, settings, jobs, listener, report)
    except NoServer as error:
        raise CannotRun(str(error)) from error
    except KeyboardInterrupt:
        if not report.trials:
            raise
        report.interrupted = True
    finally:
        if isinstance(endpoint, StdioEndpoint):
            report.starts = endpoint.starts
        endpoint.close()
    report.seconds = time.monotonic() - began
    return report


def _why_not(facts: dict[str, Facts]) -> str:
    """One line that says why no revision can be tested."""
    reasons: dict[str, list[str]] = {}
    for found in facts.values():
        reasons.setdefault(found.reason, []).append(found.revision)
    told = "; ".join(f"{', '.join(dates)}: {reason}" for reason, dates in reasons.items())
    return f"the server supports none of the requested revisions ({told})"


def _stderr_of(facts: dict[str, Facts]) -> bytes:
    return next((found.stderr for found in reversed(facts.values()) if found.stderr), b"")


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
            pool.submit(
                _run_revision, endpoint, facts, selected, settings, listener, stopped, report.trials
            )
            for facts in reversed(report.facts.values())  # the newest revisions have the most cases
        ]
        for future in runs:
            future.result()
    except BaseException:
        stopped.set()
        endpoint.close()
        end_all_children()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_revision(
    endpoint: Endpoint,
    facts: Facts,
    selected: Sequence[Requirement],
    settings: Settings,
    listener: Listener | None,
    stopped: threading.Event,
    trials: list[Trial],
) -> None:
    """Try the cases in one revision; `trials` grows with each result."""
    context = Context(endpoint, facts, settings)
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
            trial = _try_fairly(context, row, stopped)
            if stopped.is_set():
                break  # the interrupt has closed the connections of this trial
            trials.append(trial)
            if listener is not None:
                listener(trial)
    finally:
        context.close()


def _try_fairly(context: Context, row: Requirement, stopped: threading.Event) -> Trial:
    """Try a case; repeat a failure alone, and a trial that a rate limit refused."""
    for _ in range(RATE_LIMIT_RETRIES):
        try:
            trial = _try(context, row)
            break
        except RateLimited as error:
            context.settings.pace.slow_down()
            stopped.wait(error.seconds)
            reason = str(error)
    else:
        return Trial(row.id, context.revision, "not applicable", reason=reason)
    if trial.status != "failed" or row.id in SCANS or row.id in EARLY:
        return trial
    if not context.settings.repeat or stopped.is_set():
        return trial
    context.forget_connections()
    context.patience = PATIENCE
    try:
        again = _try(context, row)
    except RateLimited:
        return trial
    finally:
        context.patience = 1.0
        context.forget_connections()
    if again.status == "passed":
        trial.status = "flaky"
        trial.reason = f"passed when it was repeated alone; before: {trial.reason}"
    return again if again.status == "failed" else trial


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
    except SetupFailed as error:
        trial.status, trial.reason = "error", str(error)
    except (Failed, WireError) as error:
        trial.status, trial.reason = "failed", str(error)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        # The response has a shape that the check did not expect. That is a failure of the server.
        trial.status, trial.reason = "failed", f"malformed response: {error!r}"
    finally:
        trial.seconds = time.monotonic() - began
        context.end(passed=trial.status == "passed")
        if trial.status in ("failed", "error") or context.settings.keep_evidence:
            found = context.findings.get(row.id)
            trial.evidence = list(found.evidence if found is not None else context.evidence)
            trial.stderr = context.stderr
    return trial


def _judge(context: Context, name: str) -> None:
    """Raise the result of a scan over all frames."""
    from conformance.suites.tour import tour

    if not context.toured:
        context.toured = True
        tour(context)
    finding = context.findings[name]
    if finding.wrong:
        raise Failed(f"{finding.wrong} of {finding.looked} frames; the first: {finding.first}")
    if not finding.looked:
        raise NotApplicable("the server sent no frame that this rule applies to")
