"""The calibration table and plot of the recall bench."""

from pathlib import Path
from xml.etree import ElementTree

from scripts.benches.support import calibration

POINTS = [(0.05, False), (0.75, True), (0.75, True), (0.85, False), (1.0, True)]


def test_the_table_has_a_row_for_each_tenth_with_results() -> None:
    rows = calibration.table(POINTS)
    assert [(row["from"], row["results"], row["right"]) for row in rows] == [
        (0.0, 1, 0.0),
        (0.7, 2, 1.0),
        (0.8, 1, 0.0),
        (0.9, 1, 1.0),
    ]


def test_the_summary_counts_the_results_from_seven_tenths_on() -> None:
    found = calibration.summary(POINTS)
    assert (found["scored_0.7_or_more"], found["of_those_right"]) == (4, 0.75)
    assert found["calibration_error"] == round((0.05 + 2 * 0.25 + 0.85 + 0.0) / 5, 4)


def test_the_plot_is_an_image_with_a_line_for_each_set(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    calibration.plot({"one": POINTS, "two": POINTS[:2]}, path)
    image = ElementTree.fromstring(path.read_text("utf-8"))
    assert len(image.findall("{http://www.w3.org/2000/svg}polyline")) == 2
