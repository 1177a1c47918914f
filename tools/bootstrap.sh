#!/bin/sh
# Makes .venv with exactly what the lock files list, and this project in it. Run by make.
# A second run with nothing changed takes a fraction of a second.
set -eu
cd "$(dirname "$0")/.."

oldest_java=17
venv=.venv

fail() {
    printf '\n%s\n' "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 69
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 python; do
        if is_new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is needed, and was not found." \
        "Found: $(python3 --version 2>/dev/null || echo 'no python3 at all')" \
        "Debian, Ubuntu:  apt-get install python3 python3-venv" \
        "macOS:           brew install python@3.13" \
        "Elsewhere:       make PYTHON=/path/to/python3.11"
}

check_java() {
    java=java
    [ -z "${JAVA_HOME:-}" ] || java="$JAVA_HOME/bin/java"
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
    if [ -z "$version" ] || [ "$version" -lt "$oldest_java" ]; then
        fail "Java $oldest_java or newer is needed: Kafka, ZooKeeper and Spark run on it." \
            "Found: ${version:+Java $version, as }$java${JAVA_HOME:+ (from JAVA_HOME)}${version:-, which does not run}" \
            "Debian, Ubuntu:  apt-get install openjdk-17-jre-headless" \
            "macOS:           brew install openjdk@17" \
            "Elsewhere:       set JAVA_HOME to a Java $oldest_java"
    fi
}

say() { printf '[setup] %s\n' "$1"; }

if [ -x "$venv/bin/python" ] && is_new_enough "$venv/bin/python"; then
    python="$venv/bin/python"
else
    python=$(find_python)
fi
check_java
wanted=$("$python" -c 'import sys; print(sys.version)' && pwd && cksum requirements-build.lock requirements.lock pyproject.toml)
if [ -f "$venv/complete" ] && [ "$wanted" = "$(cat "$venv/complete")" ]; then
    exit 0
fi
if [ "$python" != "$venv/bin/python" ]; then
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || fail \
        "This Python cannot make virtual environments: $python" \
        "Debian, Ubuntu:  apt-get install python3-venv"
    say "making the virtual environment $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
rm -f "$venv/complete"

# Settings of the user that would interfere with an install into a virtual environment.
export PIP_USER=0 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
unset PYTHONHOME PIP_TARGET PIP_PREFIX 2>/dev/null || true
pip="$venv/bin/python -m pip"
failed="The packages could not be installed; pip's message is above. Run the command again to go on."

say "1/3 build tools"
$pip install --quiet --require-hashes -r requirements-build.lock || fail "$failed"
say "2/3 dependencies from requirements.lock (PySpark is about 450 MB; minutes at first, cached after)"
$pip install --no-build-isolation --no-deps --no-compile --require-hashes -r requirements.lock || fail "$failed"
say "3/3 this project"
$pip install --quiet --no-deps --no-build-isolation -e . || fail "$failed"
printf '%s\n' "$wanted" >"$venv/complete"
say "done"
