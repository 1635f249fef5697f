"""Damage small tables at random and look at them in every way: only errors of iceexplore's own may come.

Each case takes a table made by the project, changes one of its files, reads and draws the table, and puts the file
back. Each case counts the rows in two ways, and looks through some of the other doors; those that take longer come
less often. A case repeats from its number alone: ``python -m scripts.fuzz --seed 7 --first 120 --cases 1``
(``--all`` looks through every door).

With ``--doctor``, cases start from the damages that the doctor's tests register, and go from opening over the check and
its report to the repaired table (`scripts.fuzz.doctor`).
"""

from scripts.fuzz.harness import RESIDENT, run

__all__ = ["RESIDENT", "run"]
