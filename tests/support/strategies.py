"""Hypothesis strategies for JSON-RPC messages."""

from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import strategies as st

#: Text that recalld accepts: without surrogates and U+0000.
wire_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))

request_ids = st.one_of(st.integers(), wire_text)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | wire_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(wire_text, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A well-formed request line without its newline."""
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": draw(request_ids),
        "method": draw(wire_text),
        "params": draw(st.dictionaries(wire_text, json_values, max_size=4)),
    }
    # msgspec cannot encode integers beyond 64 bits, but ids may have any size.
    raw_id = str(message["id"]).encode() if isinstance(message["id"], int) else None
    encoded = msgspec.json.encode({**message, "id": 0 if raw_id else message["id"]})
    return encoded.replace(b'"id":0', b'"id":' + raw_id, 1) if raw_id else encoded


@st.composite
def chopped(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The same bytes, split at random positions."""
    cuts = sorted(draw(st.sets(st.integers(0, len(data)), max_size=8)))
    edges = [0, *cuts, len(data)]
    return [data[a:b] for a, b in pairwise(edges)]
