#!/usr/bin/env bash
# The static checks of the package, and the tests of its adapters and of what `npm test` in the folder above does not reach from the
# wheel. The environment with the frameworks is made once for each requirements-dev.txt and Python, in the user's cache. With `--write`, it
# writes the generated part of the client and docs/python.md instead.
set -euo pipefail
cd "$(dirname "$0")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/agent-fleet
venv=$cache/python-check-$(python3 -c '
import hashlib, pathlib, sys
key = sys.version + sys.prefix + pathlib.Path("requirements-dev.txt").read_text()
print(hashlib.sha256(key.encode()).hexdigest()[:16])')

if [ ! -d "$venv" ]; then
  mkdir -p "$cache"
  staging=$(mktemp -d "$cache/.python-check-XXXXXX")
  trap 'rm -rf "$staging"' EXIT
  python3 -m venv "$staging"
  "$staging/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: -r requirements-dev.txt
  python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$staging" "$venv" || [ -d "$venv" ] # another run may have been quicker
fi
python() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=src MYPYPATH=src "$venv/bin/python" "$@"; }

node ../scripts/prepare.mjs # the client is generated from the contracts in dist/
if [ "${1:-}" = --write ]; then
  python ../scripts/clients/write_python.py
  python reference.py
  exit
fi
python ../scripts/clients/write_python.py --check
python reference.py --check
python -m ruff check --no-cache . ../scripts/clients ../test/sdk ../bench/campaign
readme=$(mktemp -d)
trap 'rm -rf "$readme"' EXIT
python tests/readme_programs.py "$readme"
python -m mypy --cache-dir "$venv/mypy-cache" "$readme" src examples tests reference.py ../scripts/clients ../test/sdk/wire ../test/sdk/python ../bench/campaign
python -m pytest --quiet -p no:cacheprovider -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true tests
