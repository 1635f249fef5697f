#!/bin/sh
# Print constraints: the names and versions that the Python $1 has installed, and nothing else.
set -eu
echo "# Made by 'make constraints'. The versions that are tested together."
"$1" -m pip list --format=freeze --exclude iceexplore --exclude pip --exclude setuptools --exclude wheel |
    LC_ALL=C sort -f
