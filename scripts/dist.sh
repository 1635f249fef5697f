#!/bin/sh
# Build the sdist and, from it, the wheel; check both; install the wheel in an empty environment and open the sample.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf dist
sh scripts/venv.sh "$work/build" "${1:-}"
"$work/build/bin/python" -m pip --disable-pip-version-check install --quiet build twine
"$work/build/bin/python" -m build --outdir dist . >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
"$work/build/bin/python" -m twine check --strict dist/*

"$work/build/bin/python" - <<'PYTHON'
import pathlib, sys, tarfile, zipfile

(wheel,), (sdist,) = pathlib.Path("dist").glob("*.whl"), pathlib.Path("dist").glob("*.tar.gz")
inside = set(zipfile.ZipFile(wheel).namelist())
source = {name.partition("/")[2] for name in tarfile.open(sdist).getnames()}
wanted = {str(path) for path in pathlib.Path("iceexplore").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
for what, lacked in (
    ("the wheel lacks", wanted - inside),
    ("the wheel has what is no part of the package", {n for n in inside if not n.startswith("iceexplore")}),
    ("the sdist lacks", (wanted | {"README.md", "LICENSE", "pyproject.toml", "CHANGELOG.md"}) - source),
):
    if lacked:
        sys.exit(f"dist: {what}: {', '.join(sorted(lacked)[:10])}")
for path in (wheel, sdist):
    print(f"dist: {path.name}, {path.stat().st_size:,} bytes")
PYTHON

sh scripts/venv.sh "$work/empty" "${1:-}"
"$work/empty/bin/python" -m pip --disable-pip-version-check install --quiet --constraint constraints.txt dist/*.whl
cd "$work" # where the package can come from the environment alone
unset PYTHONPATH
"$work/empty/bin/python" -I - <<'PYTHON'
import sys
import iceexplore as ix

assert ix.__file__.startswith(sys.prefix), ix.__file__
t = ix.sample("trips")
print(f"dist: iceexplore {ix.__version__} installed; the sample has {t.count():,} rows and {len(t.inspect.files())} files")
assert t.tree().to_svg() and t.explore().settle(60) and not t.problems
PYTHON
