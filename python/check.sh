#!/usr/bin/env bash
# The static checks of the package and the tests of its adapters, in a new virtual environment with the frameworks. The agent and the
# client are tested by `npm test` in the folder above, from the wheel.
set -euo pipefail
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check -r requirements-dev.txt '.[langgraph,openai-agents]'
"$folder/bin/ruff" check --no-cache . ../test/sdk
"$folder/bin/mypy" --cache-dir "$folder/mypy" src examples ../test/sdk/wire ../test/sdk/python
PYTHONDONTWRITEBYTECODE=1 "$folder/bin/python" -m pytest --quiet -p no:cacheprovider tests
