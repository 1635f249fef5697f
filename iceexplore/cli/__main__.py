"""Run the command ``iceexplore`` as ``python -m iceexplore.cli``."""

from iceexplore.cli import main

main(prog_name="iceexplore")
