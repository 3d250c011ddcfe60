"""The JSON Schema of a form: named values of simple types, which people fill in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from ..errors import UnsendableError

_SCALARS = ("string", "number", "integer", "boolean", "null")
_NESTING = ("$ref", "properties", "patternProperties", "allOf", "not", "if", "dependentSchemas")
_ALTERNATIVES = ("anyOf", "oneOf")
_CHOICES = ("choice", "select")
_TYPE_OF_FIELD = {
    **dict.fromkeys(("text", "string", "textarea"), "string"),
    **dict.fromkeys(("boolean", "checkbox"), "boolean"),
    **{"number": "number", "integer": "integer"},
}
_REFERENCES_MAX = 4
"""Levels of a property at which a reference may stand: the property, an alternative, its items."""


def schema_of(type: Any) -> dict[str, Any]:
    """The JSON Schema of a type, with its definitions in place."""
    schema = TypeAdapter(type).json_schema()
    definitions = schema.pop("$defs", {})
    inlined: dict[str, Any] = _inlined(schema, definitions, _REFERENCES_MAX)
    return inlined


def schema_of_fields(fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON Schema of a form that is given by its fields, by which the platform checks the values: a choice has one of its options.

    Raises UnsendableError for a choice without options.
    """
    properties: dict[str, Any] = {}
    for field in fields:
        property = {"title": field["label"]} if "label" in field else {}
        if field.get("options"):
            property["enum"] = field["options"]
        elif field["type"] in _CHOICES:
            raise UnsendableError(f"the field {field['id']} is a {field['type']} without options")
        elif field["type"] in _TYPE_OF_FIELD:
            property["type"] = _TYPE_OF_FIELD[field["type"]]
        properties[field["id"]] = property
    return {"type": "object", "properties": properties, "additionalProperties": False}


def require_form(question: Mapping[str, Any]) -> None:
    """Raises UnsendableError for a question whose schema nobody can fill in."""
    problem = _form_problem(question["schema"]) if isinstance(question.get("schema"), Mapping) else None
    if problem:
        raise UnsendableError(f"the schema of the form “{question.get('title')}” is not valid: {problem}")


def _form_problem(schema: Mapping[str, Any]) -> str | None:
    """Why a schema is no form; None for one that is. The platform applies the same rules."""
    if schema.get("type", "object") != "object":
        return f"type must be 'object', not {schema['type']!r}"
    if nested := next((keyword for keyword in _NESTING if keyword != "properties" and keyword in schema), None):
        return f"the form must be flat, without {nested}"
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, Mapping):
        return "properties must be an object"
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "required must be a list of names"
    problems = (_property_problem(property, f"properties.{name}") for name, property in properties.items())
    return next((problem for problem in problems if problem), None)


def _property_problem(property: object, path: str) -> str | None:
    problem = _simple_problem(property, path)
    if problem or not isinstance(property, Mapping):
        return problem
    for keyword in _ALTERNATIVES:
        listed = property.get(keyword)
        if listed is None:
            continue
        if not isinstance(listed, list) or not listed:
            return f"{path}.{keyword} must be a list"
        for at, alternative in enumerate(listed):
            problem = _simple_problem(alternative, f"{path}.{keyword}[{at}]")
            if problem:
                return problem
    return None


def _simple_problem(property: object, path: str) -> str | None:
    if isinstance(property, Mapping) and property.get("type") == "array":
        return _scalar_problem({**property, "type": "null"}, path) or _scalar_problem(property.get("items"), f"{path}.items")
    return _scalar_problem(property, path)


def _scalar_problem(schema: object, path: str) -> str | None:
    if not isinstance(schema, Mapping):
        return f"{path} must be an object"
    if nested := next((keyword for keyword in _NESTING if keyword in schema), None):
        return f"{path}: the form must be flat, without {nested}"
    types = schema.get("type", [])
    other = next((one for one in (types if isinstance(types, list) else [types]) if one not in _SCALARS), None)
    return None if other is None else f"{path}.type must not be {other!r}"


def _inlined(schema: Any, definitions: Mapping[str, Any], references_left: int) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, definitions, references_left) for item in schema]
    if not isinstance(schema, dict):
        return schema
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions and references_left > 0:  # a type that holds itself keeps its reference, and is no form
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _inlined({**definitions[name], **rest}, definitions, references_left - 1)
    return {key: _inlined(value, definitions, references_left) for key, value in schema.items()}
