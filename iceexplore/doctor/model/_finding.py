"""A finding: one fault, where it is, what it means for readers, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from dataclasses import field as dataclass_field
from typing import Any

import numpy as np
import numpy.typing as npt

from iceexplore.doctor.model._hits import Hits
from iceexplore.doctor.model._modes import MODES
from iceexplore.errors import PROBLEM_KINDS, Effect, Problem, narrowed, visible

__all__ = ["EFFECTS", "Finding", "Since", "finding_of", "rank"]

#: Severities of findings, worst first: readers fail, return wrong rows, are slow, or are not affected at all.
EFFECTS: tuple[Effect, ...] = ("fail", "wrong", "slow", "untidy")
#: The maximum number of places that a finding lists; `Finding.count` counts all of them.
MOST_PLACES = 10


#: Attributes of findings that are lists in JSON.
_LISTS = frozenset({"modes", "places", "snapshots", "refs", "partitions"})
#: Attributes of findings that reports written by earlier versions of iceexplore do not have.
_ADDED = frozenset({"rows", "partitions", "partition_count"})
#: Codes of findings that report a lost file. No metadata records when a file was lost. So if the file is a manifest,
#: `Finding.since` is the first snapshot that lists the manifest.
LISTED_SINCE = frozenset({"file-missing"})


@dataclass(frozen=True)
class Since:
    """The commit that introduced a fault.

    Attributes
    ----------
    snapshot_id
        The id of the snapshot that this commit created; None if this snapshot may have expired, or if the fault is in
        a metadata JSON file.
    timestamp_ms
        The timestamp of this snapshot, in milliseconds since the epoch (UTC); None if ``snapshot_id`` is None.
    operation, engine
        The operation and the engine that the snapshot's summary states; None if it does not state them.
    metadata_file
        For faults in a metadata JSON file, the location of the first metadata file that has the fault; None for other
        faults.
    at_latest
        True if the fault may be older than this commit or file: earlier manifest lists or metadata files are lost, or
        reading them would not reveal the fault.
    """

    snapshot_id: int | None = None
    timestamp_ms: int | None = None
    operation: str | None = None
    engine: str | None = None
    metadata_file: str | None = None
    at_latest: bool = False


@dataclass(frozen=True)
class Finding:
    """One fault of a table.

    Attributes
    ----------
    code
        A key of `iceexplore.errors.PROBLEM_KINDS`, which never changes its meaning.
    modes
        Numbers of modes. A mode is one way in which tables break; ``docs/doctor.md`` and `MODES` list all of them.
    severity
        ``fail`` (readers fail), ``wrong`` (readers return wrong rows or numbers), ``slow``, ``untidy``.
    where
        The first place: the location of a file. A fault in only a part of the file has a suffix that names the part,
        for example ``#entry 3`` for a manifest or ``#snapshot 17`` for a metadata file.
    field, found, expected
        ``field``: the field with the fault, by its name in the spec. ``found``: usually the wrong value of the field;
        but if an entry states another file size or row count than its file has, it is the actual size or count of the
        file. ``expected``: the value with which ``found`` was compared. Each of the three is None if it does not apply.
    text
        The fault in a sentence.
    means
        The consequence for readers, with the engines that are known to fail or to return wrong rows.
    advice
        What to do.
    count
        The number of places.
    places
        The first ten places.
    snapshots, refs
        Ids of the affected snapshots, oldest first, and the branches and tags that point to one of them.
    rows
        The number of rows that the fault concerns in the newest affected snapshot, computed from record counts in the
        metadata. It is the sum of the rows of the data files at the finding's places and of the rows that the delete
        files and deletion vectors there delete (0 for those that apply to no data file). A file counts once. If a place
        is a whole manifest, the files of its live entries count; if the manifest cannot be read completely, the number
        of rows that its row in the manifest list states.
        None if the number is unknown (equality deletes, lost delete manifests, missing or impossible counts), and for
        faults of the metadata file or of a whole manifest list.
    partitions
        The first ten partitions of the files whose rows `rows` counts, as ``k=a``. Unpartitioned files are listed as
        ``unpartitioned``, but only beside partitions of other files.
    partition_count
        The number of all partitions of these files; None if it is unknown, and for faults of the metadata file or of
        a whole manifest list.
    since
        The commit that introduced the fault, or, for a missing manifest, the first snapshot that lists it; None if
        it is unknown or was not searched for.
    follows
        Findings that this fault causes. The report lists them only here.
    """

    code: str
    modes: tuple[int, ...]
    severity: Effect
    where: str
    text: str
    field: str | None = None
    found: str | None = None
    expected: str | None = None
    means: str = ""
    advice: str = ""
    count: int = 1
    places: tuple[str, ...] = ()
    snapshots: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()
    rows: int | None = None
    partitions: tuple[str, ...] = ()
    partition_count: int | None = None
    since: Since | None = None
    follows: tuple[Finding, ...] = ()
    #: All places, which repairs need. None if `places` has all of them. Also None if the finding was read from JSON, or
    #: is about the table's health (nothing is damaged, but the table is slow or large): then only `places` are kept.
    _hits: Hits | None = dataclass_field(default=None, repr=False, compare=False)

    @property
    def title(self) -> str:
        """The title of this kind of fault, which depends only on `code`."""
        return PROBLEM_KINDS[self.code].title

    @property
    def reported(self) -> tuple[str, ...]:
        """Public issues about the same fault, such as ``apache/iceberg#7007``. They may describe remedies."""
        found = (issue for mode in self.modes if mode in MODES for issue in MODES[mode].issues)
        return tuple(dict.fromkeys(found))

    @property
    def location(self) -> str:
        """The location of the first file with the fault: `where` without a suffix such as ``#entry 3``."""
        return self.where.partition("#")[0]

    @property
    def hits(self) -> Hits:
        """All places of the finding; in two cases, only those in `places`.

        These are findings that were read from JSON, and findings about the table's health (nothing is damaged, but the
        table is slow or large).
        """
        if self._hits is not None:
            return self._hits
        return Hits(places=self.places or (self.where,), complete=self.count <= max(1, len(self.places)))

    def __str__(self) -> str:
        evidence = "".join(
            f" ({name} {value})"
            for name, value in (("found", self.found), ("expected", self.expected))
            if value is not None
        )
        times = "" if self.count == 1 else f" ({self.count:,} places)"
        return visible(f"{self.severity}: {self.text}{evidence}{times} [{self.code}] {self.where}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: text, numbers, lists and dictionaries, as ``report.to_json()`` writes them."""
        values = asdict(replace(self, _hits=None))
        del values["_hits"]
        values["title"] = self.title
        values["follows"] = [one.to_dict() for one in self.follows]
        for name in _LISTS:
            values[name] = list(values[name])
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Finding:
        """Return a finding from the values that `to_dict` returned.

        Raises
        ------
        KeyError, TypeError
            The values are not those of a finding.
        """
        known = [one.name for one in fields(cls) if one.name != "_hits"]
        given = {name: values[name] for name in known if name in values or name not in _ADDED}
        for name in _LISTS & given.keys():
            given[name] = tuple(given[name])
        given["since"] = None if given["since"] is None else Since(**given["since"])
        given["follows"] = tuple(map(cls.from_dict, given["follows"]))
        if given["code"] not in PROBLEM_KINDS or given["severity"] not in EFFECTS:
            raise TypeError(f"unknown code {given['code']!r} or unknown severity {given['severity']!r}")
        return cls(**given)


def finding_of(
    item: Problem,
    *,
    modes: Iterable[int] | None = None,
    snapshots: Iterable[int] = (),
    refs: Iterable[str] = (),
    places: Iterable[str] = (),
    count: int = 1,
    rows: npt.NDArray[np.int64] | None = None,
    hits: Hits | None = None,
) -> Finding:
    """Convert a problem to a finding; its severity, meaning and advice come from the registry of codes.

    Parameters
    ----------
    item
        The problem. It may list several entries of one manifest (``item.entries``). These entries become the places of
        the finding if neither ``rows`` nor ``hits`` is given; if ``item.where`` names one of these entries, such as
        ``#entry 3``, ``places`` and ``count`` are then ignored.
    modes
        The numbers of the finding's modes (see `MODES`); by default those that the registry of codes has for the
        problem's code and field.
    snapshots
        The ids of the affected snapshots.
    refs
        The branches and tags that point to one of these snapshots.
    places
        The places of the finding; those after the first ten are ignored. By default only the place of the problem.
    count
        The number of all places.
    rows
        All places, if they are entries, as row numbers in ``Examination.files``.
    hits
        All places, if there are more than ten. It is ignored if ``rows`` is given.
    """
    if rows is not None:
        hits = Hits(rows=(np.asarray(rows, np.int64),))
    elif hits is None and item.entries is not None:
        file, of_entries, _ = item.where.partition("#entry ")
        hits = Hits(entries=((file, item.entries),))
        if of_entries:
            first = (f"{file}#entry {ordinal}" for ordinal in item.entries[:MOST_PLACES].tolist())
            places, count = dict.fromkeys((item.where, *first)), len(item.entries)
    kind = PROBLEM_KINDS[item.code]
    effect, known = narrowed(item.code, item.field, item.severity)
    return Finding(
        code=item.code,
        modes=tuple(known if modes is None else modes),
        severity=effect,
        where=item.where,
        text=item.text,
        field=item.field,
        found=item.found,
        expected=item.expected,
        means=kind.means,
        advice=kind.remedy,
        count=count,
        places=tuple(places)[:MOST_PLACES] or (item.where,),
        snapshots=tuple(snapshots),
        refs=tuple(refs),
        _hits=hits,
    )


def snapshots_text(snapshots: tuple[int, ...], refs: Iterable[str]) -> str:
    """Format the ids of affected snapshots and their refs as text, such as ``2 snapshots, 17 and 18 (main)``.

    Parameters
    ----------
    snapshots
        The ids, oldest first; at least one. Of more than two, only the first and the last are in the text.
    refs
        The branches and tags that point to one of the snapshots.
    """
    first, last, count = snapshots[0], snapshots[-1], len(snapshots)
    names = f"{count:,} snapshots, {first} {'and' if count == 2 else 'to'} {last}" if count > 1 else f"snapshot {first}"
    return f"{names} ({', '.join(refs) or 'no branch or tag'})"


def rank(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings sorted, the worst first.

    They are sorted by severity. Within a severity, findings about damage come before findings about the table's health
    (nothing is damaged, but the table is slow or large). Within these groups, the findings with the most affected
    branches and tags come first; if these are equally many, those with the most snapshots, then with the most places.
    """
    return sorted(
        findings,
        key=lambda f: (
            EFFECTS.index(f.severity),
            PROBLEM_KINDS[f.code].health,
            -len(f.refs),
            -len(f.snapshots),
            -f.count,
            f.code,
            f.where,
        ),
    )


def with_follows(finding: Finding, more: Iterable[Finding]) -> Finding:
    """Return a copy of the finding with ``more`` appended to `follows`, the findings that its fault causes."""
    return replace(finding, follows=(*finding.follows, *more))
