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

# If Node or Go is installed: Confluent's clients, which the tests use unchanged.
cd tests/system/clients
if command -v npm >/dev/null; then (
    cd node
    rm -f package-lock.json
    npm install --package-lock-only --ignore-scripts --no-audit --no-fund --omit-lockfile-registry-resolved
    node -e '
        const lock = require("./package-lock.json");
        for (const one of Object.values(lock.packages))
            for (const word of ["deprecated", "engines", "funding", "license"]) delete one[word];
        require("fs").writeFileSync("package-lock.json", `${JSON.stringify(lock, null, 2)}\n`);
    '
); fi
if command -v go >/dev/null; then (
    cd go
    go get github.com/confluentinc/confluent-kafka-go/v2@latest
    go mod tidy
); fi
