#!/bin/sh
# Do what Binder does, without its image: a new environment, postBuild, JupyterLab's first page, the quickstart's cells.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

sh scripts/venv.sh "$work/venv" "${1:-}"
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory "$work" --one-top-level=repo
PATH="$work/venv/bin:$PATH"
export PATH
cd "$work/repo"
# What another environment of this machine was made of need not be fetched and built again.
UV_NO_CACHE=false binder/postBuild

jupyter nbconvert --to notebook --execute --stdout notebooks/01_quickstart.ipynb >/dev/null
echo "check-binder: the quickstart runs"

port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
jupyter lab --no-browser --allow-root --ip=127.0.0.1 --port="$port" --ServerApp.port_retries=0 --IdentityProvider.token=check >"$work/lab.log" 2>&1 &
server=$!
python - "$port" <<'PYTHON' || { cat "$work/lab.log" >&2; exit 1; }
import sys, time, urllib.error, urllib.request

url = f"http://127.0.0.1:{sys.argv[1]}/?token=check"
for _ in range(120):
    try:
        with urllib.request.urlopen(url) as response:
            final = response.geturl()
        break
    except urllib.error.HTTPError:
        raise
    except OSError:
        time.sleep(0.5)
else:
    sys.exit("check-binder: JupyterLab did not start")
if "/lab/tree/notebooks/01_quickstart.ipynb" not in final:
    sys.exit(f"check-binder: JupyterLab opened on {final}")
print("check-binder: JupyterLab opens on the quickstart")
PYTHON
