"""The badge: a small SVG with the result of a run."""

from __future__ import annotations

from conformance.report.known_failures import Verdict
from conformance.runner import Report

GREEN, AMBER, RED, GREY = "#2e7d32", "#b26a00", "#c62828", "#616161"
CHARACTER = 6.6
PADDING = 12.0


def as_svg(report: Report, verdict: Verdict) -> str:
    """A badge such as "MCP | 412 passed"; red if a MUST failed, amber if a SHOULD failed."""
    must, should = len(verdict.unexplained("MUST")), len(verdict.unexplained("SHOULD"))
    if report.interrupted or report.errors():
        text, color = "incomplete", GREY
    elif must:
        text, color = f"{must} MUST failed", RED
    elif should:
        text, color = f"{should} SHOULD failed", AMBER
    else:
        text, color = f"{report.count('passed')} passed", GREEN
    left, right = "MCP", text
    first = len(left) * CHARACTER + PADDING
    second = len(right) * CHARACTER + PADDING
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{first + second:.0f}" height="20" '
        f'role="img" aria-label="{left}: {right}"><title>{left}: {right}</title>'
        f'<rect width="{first:.0f}" height="20" fill="#424242"/>'
        f'<rect x="{first:.0f}" width="{second:.0f}" height="20" fill="{color}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{first / 2:.1f}" y="14">{left}</text>'
        f'<text x="{first + second / 2:.1f}" y="14">{right}</text></g></svg>\n'
    )
