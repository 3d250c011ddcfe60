"""Writes the generated part of the Python client: the types with datamodel-code-generator, and a class for each group of operations.

`--check` writes nothing and fails where a file is not current. `python/check.sh` runs it with the packages that it needs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from keyword import iskeyword
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "python" / "src" / "agent_fleet" / "client" / "generated"
HEAD = '# Generated from contracts/ by `npm run clients`.\n# ruff: noqa\n# mypy: disable-error-code="redundant-cast"\n'
OPTIONS = [
    *("--input-file-type", "openapi", "--output-model-type", "typing.TypedDict", "--target-python-version", "3.11"),
    *("--enum-field-as-literal", "all", "--naming-strategy", "full-path", "--use-title-as-name"),
    *("--import-overrides", '{"TypedDict": "typing_extensions"}', "--no-use-closed-typed-dict"),
    *("--formatters", "builtin", "--custom-file-header", HEAD),
]
CONSTRAINTS = {"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "minItems", "maxItems"}
"""Members of a schema that make no difference to its type."""


def models_text(schemas: dict[str, Any], requests: set[str]) -> str:
    """The schemas as `TypedDict`s. Parts and artifacts are the package's own; an event of any type is an `EventRecord`."""
    schemas["EventRecord"] = schemas["EventRecord"]["anyOf"][-1]
    del schemas["PlatformEvent"]
    for name in ("Part", "Artifact"):
        schemas[name] = {"x-python-import": {"module": "agent_fleet.parts", "name": name}}
    for schema in schemas.values():
        for number, form in enumerate(schema.get("anyOf") or schema.get("oneOf") or [], 1):
            first, *_ = form["properties"].values()
            form["title"] = first.get("const") if isinstance(first.get("const"), str) else f"form_{number}"
    components = {"schemas": {name: plain(schema, is_answer=name not in requests) for name, schema in schemas.items()}}
    document = {"openapi": "3.1.0", "info": {"title": "types", "version": "1"}, "paths": {}, "components": components}
    command = [sys.executable, "-m", "datamodel_code_generator", *OPTIONS]
    return with_final_forms(subprocess.run(command, input=json.dumps(document), stdout=subprocess.PIPE, text=True, check=True).stdout)


def with_final_forms(models: str) -> str:
    """The models, in which `if "trace" in answer` tells the forms of an answer apart, also to type checkers."""
    for union in re.findall(r"^\w+Response: TypeAlias = (\w+ \| .+)$", models, re.MULTILINE):
        for form in union.split(" | "):
            models = models.replace(f"\nclass {form}(TypedDict)", f"\n@final\nclass {form}(TypedDict)")
    return re.sub(r"^(from typing import .*)$", r"\1, final", models, count=1, flags=re.MULTILINE)


def plain(schema: Any, *, is_answer: bool) -> Any:
    """The schema without constraints. Of an answer, a newer platform may add values to an enumeration: any value has its type."""
    left_out = CONSTRAINTS | ({"enum"} if is_answer else set())

    def kept(one: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in one.items() if key not in left_out or isinstance(value, dict)}

    return json.loads(json.dumps(schema), object_hook=kept)


def members_of(models: str) -> dict[str, dict[str, str] | None]:
    """The type of each member of each class, as text; None for a union."""
    members: dict[str, dict[str, str] | None] = {}
    for block in models.split("\n\n\n")[1:]:
        [name] = re.findall(r"^(?:@final\n)?(?:class )?(\w+)", block)
        members[name] = None if ": TypeAlias" in block else dict(re.findall(r"^ +'?(\w+)'?: (.+?),?$", block, re.MULTILINE))
    return members


def operations_text(methods: list[dict[str, Any]], models: str) -> str:
    """A class for each group, and all groups as one class."""
    members = members_of(models)
    groups = {method["group"]: "" for method in methods}
    for method in methods:
        groups[method["group"]] += method_text(method, members)
    init = "    def __init__(self, api: PlatformApi) -> None:\n"
    text = "".join(
        f'\n\nclass {group.title()}Operations:\n    """The operations of `client.{group}`."""\n\n{init}        self._api = api\n{body}'
        for group, body in groups.items()
    )
    text += '\n\nclass Operations:\n    """The operations of the API: `POST /sessions/init` is `sessions.init`."""\n\n' + init
    text += "".join(f"        self.{group} = {group.title()}Operations(api)\n" for group in groups)
    used = ",\n    ".join(sorted(members.keys() & set(re.findall(r"\w+", text))))
    return f"""{HEAD}
from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal, cast
from urllib.parse import quote

from ..not_given import NOT_GIVEN, NotGiven, given
from ..platform_api import PlatformApi
from .models import (
    {used},
)
{text}"""


def sync_text(operations: str) -> str:
    """The same operations for programs without an event loop."""
    text = operations.replace("async def ", "def ").replace("await self._api", "self._api").replace("AsyncIterator", "Iterator")
    return text.replace("..platform_api", "..sync.loop_thread").replace("PlatformApi", "SyncApi")


def method_text(method: dict[str, Any], members: dict[str, dict[str, str] | None]) -> str:
    """A method whose parameters are those of the path and the members of the request; a request of several forms is one `body`."""
    request, is_stream = method["request"], method["answers"] != "json"
    parameters, body = request_text(request, members[request]) if request else ([], "given()")
    path = re.sub(r"{(\w+)}", r"{quote(\1, safe='')}", method["path"])
    arguments = [f'f"{path}"' if method["parameters"] else f'"{path}"']
    if method["verb"] == "GET":
        arguments += [f"params={body}", 'method="GET"']
    else:
        arguments.append(f"form={body}" if method["form"] else body)
    if method["retry"] and not is_stream:
        arguments.append("retry=True")
    call = f"self._api.{method['answers'] if is_stream else 'call'}({', '.join(arguments)})"
    result = f"AsyncIterator[{method['response']}]" if is_stream else method["response"]
    docstring = "\n\n        ".join(method["sentences"])
    signature = ", ".join(["self", *(f"{name}: str" for name in method["parameters"]), *parameters])
    return f"""
    {"" if is_stream else "async "}def {method["name"]}({signature}) -> {result}:
        \"""{docstring}\"""
        return cast("{result}", {"" if is_stream else "await "}{call})
"""


def request_text(request: str, members: dict[str, str] | None) -> tuple[list[str], str]:
    """The parameters of a request, and the expression that makes its body of them."""
    if members is None:
        return [f"body: {request}"], "dict(body)"
    required, optional, names = [], [], []
    for key, text in members.items():
        name = f"{key}_" if iskeyword(key) else key
        names.append(f"{key}={key}" if name == key else f'**{{"{key}": {name}}}')
        if text.startswith("NotRequired["):
            optional.append(f"{name}: {text[12:-1]} | NotGiven = NOT_GIVEN")
        else:
            required.append(f"{name}: {text}")
    # Only the first one may be given by position: the order of the others is the schema's, and may change.
    others = [*required[1:], *optional]
    return [*required[:1], *(["*"] if others else []), *others], f"given({', '.join(names)})"


def main() -> None:
    description = subprocess.run(["node", ROOT / "scripts" / "clients" / "description.mjs"], stdout=subprocess.PIPE, check=True)
    everything, schemas = json.loads(description.stdout).values()
    methods = [method for method in everything if method["name"] != "stream_events_by_query"]  # `stream_events`, for browsers
    models = models_text(schemas, {method["request"] for method in methods})
    operations = operations_text(methods, models)
    for name, text in {"models.py": models, "operations.py": operations, "sync_operations.py": sync_text(operations)}.items():
        if "--check" not in sys.argv:
            (FOLDER / name).write_text(text)
        elif (FOLDER / name).read_text() != text:
            sys.exit(f"{FOLDER / name} is not current: npm run clients")


if __name__ == "__main__":
    main()
