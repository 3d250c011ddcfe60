"""The fields of an answer, with their forms for error messages."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field as Constraint
from pydantic import TypeAdapter

from ..limits import TOOL_ARGUMENTS_BYTES, TOOL_RESULT_BYTES
from ..parts import InputField, NewArtifact, Part, Question, Usage
from ..values.sendable import Field

PART_FORMS = "a part is {'kind': 'text', 'text'}, {'kind': 'data', 'data': {…}} or {'kind': 'file', 'file': {…}}"

_Parts = list[Annotated[Part, Constraint(discriminator="kind")]]

PARTS = Field(name="parts", schema=TypeAdapter(_Parts), depth=6, remedy=PART_FORMS)
"""The depth of parts in the final result. Chunks use it too, because the result repeats what was streamed."""

ARTIFACTS = Field(
    name="artifacts",
    schema=TypeAdapter(list[NewArtifact]),
    depth=4,
    remedy=f"an artifact is {{'parts', 'artifactId'?, 'name'?, 'description'?, 'metadata'?, 'extensions'?}}, and {PART_FORMS}",
)

QUESTION = Field(
    name="question",
    schema=TypeAdapter(Question),
    depth=4,
    remedy="ask(kind='confirmation' | 'form' | 'approval', title=…, prompt=…, schema?, fields?, tool?, arguments?)",
)

FIELDS = Field(
    name="fields",
    schema=TypeAdapter(list[InputField]),
    depth=5,
    remedy="a field is {'id', 'type', 'label'?, 'options'?}",
)

USAGE = Field(
    name="usage",
    schema=TypeAdapter(Usage),
    depth=3,
    remedy="usage is {'input_tokens', 'output_tokens', 'model'?, 'cost_usd'?} with whole numbers of tokens",
)

STATUS = Field(name="status", schema=TypeAdapter(str), depth=3, remedy="a status is text")

ARGUMENTS = Field(
    name="arguments",
    schema=TypeAdapter(dict[str, Any]),
    depth=3,
    max_bytes=TOOL_ARGUMENTS_BYTES,
    remedy="arguments are a dict that JSON can represent",
)

RESULT = Field(
    name="the result",
    schema=TypeAdapter(Any),
    depth=3,
    max_bytes=TOOL_RESULT_BYTES,
    remedy="return a JSON value, or None",
)
