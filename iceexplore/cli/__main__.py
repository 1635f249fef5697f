"""``python -m iceexplore.cli`` is the command ``iceexplore``."""

from iceexplore.cli import main

main(prog_name="iceexplore")
