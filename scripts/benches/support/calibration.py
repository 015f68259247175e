"""Calibration of scores: a table, and a plot as SVG without any library.

A score is calibrated if a share of `score` of the results with that score is right. The labels of
the conversations name one or two of several right turns, so the true share is higher there.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

#: (score, whether the result is right)
Point = tuple[float, bool]

BINS: Final = 10
SURE: Final = 0.7
_SIZE: Final = 360
_MARGIN: Final = 50
_COLOURS: Final = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#9a6700", "#57606a")


def table(points: Sequence[Point]) -> list[dict[str, float | int]]:
    """For each tenth of the scale: the results, their mean score, the share of right ones."""
    rows: list[dict[str, float | int]] = []
    for at in range(BINS):
        inside = [p for p in points if at <= p[0] * BINS < at + 1 or (at == BINS - 1 and p[0] == 1)]
        if inside:
            rows.append(
                {
                    "from": at / BINS,
                    "results": len(inside),
                    "mean_score": round(sum(score for score, _ in inside) / len(inside), 3),
                    "right": round(sum(right for _, right in inside) / len(inside), 3),
                }
            )
    return rows


def summary(points: Sequence[Point]) -> dict[str, float | int]:
    """The expected calibration error, and the share of right results from 0.7 on."""
    rows = table(points)
    count = max(1, len(points))
    error = sum(
        float(row["results"]) * abs(float(row["mean_score"]) - float(row["right"])) for row in rows
    )
    sure = [right for score, right in points if score >= SURE]
    return {
        "results": len(points),
        "calibration_error": round(error / count, 4),
        "scored_0.7_or_more": len(sure),
        "of_those_right": round(sum(sure) / max(1, len(sure)), 4),
    }


def plot(sets: Mapping[str, Sequence[Point]], path: Path) -> None:
    """Write a reliability diagram: the mean score (x) and the share of right results (y)."""

    def x(value: float) -> float:
        return _MARGIN + value * _SIZE

    def y(value: float) -> float:
        return _MARGIN + (1 - value) * _SIZE

    end = _SIZE + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{end + 180}" height="{end}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{end + 180}" height="{end}" fill="white"/>',
        f'<path d="M{x(0)} {y(0)}L{x(1)} {y(1)}" stroke="#999" stroke-dasharray="4 4"/>',
        f'<path d="M{x(0)} {y(1)}V{y(0)}H{x(1)}" stroke="black" fill="none"/>',
        f'<text x="{x(0.5)}" y="{end - 12}" text-anchor="middle">score</text>',
        f'<text x="14" y="{y(0.5)}" transform="rotate(-90 14 {y(0.5)})"'
        ' text-anchor="middle">share of right results</text>',
    ]
    for tenth in range(0, 11, 2):
        value = tenth / 10
        parts.append(f'<text x="{x(value)}" y="{y(0) + 16}" text-anchor="middle">{value}</text>')
        parts.append(f'<text x="{x(0) - 6}" y="{y(value) + 4}" text-anchor="end">{value}</text>')
    for at, (name, points) in enumerate(sets.items()):
        colour = _COLOURS[at % len(_COLOURS)]
        rows = table(points)
        line = " ".join(f"{x(float(r['mean_score']))},{y(float(r['right']))}" for r in rows)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}"/>')
        for row in rows:
            radius = 2 + min(6.0, float(row["results"]) ** 0.5 / 4)
            parts.append(
                f'<circle cx="{x(float(row["mean_score"]))}" cy="{y(float(row["right"]))}"'
                f' r="{radius:.1f}" fill="{colour}" fill-opacity="0.6"/>'
            )
        parts.append(
            f'<text x="{x(1) + 12}" y="{y(1) + 20 * at}" fill="{colour}">'
            f"{name} ({len(points)})</text>"
        )
    path.write_text("\n".join((*parts, "</svg>")) + "\n", "utf-8")
