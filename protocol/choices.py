"""Which values would be right, where a decoder only says that one is wrong.

A decoder names the place (`$.items[0].kind`) and the value; the type it decodes knows the rest.
"""

import re
from typing import Any, Final

from msgspec import inspect

_STEP: Final = re.compile(r"\.([^.\[]+)|\[[^\]]*\]")


def choices_at(kind: Any, path: str) -> list[str]:
    """The values that a type allows at a path; none where any value of some kind would do."""
    places = [inspect.type_info(kind)]
    for step in _STEP.finditer(path):
        places = [inner for place in _open(places) for inner in _inside(place, step[1])]
    found: list[str] = []
    for place in _open(places):
        if isinstance(place, inspect.LiteralType):
            found.extend(str(value) for value in place.values)
        elif isinstance(place, inspect.EnumType):
            found.extend(str(member.value) for member in place.cls)
    return found


def _open(places: list[inspect.Type]) -> list[inspect.Type]:
    """The same, with alternatives side by side and without what only decorates a type."""
    found: list[inspect.Type] = []
    for place in places:
        if isinstance(place, inspect.UnionType):
            found.extend(_open(list(place.types)))
        elif isinstance(place, inspect.Metadata):
            found.extend(_open([place.type]))
        else:
            found.append(place)
    return found


def _inside(place: inspect.Type, name: str | None) -> list[inspect.Type]:
    """What is one step further in: a field by its name, or any element."""
    if isinstance(place, inspect.StructType):
        return [field.type for field in place.fields if field.encode_name == name]
    if isinstance(place, inspect.DictType):
        return [place.value_type]
    if isinstance(place, (inspect.ListType, inspect.VarTupleType, inspect.SetType)):
        return [place.item_type]
    if isinstance(place, inspect.TupleType):
        return list(place.item_types)
    return []
