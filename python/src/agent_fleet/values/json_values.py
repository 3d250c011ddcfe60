"""Values of handlers as JSON: dicts, pydantic models, dataclasses, and what these hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, ClassVar, Protocol, TypeGuard

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from ..parts import Part


class DataclassInstance(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Record = BaseModel | DataclassInstance | Mapping[str, Any]
"""What becomes an object in JSON."""

_PART_KINDS = ("text", "data", "file")


def jsonable(value: object) -> Any:
    """The JSON value of a model, a dataclass, a date, or another value that `json.dumps` does not know. Raises TypeError or ValueError."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("bytes have no form in JSON: send a file part, or base64")
    return to_jsonable_python(dict(value) if isinstance(value, Mapping) else value)


def is_record(value: object) -> TypeGuard[Record]:
    """Whether the value is a pydantic model, an instance of a dataclass, or a mapping."""
    return isinstance(value, (BaseModel, Mapping)) or (is_dataclass(value) and not isinstance(value, type))


def is_part(value: object) -> TypeGuard[Part]:
    """Whether a mapping is a part, told by its `kind`; any other one is data."""
    return isinstance(value, Mapping) and value.get("kind") in _PART_KINDS


def parts_of(output: object) -> list[Any] | None:
    """An output as parts that are not checked yet: text, a part, or data, or a list of these. None for anything else."""
    items = output if isinstance(output, (list, tuple)) else [output]
    parts: list[Any] = []
    for item in items:
        if isinstance(item, str):
            parts.append({"kind": "text", "text": item})
        elif is_part(item):
            parts.append(item)
        elif is_record(item):
            parts.append({"kind": "data", "data": item})
        else:
            return None
    return parts
