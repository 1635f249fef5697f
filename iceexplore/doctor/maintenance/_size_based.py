"""Select and group files by their sizes, as Iceberg's ``SizeBasedFileRewritePlanner`` does.

Java: ``org.apache.iceberg.actions.SizeBasedFileRewritePlanner`` and ``org.apache.iceberg.util.BinPacking`` (1.11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.doctor.maintenance._plan import ARGUMENT, DEFAULT, PROPERTY, Threshold, sql_text
from iceexplore.errors import OptionError, nearest
from iceexplore.graph import human_bytes
from iceexplore.render import CardTable

__all__ = [
    "Accuracy",
    "Longs",
    "Mask",
    "ProcedureOptions",
    "SIZE_OPTIONS",
    "SizeRules",
    "group_table",
    "packed",
    "summed",
]

Longs = npt.NDArray[np.int64]
#: The accuracy of the number of new files.
Accuracy = Literal["exactly", "at least", "at most", "about"]
Mask = npt.NDArray[np.bool_]

_LONG_MAX = 2**63 - 1
_INT_MAX = 2**31 - 1
_SPLIT_OVERHEAD = 5 * 1024
_GROUP_BYTES = 100 * 1024**3
_SHOWN_GROUPS = 20

#: Options of every procedure that rewrites files by size.
SIZE_OPTIONS = (
    "target-file-size-bytes", "min-file-size-bytes", "max-file-size-bytes", "min-input-files", "rewrite-all",
    "max-file-group-size-bytes", "max-file-group-input-files", "rewrite-job-order",
)  # fmt: skip
_ORDERS = ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")


class ProcedureOptions:
    """The options of a Spark procedure, checked and converted as in Java, and the source of each value.

    Parameters
    ----------
    given
        The values of options, by name; names may have underscores instead of hyphens and dots.
    known
        The names of the procedure's options.
    properties
        The table's properties.

    Attributes
    ----------
    given
        The given values as the texts that Spark SQL passes on, by name.
    thresholds
        The options that `number` and `ratio` have read, with their values, in the order of reading. Options that `flag`
        and `number_if_given` have read are included only if they were given.

    Raises
    ------
    OptionError
        A name is unknown.
    """

    def __init__(self, given: Mapping[str, object], known: tuple[str, ...], properties: Mapping[str, str]) -> None:
        spelled = {name.replace(".", "-"): name for name in known}
        names = {name: name.replace("_", "-").replace(".", "-") for name in given}
        self.given = {
            spelled.get(names[name], names[name]): _text(value) for name, value in given.items() if value is not None
        }
        self.properties = properties
        self.thresholds: list[Threshold] = []
        for name in self.given:
            if name not in known:
                raise OptionError(f"unknown option {name!r}; {nearest(name, known)}")

    def number(
        self, name: str, default: int, *, least: int = 1, most: int = _LONG_MAX, source: str = DEFAULT, key: str = ""
    ) -> int:
        """Return the value of an option that is a whole number, and add it to `thresholds`.

        Parameters
        ----------
        name
            The name of the option.
        default
            The value if neither the option nor the table property ``key`` is given.
        least, most
            The lowest and the highest value that Spark's procedure accepts.
        source
            A description of where ``default`` comes from, for the threshold.
        key
            The table property whose value is used if the option is not given; empty if there is none.

        Raises
        ------
        OptionError
            The value of the option or of the table property is not a whole number from ``least`` to ``most``.
        """
        text, origin = self.given.get(name), ARGUMENT
        if text is None and key in self.properties:
            text, origin = self.properties[key], f"{PROPERTY} {key}"
        value: int | None = default
        if text is not None:
            value = int(text) if text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 21 else None
        if value is None or not least <= value <= most:
            where = name if origin == ARGUMENT else origin
            raise OptionError(f"{where}={text!r:.60}: Spark's procedure needs a whole number from {least} to {most}")
        shown = human_bytes(value) if name.endswith("-bytes") else ""
        self.thresholds.append(Threshold(name, str(value), source if text is None else origin, shown))
        return value

    def number_if_given(self, name: str, default: int, *, least: int = 1, most: int = _LONG_MAX) -> int:
        """Return the value of an option that is a whole number; if it was not given, return ``default``.

        Unlike `number`, add the option to `thresholds` only if it was given, and use no table property. The parameters
        and errors are those of `number`.
        """
        return self.number(name, default, least=least, most=most) if name in self.given else default

    def ratio(self, name: str, default: float, *, most: float = 1.0) -> float:
        """Return the value of an option that is a number above 0 and at most ``most``, and add it to `thresholds`.

        If the option was not given, its value is ``default``.

        Raises
        ------
        OptionError
            The option is not such a number.
        """
        text = self.given.get(name)
        try:
            value = default if text is None else float(text)
        except ValueError:
            value = -1.0
        if not 0 < value <= most:
            raise OptionError(f"{name}={text!r:.60}: give a number above 0, and at most {most:g}")
        self.thresholds.append(Threshold(name, f"{value:g}", DEFAULT if text is None else ARGUMENT))
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Return the value of an option that is true or false; as in Java, all texts but ``true`` are false."""
        if name not in self.given:
            return default
        value = self.given[name].lower() == "true"
        self.thresholds.append(Threshold(name, str(value).lower(), ARGUMENT))
        return value

    def sql(self) -> str | None:
        """Return the given options as a map in Spark SQL; None if there are none."""
        pairs = (f"{sql_text(name)}, {sql_text(value)}" for name, value in self.given.items())
        return f"map({', '.join(pairs)})" if self.given else None

    def order(self) -> str:
        """Return the value of the option ``rewrite-job-order``.

        Raises
        ------
        OptionError
            There is no such order.
        """
        text = self.given.get("rewrite-job-order", "none").lower().replace("_", "-")
        if text not in _ORDERS:
            raise OptionError(f"rewrite-job-order={text[:40]!r}: give one of {', '.join(_ORDERS)}")
        return text


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class SizeRules:
    """The thresholds that decide which files are rewritten, and how they are grouped.

    Attributes
    ----------
    target, least, most
        ``target-file-size-bytes``, ``min-file-size-bytes`` and ``max-file-size-bytes``: files that are smaller than the
        minimum or larger than the maximum are selected.
    min_input_files
        A group of at least two files is rewritten if it has at least this number of files, whatever its bytes.
    rewrite_all
        Whether all files are rewritten, whatever their sizes.
    max_group_bytes, max_group_files
        The maximum bytes and the maximum number of files of a group.
    order
        ``rewrite-job-order``: the order in which groups are rewritten.
    factor
        ``compression-factor`` of a sort: the expected size of the output, relative to the input.
    """

    target: int
    least: int
    most: int
    min_input_files: int
    rewrite_all: bool
    max_group_bytes: int
    max_group_files: int
    order: str = "none"
    factor: float = 1.0

    @classmethod
    def of(cls, options: ProcedureOptions, key: str, default: int) -> SizeRules:
        """Return the thresholds that follow from a procedure's options and the table's properties.

        Parameters
        ----------
        key, default
            The name of the table property that sets the target size, and Iceberg's default size in bytes.

        Raises
        ------
        OptionError
            A value is invalid, or Spark's procedure would refuse the combination.
        """
        target = options.number("target-file-size-bytes", default, key=key)
        of = f"{DEFAULT}, relative to the target"
        least = options.number("min-file-size-bytes", int(target * 0.75), least=0, source=f"75 %: {of}")
        most = options.number("max-file-size-bytes", int(target * 1.8), least=0, source=f"180 %: {of}")
        if not least < target < most:
            raise OptionError(
                f"target-file-size-bytes ({target}) must be above min-file-size-bytes ({least}) and below "
                f"max-file-size-bytes ({most})"
            )
        return cls(
            target,
            least,
            most,
            options.number("min-input-files", 5, most=_INT_MAX),
            options.flag("rewrite-all"),
            options.number("max-file-group-size-bytes", _GROUP_BYTES),
            options.number_if_given("max-file-group-input-files", _LONG_MAX),
            options.order(),
            options.ratio("compression-factor", 1.0, most=1e6) if "compression-factor" in options.given else 1.0,
        )

    @property
    def write_most(self) -> int:
        """The size at which a writer starts the next file: halfway between target and maximum."""
        return int(self.target + (self.most - self.target) * 0.5)

    def outside(self, sizes: Longs) -> Mask:
        """Return a mask of the files that are smaller than the minimum or larger than the maximum.

        Parameters
        ----------
        sizes
            For each file, its bytes.
        """
        found: Mask = (sizes < self.least) | (sizes > self.most)
        return found

    def worth(self, count: Longs, size: Longs) -> Mask:
        """Return a mask of the groups that are rewritten because of their numbers of files or their bytes.

        Parameters
        ----------
        count, size
            For each group, its number of files, and their total bytes.
        """
        several = count > 1
        enough_files = several & (count >= self.min_input_files)
        enough_bytes = several & (size > self.target)
        found: Mask = enough_files | enough_bytes | (size > self.most)
        return found

    def expected_files(self, size: Longs) -> Longs:
        """Return, for groups with these total bytes, the number of new files to expect (``expectedOutputFiles``)."""
        size = size if self.factor == 1.0 else (size * self.factor).astype(np.int64)
        down = size // self.target
        rest = size - down * self.target
        up = down + (rest > 0)
        average = size // np.maximum(down, 1)
        keeps_rest = (rest > self.least) | (average >= min(1.1 * self.target, float(self.write_most)))
        found: Longs = np.where(size < self.target, 1, np.where(keeps_rest, up, down))
        return np.maximum(found, 1)

    def split_size(self, size: Longs) -> Longs:
        """Return, for groups with these total bytes, the bytes that one Spark task reads (``inputSplitSize``)."""
        estimate = size // self.expected_files(size) + _SPLIT_OVERHEAD
        found: Longs = np.where(estimate < self.target, self.target, np.minimum(estimate, self.write_most))
        return found

    def arranged(self, count: Longs, size: Longs) -> Longs:
        """Return the indices of the groups, in the order that ``rewrite-job-order`` prescribes.

        Parameters
        ----------
        count, size
            For each group, its number of files, and their total bytes.
        """
        if self.order == "none":
            return np.arange(len(count), dtype=np.int64)
        by = size if self.order.startswith("bytes") else count
        return np.argsort(by if self.order.endswith("asc") else -by, kind="stable").astype(np.int64)


def packed(sizes: Longs, partition: Longs, max_bytes: int, max_files: int) -> Longs:
    """Put files into groups as ``BinPacking.ListPacker`` does with a lookback of 1; return each file's group, from 0.

    Within a partition, files go to the current group until it is full, so a group consists of consecutive files. A
    file that exceeds the maximum size of a group forms a group by itself.

    Parameters
    ----------
    sizes, partition
        For each file, its bytes and the number of its partition. Files of one partition are adjacent.
    max_bytes, max_files
        The maximum bytes and the maximum number of files of a group.
    """
    count = len(sizes)
    first = np.concatenate([np.ones(min(1, count), dtype=np.bool_), partition[1:] != partition[:-1]])
    starts = np.flatnonzero(first)
    stops = np.append(starts[1:], count)
    before = np.concatenate([[0], np.cumsum(sizes)])
    too_much = (before[stops] - before[starts] > max_bytes) | (stops - starts > max_files)
    for at in np.flatnonzero(too_much).tolist():
        start, stop = int(starts[at]), int(stops[at])
        while start < stop:
            first[start] = True
            full = int(np.searchsorted(before, before[start] + max_bytes, side="right")) - 1
            start = max(start + 1, min(full, start + max_files))
    return np.cumsum(first).astype(np.int64) - 1


def summed(group: Longs, values: Longs, count: int) -> Longs:
    """Return the sum of the values of each group; sums of large whole numbers are not rounded.

    Parameters
    ----------
    group
        For each value, the number of its group, from 0.
    count
        The number of groups.
    """
    out = np.zeros(count, dtype=np.int64)
    np.add.at(out, group, values)
    return out


def group_table(groups: pa.Table, more: Sequence[str]) -> CardTable:
    """Return a card's table of the first groups of a plan.

    Parameters
    ----------
    groups
        A row per group: ``group``, ``partition``, ``files``, ``bytes`` and other columns.
    more
        The other columns to show.
    """
    names = ["group", "partition", "files", "bytes", *more]
    rows = build.to_pylist(groups.slice(0, _SHOWN_GROUPS).select(names))
    return CardTable(
        "Groups",
        tuple("size" if name == "bytes" else name.replace("added_files", "new files") for name in names),
        tuple(tuple(human_bytes(row[n]) if n == "bytes" else str(row[n]) for n in names) for row in rows),
        note=f"the first {_SHOWN_GROUPS} of {len(groups):,}; to_pandas() has all" if len(groups) > len(rows) else "",
        right=frozenset({0, 2, 3}),
    )
