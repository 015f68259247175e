"""Selection of dialects by a list of names."""

import pytest

from daemon.dialect_names import DEFAULT_DIALECTS, chosen


def test_an_empty_list_selects_all_dialects() -> None:
    assert chosen("") == list(DEFAULT_DIALECTS) == chosen(" , ")


def test_dialects_are_selected_in_the_order_of_their_list() -> None:
    assert chosen("recall,hindsight") == ["hindsight", "recall"] == chosen(" recall , hindsight ")


def test_a_minus_excludes_a_dialect() -> None:
    assert "hindsight" not in chosen("-hindsight")
    assert set(chosen("-hindsight")) | {"hindsight"} == set(DEFAULT_DIALECTS)


@pytest.mark.parametrize("names", ["telepathy", "-telepathy", "recall,telepathy", "-recall,recall"])
def test_an_invalid_selection_is_refused_with_a_reason(names: str) -> None:
    with pytest.raises(LookupError, match="dialects: "):
        chosen(names)
