"""Recovering the id of an oversized line: the right one, or none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.framing import LineFramer, Oversized
from protocol.salvage import salvage_id

BIG = "x" * 10_000


def salvaged(line: bytes | str) -> bytes:
    raw = line.encode() if isinstance(line, str) else line
    (found,) = LineFramer(1000).feed(raw + b"\n")
    assert isinstance(found, Oversized)
    return salvage_id(found)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        # The id is before or after the large member.
        (f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":"{BIG}"}}}}', b"1"),
        (f'{{"method":"m","params":{{"a":"{BIG}"}},"jsonrpc":"2.0","id":"x-1"}}', b'"x-1"'),
        (f'{{"id":1,"params":{{"a":"{BIG}"}},"method":"m"}}', b"1"),
        (f' {{ "id" : 12 , "method" : "m" , "params" : {{"a":"{BIG}"}} }} \r', b"12"),
        (f'{{"params":{{"a":"{BIG}"}},"id":3 , "method":"m"\t}}', b"3"),
        (f'{{"params":{{"id":9,"a":["}}",{{}}]}},"id":3,"method":"m","x":"{BIG}"}}', b"3"),
        (f'{{"\\u0069d":4,"method":"m","x":"{BIG}"}}', b"4"),
        (f'{{"id":5,"method":"m","x":"{BIG}","id":5}}', b"5"),
        # There is no id, or it is ambiguous.
        (f'{{"method":"m","params":{{"id":1,"a":"{BIG}"}}}}', b""),
        (f'{{"method":"m","params":{{"a":"{BIG}","id":1}}}}', b""),
        (f'{{"method":"m","a":"{BIG},\\"id\\":1"}}', b""),
        (f'{{"method":"m","a":"{BIG}","x\\",\\"id":1}}', b""),
        (f'{{"method":"m","a":"{BIG}","x\\"id":1}}', b""),
        (f'{{"id":1,"method":"m","a":"{BIG}","id":2}}', b""),
        (f'{{"id":1,"result":{{"a":"{BIG}"}}}}', b""),
        (f'{{"id":1,"error":{{"a":"{BIG}"}}}}', b""),
        (f'{{"result":{{"a":"{BIG}"}},"jsonrpc":"2.0","id":1}}', b""),
        (f'[{{"id":1,"method":"m","params":{{"a":"{BIG}"}}}}]', b""),
        (f'{{"id":null,"method":"m","a":"{BIG}"}}', b""),
        (f'{{"id":1.5,"method":"m","a":"{BIG}"}}', b""),
        (f'{{"id":[1],"method":"m","a":"{BIG}"}}', b""),
        (f'{{"id":true,"method":"m","a":"{BIG}"}}', b""),
        (f'{{"id":"\\u0000","method":"m","a":"{BIG}"}}', b""),
        (f'{{"id":"{BIG}","method":"m"}}', b""),
        (f'{{"method":"m","id":"{BIG}"}}', b""),
        (BIG, b""),
        (b'{"id":"\xff","method":"m","a":"' + BIG.encode() + b'"}', b""),
        (b'{"\xff":1,"id":1,"method":"m","a":"' + BIG.encode() + b'"}', b""),
    ],
)
def test_the_id_is_recovered_from_the_ends_or_not_at_all(line: bytes | str, wanted: bytes) -> None:
    assert salvaged(line) == wanted


texts = st.text(alphabet='ab"\\{}[],: id\n1', max_size=12)
values = st.recursive(
    texts | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    members=st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "x"]) | texts, values, max_size=7
    ),
    order=st.randoms(use_true_random=False),
    at=st.integers(0, 7),
)
def test_a_recovered_id_equals_the_id_of_the_whole_line(
    members: dict[str, Any], order: Any, at: int
) -> None:
    names = list(members)
    order.shuffle(names)
    names.insert(at, "params")
    line = json.dumps({name: members.get(name) for name in names} | {"params": {"a": BIG}})
    raw = salvaged(line)
    if raw:
        assert json.loads(raw) == members["id"]
