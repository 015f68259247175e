"""The report as JUnit XML, for continuous integration."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from conformance.client.frames import show
from conformance.report.known_failures import Verdict
from conformance.requirements import group_titles, requirements
from conformance.runner import Report


def as_junit(report: Report, verdict: Verdict) -> str:
    """The whole JUnit report: one `testcase` for each case and revision."""
    rows = requirements()
    suites = ElementTree.Element("testsuites", name="mcp-conform")
    for group, title in group_titles().items():
        trials = [trial for trial in report.trials if trial.case[0] == group]
        if not trials:
            continue
        tally = Counter(trial.status for trial in trials)
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=f"{group} {title}",
            tests=str(len(trials)),
            failures=str(tally["failed"]),
            skipped=str(tally["not applicable"]),
            errors="0",
            time=f"{sum(trial.seconds for trial in trials):.3f}",
        )
        for trial in trials:
            row = rows[trial.case]
            node = ElementTree.SubElement(
                suite,
                "testcase",
                classname=f"{group}.{trial.case}",
                name=f"{trial.case} {trial.revision}",
                time=f"{trial.seconds:.3f}",
            )
            if trial.status == "not applicable":
                ElementTree.SubElement(node, "skipped", message=_xml(trial.reason))
            elif trial.status == "failed":
                known = verdict.reason(trial)
                tag = "failure" if known is None else "skipped"
                word = _xml(trial.reason if known is None else f"known: {known}")
                failure = ElementTree.SubElement(node, tag, message=word)
                if known is None:
                    failure.set("type", row.level)
                arrows = (("-> " if e.sent else "<- ") + show(e.data, 500) for e in trial.evidence)
                failure.text = _xml("\n".join([f"{row.text} [{row.source}]", *arrows]))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)


def _xml(text: str) -> str:
    """Make text valid in XML: no control characters, no lone surrogates."""
    lines = (show(part.encode("utf-8", "backslashreplace"), 4000) for part in text.split("\n"))
    return "\n".join(lines)
