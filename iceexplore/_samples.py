"""The tables that ship in the package (made by ``scripts/make_samples.py``)."""

from __future__ import annotations

from pathlib import Path

from iceexplore.errors import OptionError

__all__ = ["sample_names", "sample_path"]

_DATA = Path(__file__).parent / "data"


def sample_names() -> list[str]:
    """The names of the tables that ship in the package, sorted."""
    return sorted(folder.name for folder in _DATA.iterdir() if (folder / "metadata").is_dir())


def sample_path(name: str = "trips") -> Path:
    """Where a sample table's folder is.

    ``trips`` has invented bike trips and a history of partition and schema evolution, position deletes,
    an upgrade to v3, deletion vectors, a branch, a tag and a statistics file.

    Raises
    ------
    OptionError
        No sample of that name; the message lists those there are.
    """
    names = sample_names()
    if name not in names:
        raise OptionError(f"no sample {name!r}: there are {', '.join(names)}")
    return _DATA / name
