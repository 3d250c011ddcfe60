"""Writes docs/python.md: every public member of the package, from its docstrings. `--check` only says whether it is current."""

from __future__ import annotations

import sys
from pathlib import Path

import griffe

FILE = Path(__file__).parents[1] / "docs" / "python.md"
HEAD = """# Python reference

<!-- Generated from the docstrings of python/src by `python/check.sh --write`. -->

All public members of the package `agent-fleet`. [Its README](../python/README.md) shows how they are used.
"""
MODULES = {
    "agent_fleet": "The package",
    "agent_fleet.client.waiting": "Waits: `client.messages`, `client.plans`, `client.knowledge`",
    "agent_fleet.client.tasks": "A2A's methods: `client.tasks`",
    "agent_fleet.handlers.sync_task": "`task.sync`: for handlers without `async`",
    "agent_fleet.testing": "Tests without a platform: `agent_fleet.testing`",
    "agent_fleet.hosted": "Hosted agents: `agent_fleet.hosted`",
    "agent_fleet.adapters.langgraph": "LangGraph: `agent_fleet.adapters.langgraph`",
    "agent_fleet.adapters.openai_agents": "OpenAI Agents SDK: `agent_fleet.adapters.openai_agents`",
    "agent_fleet.client.generated.operations": "Operations of the API: `client.sessions.init(…)`, …",
}
OPERATIONS = "Operations"
"""The end of the names of the classes that have the operations of the API, which stand in a section of their own."""


def resolved(member: griffe.Object | griffe.Alias) -> griffe.Object:
    return member.final_target if isinstance(member, griffe.Alias) else member


def docstring(member: griffe.Object, indent: str = "") -> str:
    lines = (member.docstring.value if member.docstring else "").splitlines()
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def signature(function: griffe.Function, name: str, *, is_method: bool) -> str:
    """As it is written in the source, without types of the parameters' defaults that are left out."""
    shown: list[str] = []
    star = False
    for parameter in list(function.parameters)[1 if is_method else 0 :]:
        kind = parameter.kind
        if kind is griffe.ParameterKind.keyword_only and not star:
            shown.append("*")
            star = True
        prefix = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(kind, "")
        star = star or prefix == "*"
        has_default = parameter.default is not None and not prefix
        annotation = f": {parameter.annotation}" if parameter.annotation is not None else ""
        default = f" = {parameter.default}" if has_default and annotation else f"={parameter.default}" if has_default else ""
        shown.append(f"{prefix}{parameter.name}{annotation}{default}")
    returns = f" -> {function.returns}" if function.returns is not None and name != "__init__" else ""
    return f"{'async ' if 'async' in function.labels else ''}{name}({', '.join(shown)}){returns}"


def is_public(name: str, member: griffe.Object) -> bool:
    return not name.startswith("_") and not (member.is_attribute and not member.docstring and "dataclass" not in str(member.labels))


def member_text(name: str, member: griffe.Object) -> str:
    if isinstance(member, griffe.Function):
        title = signature(member, name, is_method="staticmethod" not in member.labels)
    else:
        annotation = getattr(member, "annotation", None)
        title = f"{name}: {annotation}" if annotation is not None else name
    described = docstring(member, "  ").strip()
    return f"- `{title}`" + (f"\n\n  {described}" if described else "") + "\n"


def class_text(name: str, found: griffe.Class) -> str:
    bases = [resolved(base) for base in found.resolved_bases]
    group = name.removesuffix(OPERATIONS)
    text = [f"### {name}\n" if group == name else f"### client.{group.lower()}\n", docstring(found)]
    init = found.members.get("__init__")
    if isinstance(init, griffe.Function) and not name.endswith(OPERATIONS):
        text += [f"```python\n{signature(init, name, is_method=True)}\n```", docstring(init)]
    members = dict(found.members)
    for base in bases:  # what a class of the package takes from another one, but for the operations of the API
        if base.path.startswith("agent_fleet.") and not base.name.endswith(OPERATIONS):
            members = {**base.members, **members}
    listed = {key: resolved(member) for key, member in members.items()}
    text.append("\n".join(member_text(key, member) for key, member in listed.items() if is_public(key, member)))
    return "\n\n".join(part.rstrip() for part in text if part.strip())


def text_of(name: str, member: griffe.Object) -> str:
    if isinstance(member, griffe.Class):
        return class_text(name, member)
    if isinstance(member, griffe.Function):
        return f"### {name}\n\n```python\n{signature(member, name, is_method=False)}\n```\n\n{docstring(member)}"
    value = getattr(member, "value", None)
    code = f"\n\n```python\n{name} = {value}\n```" if value is not None else ""
    return f"### {name}{code}\n\n{docstring(member)}"


def main() -> None:
    loader = griffe.GriffeLoader(search_paths=[str(Path(__file__).parent / "src")])
    package = loader.load("agent_fleet")
    loader.resolve_aliases(implicit=True, external=False)
    sections = [HEAD]
    for path, title in MODULES.items():
        module = package if path == "agent_fleet" else package[path.removeprefix("agent_fleet.")]
        exported = module.exports or [name for name, member in module.members.items() if not member.is_alias and not name.startswith("_")]
        sections.append(f"## {title}\n")
        for each in exported:
            name = str(getattr(each, "name", each))
            member = resolved(module.members[name])
            if not name.startswith("_") and name != OPERATIONS and (member.docstring or isinstance(member, griffe.Class)):
                sections.append(text_of(name, member).rstrip() + "\n")
    text = "\n".join(sections)
    if "--check" not in sys.argv:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        sys.exit(f"{FILE} is not current: python/check.sh --write")


if __name__ == "__main__":
    main()
