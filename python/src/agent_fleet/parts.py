"""Parts, artifacts and usage as A2A 0.3 and the platform define them: plain dicts, as on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

JsonObject = dict[str, Any]

_STRICT = ConfigDict(extra="forbid")
"""What a handler gives has no members that nobody reads."""


@with_config(_STRICT)
class TextPart(TypedDict):
    kind: Literal["text"]
    text: str
    metadata: NotRequired[JsonObject]


@with_config(_STRICT)
class DataPart(TypedDict):
    kind: Literal["data"]
    data: JsonObject
    metadata: NotRequired[JsonObject]


@with_config(_STRICT)
class FileContent(TypedDict):
    """Exactly one of `bytes` (base64) and `uri`."""

    bytes: NotRequired[str]
    uri: NotRequired[str]
    name: NotRequired[str]
    mimeType: NotRequired[str]


@with_config(_STRICT)
class FilePart(TypedDict):
    kind: Literal["file"]
    file: FileContent
    metadata: NotRequired[JsonObject]


Part = TextPart | FilePart | DataPart


@with_config(_STRICT)
class Artifact(TypedDict):
    """A named output. What a handler returns may leave the id out (`NewArtifact`)."""

    artifactId: Annotated[str, Field(min_length=1)]
    parts: list[Annotated[Part, Field(discriminator="kind")]]
    name: NotRequired[str]
    description: NotRequired[str]
    metadata: NotRequired[JsonObject]
    extensions: NotRequired[list[str]]


@with_config(_STRICT)
class NewArtifact(TypedDict):
    """An artifact as a handler returns it: without an `artifactId` it gets one."""

    artifactId: NotRequired[Annotated[str, Field(min_length=1)]]
    parts: list[Annotated[Part, Field(discriminator="kind")]]
    name: NotRequired[str]
    description: NotRequired[str]
    metadata: NotRequired[JsonObject]
    extensions: NotRequired[list[str]]


@with_config(_STRICT)
class Usage(TypedDict):
    """What an answer cost in tokens, and in US dollars."""

    input_tokens: Annotated[int, Field(ge=0)]
    output_tokens: Annotated[int, Field(ge=0)]
    model: NotRequired[Annotated[str, Field(max_length=256)]]
    cost_usd: NotRequired[Annotated[float, Field(ge=0)]]


@with_config(_STRICT)
class InputField(TypedDict):
    id: Annotated[str, Field(min_length=1, max_length=128)]
    type: Annotated[str, Field(max_length=64)]
    label: NotRequired[Annotated[str, Field(max_length=1024)]]
    options: NotRequired[Annotated[list[Any], Field(max_length=200)]]


@with_config(_STRICT)
class Question(TypedDict):
    """A question to a human. The message waits in `input-required` until it is answered, for 24 hours by default."""

    kind: Literal["confirmation", "form", "approval"]
    title: Annotated[str, Field(max_length=512)]
    prompt: Annotated[str, Field(max_length=16_384)]
    schema: NotRequired[JsonObject]
    """JSON Schema of a form, without nested objects."""
    fields: NotRequired[Annotated[list[InputField], Field(max_length=100)]]
    tool: NotRequired[Annotated[str, Field(max_length=256)]]
    """The action that the answer decides on, shown to the human."""
    arguments: NotRequired[JsonObject]


def text_of_parts(parts: Iterable[Mapping[str, Any]]) -> str:
    """The text of all text parts, joined by line feeds."""
    return "\n".join(part["text"] for part in parts if part.get("kind") == "text")
