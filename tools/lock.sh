#!/bin/sh
# Writes the lock files anew from pyproject.toml: every package for every supported Python and
# platform, with the hashes of its files, and nothing about where they come from.
set -eu
cd "$(dirname "$0")/.."
tools=.venv/lock-tools
[ -x "$tools/bin/uv" ] || { .venv/bin/python -m venv "$tools" && "$tools/bin/python" -m pip install --quiet uv; }

compile() {
    "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-annotate --no-header --upgrade --output-file "$@"
}

compile requirements.lock --group dev pyproject.toml
printf '%s\n' editables 'hatchling>=1.27' setuptools wheel | compile requirements-build.lock -
