"""Parts, artifacts and usage as A2A 0.3 and the platform define them: plain dicts, as on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

JsonObject = dict[str, Any]


class TextPart(TypedDict):
    kind: Literal["text"]
    text: str
    metadata: NotRequired[JsonObject]


class DataPart(TypedDict):
    kind: Literal["data"]
    data: JsonObject
    metadata: NotRequired[JsonObject]


class FileContent(TypedDict):
    """Exactly one of `bytes` (base64) and `uri`."""

    bytes: NotRequired[str]
    uri: NotRequired[str]
    name: NotRequired[str]
    mimeType: NotRequired[str]


class FilePart(TypedDict):
    kind: Literal["file"]
    file: FileContent
    metadata: NotRequired[JsonObject]


Part = TextPart | FilePart | DataPart


class Artifact(TypedDict):
    artifactId: Annotated[str, Field(min_length=1)]
    parts: list[Annotated[Part, Field(discriminator="kind")]]
    name: NotRequired[str]
    description: NotRequired[str]
    metadata: NotRequired[JsonObject]


class Usage(TypedDict):
    """What an answer cost in tokens, and in US dollars."""

    input_tokens: Annotated[int, Field(ge=0)]
    output_tokens: Annotated[int, Field(ge=0)]
    model: NotRequired[Annotated[str, Field(max_length=256)]]
    cost_usd: NotRequired[Annotated[float, Field(ge=0)]]


class InputField(TypedDict):
    id: Annotated[str, Field(min_length=1, max_length=128)]
    type: Annotated[str, Field(max_length=64)]
    label: NotRequired[Annotated[str, Field(max_length=1024)]]
    options: NotRequired[Annotated[list[Any], Field(max_length=200)]]


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
