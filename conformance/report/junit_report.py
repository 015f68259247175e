"""The report as JUnit XML, for continuous integration.

It agrees with the exit status: only an unexplained MUST is a `failure` (with `--strict` the exit
status also counts SHOULD, as the `failure` elements of type SHOULD do), trouble before a case could
begin is an `error`. Other failures are `skipped` with their reason.
"""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from conformance.check import Trial
from conformance.client.frames import show
from conformance.report.known_failures import Verdict
from conformance.report.run_options import RunOptions
from conformance.requirements import group_titles, requirements
from conformance.runner import Report


def as_junit(report: Report, verdict: Verdict, options: RunOptions) -> str:
    """The whole JUnit report: one `testcase` for each case and revision."""
    failing = ("MUST", "SHOULD") if "--strict" in options.words else ("MUST",)
    suites = ElementTree.Element("testsuites", name="mcp-conform")
    for group, title in group_titles().items():
        trials = [trial for trial in report.trials if trial.case[0] == group]
        if not trials:
            continue
        tags = [_tag(trial, verdict, failing) for trial in trials]
        tally = Counter(tags)
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=f"{group} {title}",
            tests=str(len(trials)),
            failures=str(tally["failure"]),
            skipped=str(tally["skipped"]),
            errors=str(tally["error"]),
            timestamp=options.date.rstrip("Z"),
            time=f"{sum(trial.seconds for trial in trials):.3f}",
        )
        for trial, tag in zip(trials, tags, strict=True):
            node = ElementTree.SubElement(
                suite,
                "testcase",
                classname=f"{group}.{trial.case}",
                name=f"{trial.case} {trial.revision}",
                time=f"{trial.seconds:.3f}",
            )
            if tag:
                _add(node, tag, trial, verdict, options)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)


def _tag(trial: Trial, verdict: Verdict, failing: tuple[str, ...]) -> str:
    """The element for a trial, or "" if it passed."""
    if trial.status == "passed":
        return ""
    if trial.status == "error":
        return "error"
    level = requirements()[trial.case].level_in(trial.revision)
    is_failure = trial.status == "failed" and verdict.reason(trial) is None and level in failing
    return "failure" if is_failure else "skipped"


def _add(
    node: ElementTree.Element, tag: str, trial: Trial, verdict: Verdict, options: RunOptions
) -> None:
    row = requirements()[trial.case]
    level = row.level_in(trial.revision)
    known = verdict.reason(trial)
    word = trial.reason
    if known is not None:
        word = f"known: {known}"
    elif trial.status in ("failed", "flaky") and tag == "skipped":
        word = f"{trial.status} ({level}): {trial.reason}"
    child = ElementTree.SubElement(node, tag, message=_xml(word))
    if tag != "skipped":
        child.set("type", level)
    if trial.status in ("failed", "error"):
        quotes = [f"{c.quote} <{c.link(trial.revision)}>" for c in row.clauses(trial.revision)]
        arrows = (("-> " if e.sent else "<- ") + show(e.data, 500) for e in trial.evidence)
        rerun = options.rerun(trial.case, trial.revision)
        child.text = _xml("\n".join([row.text, *quotes, f"run again: {rerun}", *arrows]))


def _xml(text: str) -> str:
    """Make text valid in XML: no control characters, no lone surrogates."""
    lines = (show(part.encode("utf-8", "backslashreplace"), 4000) for part in text.split("\n"))
    return "\n".join(lines)
