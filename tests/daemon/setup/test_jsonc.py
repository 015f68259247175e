"""The editor for JSON with comments changes one member and keeps every other byte."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.setup.formats import jsonc
from daemon.setup.formats.syntax import SyntaxFault

KEY = ("mcpServers", "recalld")
ENTRY = {"command": "/x/recalld", "args": ["stdio"], "env": {}}

PUT = [
    ("", '{\n  "mcpServers": {\n    "recalld": 1\n  }\n}\n'),
    ("{}", '{\n  "mcpServers": {\n    "recalld": 1\n  }\n}'),
    ("// mine\n", '// mine\n{\n  "mcpServers": {\n    "recalld": 1\n  }\n}\n'),
    ('{"mcpServers":{}}', '{"mcpServers":{\n  "recalld": 1\n}}'),
    ('{"mcpServers":{"a":1}}', '{"mcpServers":{"a":1, "recalld": 1}}'),
    ('{"mcpServers": {"a": 1,}}', '{"mcpServers": {"a": 1, "recalld": 1,}}'),
    (
        '{\n\t"mcpServers": {\n\t\t"a": 1 // one\n\t}\n}\n',
        '{\n\t"mcpServers": {\n\t\t"a": 1, // one\n\t\t"recalld": 1\n\t}\n}\n',
    ),
    (
        '{\r\n    "mcpServers": {\r\n        "a": 1,\r\n    }\r\n}',
        '{\r\n    "mcpServers": {\r\n        "a": 1,\r\n        "recalld": 1,\r\n    }\r\n}',
    ),
    ('{\n  "mcpServers": {\n  }\n}', '{\n  "mcpServers": {\n    "recalld": 1\n  }\n}'),
    (
        '{\n  "mcpServers": {\n    // none\n  }\n}',
        '{\n  "mcpServers": {\n    // none\n    "recalld": 1\n  }\n}',
    ),
    (
        '{\n  "mcpServers": {"recalld": 2, "a": 1}\n}',
        '{\n  "mcpServers": {"recalld": 1, "a": 1}\n}',
    ),
    ('{\n  "a": 1\n}', '{\n  "a": 1,\n  "mcpServers": {\n    "recalld": 1\n  }\n}'),
]


@pytest.mark.parametrize(("before", "after"), PUT)
def test_a_member_is_added_in_the_style_of_the_file(before: str, after: str) -> None:
    assert jsonc.put(before, KEY, 1) == after
    assert jsonc.put(after, KEY, 1) == after


DROP = [
    ('{"mcpServers":{"recalld":1}}', '{"mcpServers":{}}'),
    ('{"mcpServers":{"recalld":1, "a": 2}}', '{"mcpServers":{"a": 2}}'),
    ('{"mcpServers":{"a": 2, "recalld":1}}', '{"mcpServers":{"a": 2}}'),
    (
        '{"mcpServers":{\n  // kept\n  "recalld":1, // also kept\n  "a": 2\n}}',
        '{"mcpServers":{\n  // kept\n   // also kept\n  "a": 2\n}}',
    ),
    ('{"mcpServers":{\n  "a": 2,\n  "recalld":1,\n}}', '{"mcpServers":{\n  "a": 2,\n}}'),
    ('{"mcpServers":{\n  "a": 2, // x\n  "recalld": 1\n}}', '{"mcpServers":{\n  "a": 2 // x\n}}'),
    ('{"mcpServers":{\n  // only this\n  "recalld": 1\n}}', '{"mcpServers":{\n  // only this\n}}'),
    ('{"other": 1}', '{"other": 1}'),
]


@pytest.mark.parametrize(("before", "after"), DROP)
def test_a_member_is_removed_with_its_comma_and_nothing_else(before: str, after: str) -> None:
    assert jsonc.drop(before, KEY) == after


BROKEN = [
    ('{\n  "a": 1\n  "b": 2\n}', 3, 3, "expected ',' or '}', found '\"'"),
    ("{\n  a: 1\n}", 2, 3, "expected a name in double quotes, found 'a'"),
    ('{"a": }', 1, 7, "expected a value, found '}'"),
    ('{"a": 01}', 1, 7, "expected a value, found '0'"),
    ('{"a": [1 2]}', 1, 10, "expected ',' or ']', found '2'"),
    ('{"a": 1', 1, 8, "expected ',' or '}', found the end of the file"),
    ("{} {}", 1, 4, "unexpected '{' after the end of the value"),
    ('{"a": "x\ny"}', 1, 7, "the string is not terminated or has a wrong escape"),
    ("{ /* x }", 1, 3, "the comment has no end"),
    ('{"mcpServers": []}', 1, 16, "expected an object that can hold 'recalld'"),
    ('{"mcpServers": {}, "mcpServers": {}}', 1, 20, "'mcpServers' occurs twice in this object"),
    ("[" * 200, 1, 102, "nested deeper than 100 levels"),
]


@pytest.mark.parametrize(("text", "line", "column", "reason"), BROKEN)
def test_a_file_that_cannot_be_changed_is_refused_with_line_and_column(
    text: str, line: int, column: int, reason: str
) -> None:
    with pytest.raises(SyntaxFault) as refused:
        jsonc.put(text, KEY, ENTRY)
    assert (refused.value.line, refused.value.column, refused.value.reason) == (
        line,
        column,
        reason,
    )


COMMENTS = st.sampled_from(["", " ", "\n", "// note\n", "/* note */", '\n\n  // note, with { "\n'])
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """An object written with random comments, white space and trailing commas."""
    data = draw(st.dictionaries(st.text(max_size=4), TREES, max_size=3))
    if draw(st.booleans()):
        data["mcpServers"] = draw(st.dictionaries(st.text(max_size=4), TREES, max_size=3))

    def blank() -> str:
        return draw(COMMENTS)

    def write(value: Any) -> str:
        if isinstance(value, dict):
            parts = [
                f"{blank()}{json.dumps(k)}{blank()}:{blank()}{write(v)}{blank()}"
                for k, v in value.items()
            ]
        elif isinstance(value, list):
            parts = [f"{blank()}{write(v)}{blank()}" for v in value]
        else:
            return json.dumps(value)
        comma = draw(st.sampled_from(["", ","])) if parts else ""
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        return opening + ",".join(parts) + comma + blank() + closing

    return blank() + write(data) + blank()


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(char in rest for char in part)


@given(documents())
def test_adding_and_removing_keeps_all_other_values_and_every_byte(text: str) -> None:
    before = jsonc.read(text)
    added = jsonc.put(text, KEY, ENTRY)
    after = jsonc.read(added)
    assert after["mcpServers"].pop("recalld") == ENTRY
    if "mcpServers" not in before:
        assert after.pop("mcpServers") == {}
    assert after == before
    if before.get("mcpServers", before):
        assert is_subsequence(text, added)
    removed = jsonc.read(jsonc.drop(added, KEY))
    if "mcpServers" not in before:
        assert removed.pop("mcpServers") == {}
    assert removed == before
    assert is_subsequence(text.replace(" ", "").replace("\n", ""), jsonc.drop(added, KEY))


@given(documents())
def test_a_changed_value_leaves_the_text_around_it_alone(text: str) -> None:
    first = jsonc.put(text, KEY, "first")
    assert jsonc.put(first, KEY, "other").replace('"other"', '"first"') == first
