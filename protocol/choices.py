"""The values that a type allows at a path, for error messages about a wrong enum value.

A msgspec decoder reports the path (`$.items[0].kind`) and the rejected value. The allowed values
are looked up in the type that was decoded.
"""

import re
from typing import Any, Final

from msgspec import inspect

_STEP: Final = re.compile(r"\.([^.\[]+)|\[[^\]]*\]")


def choices_at(kind: Any, path: str) -> list[str]:
    """Return the values allowed at a path; empty unless the type there is a literal or an enum."""
    places = [inspect.type_info(kind)]
    for step in _STEP.finditer(path):
        places = [inner for place in _unwrapped(places) for inner in _children(place, step[1])]
    found: list[str] = []
    for place in _unwrapped(places):
        if isinstance(place, inspect.LiteralType):
            found.extend(str(value) for value in place.values)
        elif isinstance(place, inspect.EnumType):
            found.extend(str(member.value) for member in place.cls)
    return found


def _unwrapped(places: list[inspect.Type]) -> list[inspect.Type]:
    """Flatten unions into their alternatives, and drop metadata wrappers."""
    found: list[inspect.Type] = []
    for place in places:
        if isinstance(place, inspect.UnionType):
            found.extend(_unwrapped(list(place.types)))
        elif isinstance(place, inspect.Metadata):
            found.extend(_unwrapped([place.type]))
        else:
            found.append(place)
    return found


def _children(place: inspect.Type, name: str | None) -> list[inspect.Type]:
    """Return the types one step deeper: the field of that name, or the element type."""
    if isinstance(place, inspect.StructType):
        return [field.type for field in place.fields if field.encode_name == name]
    if isinstance(place, inspect.DictType):
        return [place.value_type]
    if isinstance(place, (inspect.ListType, inspect.VarTupleType, inspect.SetType)):
        return [place.item_type]
    if isinstance(place, inspect.TupleType):
        return list(place.item_types)
    return []
