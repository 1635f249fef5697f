#!/bin/sh
# Install what the arguments name, as `pip install` takes them, into the environment of the Python $1: with uv, which
# takes a fifth of pip's time, or with pip where uv cannot be had. uv gets pip's settings of where packages come from.
set -u
python=$1
shift
pip() { "$python" -m pip --disable-pip-version-check "$@"; }
setting() { pip config get "global.$1" 2>/dev/null || true; }

if pip install --quiet --constraint constraints.txt uv >/dev/null 2>&1; then
    : "${UV_DEFAULT_INDEX:=${PIP_INDEX_URL:-$(setting index-url)}}"
    : "${UV_INDEX:=${PIP_EXTRA_INDEX_URL:-$(setting extra-index-url)}}"
    : "${UV_FIND_LINKS:=${PIP_FIND_LINKS:-$(setting find-links)}}"
    : "${SSL_CERT_FILE:=${PIP_CERT:-$(setting cert)}}"
    for name in UV_DEFAULT_INDEX UV_INDEX UV_FIND_LINKS SSL_CERT_FILE; do
        eval "value=\$$name"
        if [ -n "$value" ]; then export "${name?}"; else unset "$name"; fi
    done
    "$python" -m uv pip install --quiet --python "$python" "$@" && exit 0
    echo "uv could not install the packages: trying pip" >&2
fi
pip install --quiet "$@"
