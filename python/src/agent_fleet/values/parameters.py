"""The parameters of a skill or tool: read from the signature of its function, checked by pydantic."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError

from ..threads import in_thread
from .sendable import issues_of


class InvalidInput(ValueError):
    """The input does not fit the parameters, or a type. The message names each problem. It fails the message with `INVALID_DISPATCH`."""


def read_as(type: Any, value: object) -> Any:
    """A value as pydantic reads it for a type. Raises InvalidInput."""
    try:
        return TypeAdapter(type).validate_python(value)
    except ValidationError as error:
        raise InvalidInput(issues_of(error)) from None


class Parameters:
    """The parameters of a function beside those that the SDK gives: their JSON Schema, and how to read and pass them."""

    def __init__(self, function: Callable[..., Any], name: str, given: set[str]) -> None:
        """`given` are the parameters that the SDK passes itself. Raises TypeError for a signature that cannot be read."""
        hints = _hints_of(function, name)
        fields: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        for at, parameter in enumerate(inspect.signature(function).parameters.values()):
            if parameter.name in given:
                continue
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise TypeError(f"{name}: the parameter {parameter.name} must be one that is passed by name")
            default = ... if parameter.default is parameter.empty else parameter.default
            # The alias frees the names that a model has for itself, such as `schema` and `copy`.
            self._names[f"argument_{at}"] = parameter.name
            fields[f"argument_{at}"] = (hints.get(parameter.name, Any), Field(default, alias=parameter.name))
        try:
            self._model: type[BaseModel] = create_model(name, __config__=ConfigDict(title=name), **fields)
        except PydanticSchemaGenerationError as error:
            raise TypeError(f"{name}: {error}") from error

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameters, an object."""
        schema = self._model.model_json_schema(by_alias=True)
        schema.pop("title", None)
        for described in schema.get("properties", {}).values():
            described.pop("title", None)
        return schema

    def read(self, value: object) -> dict[str, Any]:
        """The arguments by name. Members that no parameter has are left out. Raises InvalidInput."""
        try:
            read = self._model.model_validate(value)
        except ValidationError as error:
            raise InvalidInput(issues_of(error)) from None
        return {parameter: getattr(read, field) for field, parameter in self._names.items()}


def _hints_of(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{name}: the type of a parameter is not known at module level ({error})") from error


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters, in order."""
    return list(inspect.signature(function).parameters)


def parameter_of_type(function: Callable[..., Any], name: str, wanted: type) -> str | None:
    """The parameter that is annotated with this class; None without one."""
    return next((parameter for parameter, hint in _hints_of(function, name).items() if hint is wanted), None)


async def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a handler. A plain function runs in a thread, because it may block; so does nothing of an `async` one."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        made = function(*args, **kwargs)
    elif inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - an object with `async def __call__`
        made = function(*args, **kwargs)
    else:
        made = await in_thread(function, *args, **kwargs)
    return await made if inspect.iscoroutine(made) else made
