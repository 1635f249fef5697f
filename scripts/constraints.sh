#!/bin/sh
# Print constraints: the names and versions that the Python $1 has installed, and nothing else.
set -eu
version=$("$1" -c "import platform; print(platform.python_version())")
echo "# Made by 'make constraints' with Python $version (newer ones take these versions too). Tested together."
"$1" -m pip list --format=freeze --exclude iceexplore --exclude pip --exclude setuptools --exclude wheel |
    LC_ALL=C sort -f
