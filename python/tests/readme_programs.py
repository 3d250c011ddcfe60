"""Writes the programs of the README into a folder, for the type checker: `readme_programs.py FOLDER`."""

import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def programs() -> dict[str, str]:
    """The programs by the name of their file, which their first line says; the first two have none."""
    found = re.findall(r"```py(?:thon)?\n(.*?)```", README.read_text(), re.DOTALL)
    names = ["# storyteller.py", "# ask.py"]
    named: dict[str, str] = {}
    for number, code in enumerate(found):
        name = re.match(r"# (\w+)\.py\n", code)
        named[name[1] if name else names.pop(0)[2:-3] if names else f"readme_{number}"] = code
    return named


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, code in programs().items():
        (folder / f"{name}.py").write_text(code)
