#!/bin/sh
# Make the virtual environment $1 with Python $2 (empty: the first one found that is new enough).
set -eu
venv=$1
wanted=${2:-}
minimum="3, 11"

new_enough() {
    "$1" -c "import sys; sys.exit(sys.version_info < ($minimum))" >/dev/null 2>&1
}

if [ -x "$venv/bin/python" ] && new_enough "$venv/bin/python"; then
    exit 0
fi

python=
for candidate in ${wanted:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    if new_enough "$candidate"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "iceexplore needs Python 3.11 or later, and ${wanted:-python3} is not one." >&2
    echo "Install it, or say where it is: make $(basename "${MAKE_TARGET:-lab}") PYTHON=/path/to/python3.12" >&2
    exit 1
fi

# Debian and Ubuntu split venv off: without python3-venv, `python3 -m venv` makes half an environment.
if ! "$python" -c "import ensurepip, venv" >/dev/null 2>&1; then
    version=$("$python" -c "import sys; print('%d.%d' % sys.version_info[:2])")
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -q
        apt-get install -q -y --no-install-recommends "python$version-venv"
    else
        echo "$python has no venv (Debian and Ubuntu split it off): apt-get install python$version-venv" >&2
        exit 1
    fi
fi
"$python" -m venv --clear "$venv"
