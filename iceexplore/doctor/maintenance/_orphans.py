"""Plan ``remove_orphan_files``: unreferenced files in the table's folder, and referenced files that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits import (
    REFERENCED_SCHEMA,
    Sandbox,
    duration,
    file_kind,
    is_referenced,
    is_synthetic,
    metadata_files,
    path_keys,
    snapshot_files,
)
from iceexplore.doctor.maintenance._files import (
    bytes_of,
    contradictions,
    files_by_kind,
    files_frame,
    kind_table,
    strict,
)
from iceexplore.doctor.maintenance._plan import (
    ARGUMENT,
    DEFAULT,
    EngineCall,
    MaintenanceCost,
    Plan,
    T,
    Threshold,
    Wrap,
    spark_call,
    sql_text,
)
from iceexplore.doctor.maintenance._times import before_ms, spark_timestamp
from iceexplore.errors import FileMissingError, IceexploreError, OptionError, OutsideRootsError, mapping_of
from iceexplore.graph import TableState, amount, human_bytes
from iceexplore.metadata import PartitionSpec, format_ms
from iceexplore.render import CardTable
from iceexplore.storage import Entry, OverlayStorage, canonical, list_versions, reopen, same_location

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MismatchMode", "OrphanPlan", "plan_orphan_files"]

MismatchMode = Literal["error", "ignore", "delete"]
_MODES = ("error", "ignore", "delete")
_DAY = 86_400_000
_SHOWN = 20
#: The maximum number of referenced files outside the listed folder that are looked up one by one.
_MOST_LOOKED_UP = 200
#: Properties that can place files outside the table's folder.
_FOLDERS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path", "write.metadata.path")
#: Schemes that Iceberg treats as equal by default.
_EQUAL_SCHEMES = {"s3n": "s3", "s3a": "s3"}
_ORPHAN_SCHEMA = build.schema([*REFERENCED_SCHEMA, ("modified_at", pa.timestamp("ms", "UTC"))])
_URI = r"^(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):)?(?://(?P<authority>[^/]*))?/"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OrphanPlan(Plan[T]):
    """The files that ``remove_orphan_files`` would delete now, and the referenced files that are missing.

    Attributes
    ----------
    files
        The files that are not referenced and are old enough. An Arrow table: ``location``, ``kind`` (as the file's name
        shows it: ``data``, ``manifest``, ``metadata``, ``puffin``, ``temporary`` or ``other``), ``bytes``,
        ``modified_at``.
    young
        The files that are not referenced, but not old enough: they may belong to a commit that is still running. A
        table like `files`.
    missing
        The referenced files that do not exist. Readers that need these files fail, and no procedure restores them. An
        Arrow table: ``location``, ``kind``, and ``bytes`` as the metadata states them.
    conflicts
        Pairs of different prefixes (scheme and authority): that of a referenced location, and that of a listed file
        whose location is otherwise equal. If there is such a pair, Iceberg refuses to delete anything, unless
        ``equal_schemes``, ``equal_authorities`` or ``prefix_mismatch_mode`` resolve the conflict.
    hidden
        The number of files that the procedure ignores, because their name or folder begins with ``_`` or ``.``.
    older_than_ms
        Files modified before this time, in milliseconds since the epoch, are old enough. But if the table has a newer
        metadata file than the opened one, files are old enough only if they were also modified before the last update
        of the opened table state; then `notes` has a sentence about this.
    """

    procedure = "remove_orphan_files"
    title = "Remove orphan files"

    files: pa.Table = field(repr=False)
    young: pa.Table = field(repr=False)
    missing: pa.Table = field(repr=False)
    conflicts: tuple[tuple[str, str], ...] = ()
    hidden: int = 0
    older_than_ms: int = 0

    @property
    def nothing(self) -> bool:
        """True if no file would be deleted."""
        return not len(self.files)

    @property
    def text(self) -> str:
        """A sentence about what would be deleted, and what is missing."""
        size = "" if self.nothing else f" ({human_bytes(bytes_of(self.files))})"
        text = f"{amount(len(self.files), 'orphan file')}{size}"
        text += f", {len(self.young):,} too young" if len(self.young) else ""
        if len(self.missing):
            text += f"; {amount(len(self.missing), 'referenced file is', 'referenced files are')} missing"
        return text

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per file to delete: ``location``, ``kind``, ``bytes``, ``modified_at``."""
        return files_frame(self.files)

    def young_to_pandas(self) -> pd.DataFrame:
        """Return a row per unreferenced file that is too young: ``location``, ``kind``, ``bytes``, ``modified_at``."""
        return files_frame(self.young)

    def missing_to_pandas(self) -> pd.DataFrame:
        """Return a row per referenced file that does not exist: ``location``, ``kind``, ``bytes``."""
        return files_frame(self.missing)

    def _commit(self, sandbox: Sandbox) -> None:
        """Commit nothing: orphan files are not part of the table's state."""

    def _details(self) -> dict[str, Any]:
        def summary(files: pa.Table) -> dict[str, dict[str, int]]:
            return {kind: {"files": n, "bytes": size} for kind, (n, size) in files_by_kind(files).items()}

        return {
            "older_than_ms": self.older_than_ms,
            "orphans": summary(self.files),
            "too_young": summary(self.young),
            "missing": build.to_pylist(self.missing),
            "conflicts": [list(pair) for pair in self.conflicts],
            "hidden": self.hidden,
        }

    def _tables(self) -> tuple[CardTable, ...]:
        first = build.to_pylist(self.missing.slice(0, _SHOWN))
        more = f"the first {_SHOWN} of {len(self.missing):,}" if len(self.missing) > _SHOWN else ""
        return (
            kind_table("Orphan files", self.files),
            kind_table("Unreferenced, but too young", self.young),
            CardTable(
                "Missing",
                ("file", "kind"),
                tuple((row["location"], row["kind"]) for row in first),
                note=more,
                code=frozenset({0}),
            ),
            CardTable("Conflicting prefixes", ("referenced", "listed"), self.conflicts, code=frozenset({0, 1})),
        )


def plan_orphan_files(
    state: TableState,
    wrap: Wrap[T],
    *,
    now_ms: int,
    older_than: object = "3d",
    location: str | None = None,
    equal_schemes: Mapping[str, str] | None = None,
    equal_authorities: Mapping[str, str] | None = None,
    prefix_mismatch_mode: MismatchMode = "error",
) -> OrphanPlan[T]:
    """Plan the removal of orphan files.

    Parameters
    ----------
    older_than
        An age or a time; only files modified before it are orphans.
    location
        The folder to list; by default the table's.
    equal_schemes, equal_authorities, prefix_mismatch_mode
        The procedure's arguments with these names.

    Raises
    ------
    OptionError
        An argument is invalid.
    OutsideRootsError
        ``location`` is outside the folders that may be read.
    FormatError, FileMissingError
        A manifest list or manifest is damaged or missing, so that it is unknown which files are needed; or ``location``
        does not exist.
    """
    if prefix_mismatch_mode not in _MODES:
        raise OptionError(
            f"prefix_mismatch_mode={prefix_mismatch_mode!r}: choose one of {', '.join(map(repr, _MODES))}"
        )
    prefixes = _Prefixes.of(equal_schemes, equal_authorities)
    limit = before_ms(older_than, now_ms)
    notes: list[str] = []
    # List the files first, and only then look for newer commits and read what the table references. A file that a
    # commit adds after the listing is not in the list, so it cannot be mistaken for an orphan.
    base = (location or state.metadata.location).rstrip("/")
    listed = _listed(state, base, given=location is not None, notes=notes)
    folder, entries = ("", []) if listed is None else listed
    safe = min(limit, _newer_commit(state, notes, limit))
    reading = strict(state)
    references = pa.concat_tables([snapshot_files(reading), metadata_files(state)])
    notes += contradictions(reading)
    needed = is_referenced(state.storage, entries, references["location"])
    tails = _tails(state, folder, base, entries)
    seen = _visible(tails, state.metadata.partition_specs)
    times = np.array([-1 if e.modified_ms is None else e.modified_ms for e in entries], np.int64)
    if undated := int(np.sum(seen & ~needed & (times < 0))):
        notes.append(f"{amount(undated, 'file')} without a modification time: left out, because the age is unknown.")
    doubtful, conflicts = _conflicting(state, base, entries, references, prefixes)
    if prefix_mismatch_mode == "delete":
        needed = needed & ~doubtful
        conflicts = ()
    elif prefix_mismatch_mode == "ignore":
        conflicts = ()
    loose = seen & ~needed & (times >= 0)
    refused = state.metadata.properties.get("gc.enabled", "true").lower() == "false"
    if refused:
        notes.append(
            "gc.enabled is false: engines delete no orphan files, because other tables may use this table's files."
        )
    if conflicts:
        notes.append(
            "Iceberg refuses to delete anything: some referenced files differ from listed ones only in scheme or "
            "authority. Pass equal_schemes=, equal_authorities= or prefix_mismatch_mode=."
        )
    files = _table(base, tails, entries, loose & (times < safe))
    notes += [*_strangers(state, files), *_unlisted(state, base)]
    return OrphanPlan(
        state=state,
        wrap=wrap,
        files=files,
        young=_table(base, tails, entries, loose & (times >= safe)),
        missing=_missing(state, references, None if listed is None else entries, folder, notes),
        conflicts=conflicts,
        hidden=int(np.sum(~seen)),
        older_than_ms=limit,
        reasons=(
            Threshold("older_than", str(limit), _source(older_than), format_ms(limit)),
            Threshold("equal_schemes", prefixes.shown(), DEFAULT if not equal_schemes else ARGUMENT),
            Threshold(
                "prefix_mismatch_mode",
                prefix_mismatch_mode,
                DEFAULT if prefix_mismatch_mode == "error" else ARGUMENT,
            ),
        ),
        cost=MaintenanceCost(files_freed=len(files), bytes_freed=bytes_of(files)),
        calls=()
        if refused
        else tuple(_calls(state, limit, now_ms, location, equal_schemes, equal_authorities, prefix_mismatch_mode)),
        notes=tuple(notes),
    )


# Listed files ---------------------------------------------------------------------------------------------------------


def _listed(state: TableState, base: str, *, given: bool, notes: list[str]) -> tuple[str, list[Entry]] | None:
    """Return the real path of the folder to list, and the files under it; None if it cannot be listed.

    Parameters
    ----------
    base
        The location of the folder: the table's location, or the location that the user passed.
    given
        True if the user passed the location. If this is false, and the table's location is outside the folders that may
        be read, the folder from which the table was opened is listed instead.
    notes
        A note is added if the folder cannot be listed, or if another one is listed instead.

    Raises
    ------
    OutsideRootsError, FileMissingError
        The location that the user passed is outside the folders that may be read, or does not exist.
    """
    storage = state.storage
    try:
        folder = storage.resolve(base)
    except OutsideRootsError:
        if given:
            raise
        folder = storage.folder  # the table was opened by its metadata file: only the file's folder may be read
        notes.append(f"Only {folder} was listed: the table's location is outside the folders that may be read.")
    try:
        entries = storage.entries(folder, recursive=True)
    except IceexploreError as error:
        if given and isinstance(error, FileMissingError):
            raise
        notes.append(f"{folder} cannot be listed, so orphan files are unknown: {error}")
        return None
    return folder, [e for e in entries if not e.is_folder]


def _tails(state: TableState, folder: str, base: str, entries: Sequence[Entry]) -> AnyArray:
    """Return, for each listed file, its path below the listed folder, beginning with a slash.

    Parameters
    ----------
    folder
        The real path of the folder.
    base
        The location of the folder, as the table's metadata spells it.
    """
    start = len(folder.rstrip("/"))
    if not isinstance(state.storage, OverlayStorage):
        return pa.array([e.real[start:] for e in entries], pa.string())
    below = folder.rstrip("/") + "/"
    spelt = state.storage.unresolve
    return pa.array(
        [e.real[start:] if e.real.startswith(below) else spelt(e.real).removeprefix(base) for e in entries], pa.string()
    )


def _visible(tails: AnyArray, specs: Sequence[PartitionSpec]) -> npt.NDArray[np.bool_]:
    """Return a mask of the listed files that the procedure considers: all files that are not hidden.

    A file is hidden if its name, or the name of a folder between the listed folder and the file, begins with ``_`` or
    ``.``. The folders of partition values are an exception: if a partition field has the name ``_day``, files in the
    folder ``_day=2024-01-31`` are not hidden.

    Parameters
    ----------
    tails
        For each listed file, its path below the listed folder, beginning with a slash.
    specs
        All partition specs of the table.
    """
    names = sorted({f.name for spec in specs for f in spec.fields if f.name.startswith(("_", "."))})
    if names:
        pattern = "/(?:" + "|".join(re.escape(f"{name}=") for name in names) + ")"
        tails = pc.replace_substring_regex(tails, pattern, "/shown")
    return ~np.asarray(pc.match_substring_regex(tails, "/[_.]"), bool)


def _newer_commit(state: TableState, notes: list[str], limit: int) -> int:
    """Return a time, in milliseconds since the epoch: files modified at or after it are too young to be orphans.

    Usually, this is ``limit``. But the table may have a newer metadata file than that of ``state``. The commit that
    wrote it may have written other files, too, which ``state`` does not reference. So files that were modified since
    the last update of ``state`` are too young, and the time of this update is returned if it is before ``limit``.

    Newer metadata files are ignored if a catalog still points to the metadata file of ``state`` (`_is_current`).

    Parameters
    ----------
    notes
        A note is added if there is a newer metadata file that is not ignored.
    limit
        The time that follows from ``older_than``, in milliseconds since the epoch.
    """
    if isinstance(state.storage, OverlayStorage):
        return limit
    number, mine = state.opened.version, state.metadata.last_updated_ms
    try:
        newer = [v for v in list_versions(state.opened) if number is not None and (v.number or 0) > number]
    except IceexploreError:
        newer = []
    if not newer or mine is None or _is_current(state):
        return limit
    notes.append(
        f"There is a newer metadata file ({newer[-1].name}), which may reference files modified since "
        f"{format_ms(mine)}: such files count as too young to be deleted. Call refresh() to open the newest metadata."
    )
    return min(limit, mine)


def _is_current(state: TableState) -> bool:
    """Return whether the table was opened from a catalog that still points to the metadata file of ``state``.

    If so, a metadata file with a higher version is not part of the table: a failed commit left it. Return False if the
    catalog cannot be read.
    """
    if state.opened.catalog_table is None:
        return False
    try:
        return same_location(reopen(state.opened.source).metadata_location, state.metadata_location)
    except IceexploreError:
        return False


def _table(base: str, tails: AnyArray, entries: Sequence[Entry], mask: npt.NDArray[np.bool_]) -> pa.Table:
    """Return a table of the listed files that ``mask`` selects, with locations spelled as in the table's metadata.

    The columns are ``location``, ``kind``, ``bytes`` and ``modified_at``.

    Parameters
    ----------
    base
        The location of the listed folder.
    tails
        For each listed file, its path below this folder, beginning with a slash.
    entries
        The listed files.
    """
    chosen = [entries[i] for i in np.flatnonzero(mask).tolist()]
    columns: list[AnyArray] = [
        pc.binary_join_element_wise(base, tails.filter(pa.array(mask)), ""),
        pa.array([file_kind(e.real) for e in chosen], pa.string()),
        pa.array([e.size for e in chosen], pa.int64()),
        pa.array([e.modified_ms for e in chosen], pa.timestamp("ms", "UTC")),
    ]
    return pa.table(columns, schema=_ORPHAN_SCHEMA)


def _strangers(state: TableState, files: pa.Table) -> Iterator[str]:
    """Yield a note if one of the orphan files is a metadata file outside the table's metadata folder.

    Such a file belongs to another table, whose folder is inside the listed folder.

    Parameters
    ----------
    files
        The orphan files: ``location`` and ``kind``.
    """
    own = state.metadata_location.rpartition("/")[0] + "/"
    is_metadata = pc.equal(files["kind"], "metadata")
    other = files.filter(pc.and_(is_metadata, pc.invert(pc.starts_with(files["location"], own))))["location"]
    if len(other):
        yield (
            f"{other[0].as_py()} is the metadata file of another table below this one: the procedure would delete that "
            "table's files, too."
        )


def _unlisted(state: TableState, base: str) -> Iterator[str]:
    """Yield a note for each table property that sets a folder for new files outside ``base``, the listed folder."""
    for name in _FOLDERS:
        place = state.metadata.properties.get(name)
        if place and not f"{canonical(place)}/".startswith(f"{canonical(base)}/"):
            yield f"{name} is {place}, which was not listed: pass it as location= to find orphan files there."


# Prefixes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Prefixes:
    """The schemes and authorities that count as equal.

    Attributes
    ----------
    schemes, authorities
        Mappings from a scheme or authority to the one that replaces it before a comparison. For example, with
        ``{"s3a": "s3"}`` the schemes ``s3a`` and ``s3`` count as equal.
    """

    schemes: Mapping[str, str]
    authorities: Mapping[str, str]

    @staticmethod
    def of(schemes: Mapping[str, str] | None, authorities: Mapping[str, str] | None) -> _Prefixes:
        given = mapping_of("equal_schemes", schemes, "{'s3a,s3n': 's3'}", values=str)
        hosts = mapping_of("equal_authorities", authorities, "{'namenode1,namenode2': 'service'}", values=str)
        return _Prefixes({**_EQUAL_SCHEMES, **_flat(given)}, _flat(hosts))

    def same(self, valid: tuple[str, str], actual: tuple[str, str]) -> bool:
        """Return whether two prefixes, each a scheme and an authority, count as equal.

        Parameters
        ----------
        valid
            The prefix of a referenced location. A scheme that is an empty string counts as equal to every scheme, and
            an authority that is an empty string to every authority.
        actual
            The prefix of a listed file.
        """
        for mapping, one, other in zip((self.schemes, self.authorities), valid, actual, strict=True):
            mine = mapping.get(one, one)
            if mine and mine.lower() != mapping.get(other, other).lower():
                return False
        return True

    def shown(self) -> str:
        return ", ".join(f"{a} = {b}" for a, b in self.schemes.items())


def _flat(given: Mapping[str, str]) -> dict[str, str]:
    return {part.strip(): value.strip() for key, value in given.items() for part in key.split(",")}


def _conflicting(
    state: TableState, base: str, entries: Sequence[Entry], references: pa.Table, prefixes: _Prefixes
) -> tuple[npt.NDArray[np.bool_], tuple[tuple[str, str], ...]]:
    """Find the listed files that the table references with a different prefix (scheme and authority).

    For example, the file ``s3://a/t/f.parquet`` is listed, and the table references ``s3://b/t/f.parquet``.

    Parameters
    ----------
    base
        The location of the listed folder. Its prefix is the prefix of all listed files.
    entries
        The listed files.
    references
        The files that the table references: ``location`` and ``kind``.
    prefixes
        The schemes and authorities that count as equal. Prefixes that count as equal are not different.

    Returns
    -------
    numpy.ndarray
        A mask of the listed files that are referenced with a different prefix.
    tuple
        A pair for each different prefix, sorted: the prefix of the references, and the prefix of the listed files, such
        as ``("s3://b", "s3://a")``.
    """
    found = np.zeros(len(entries), bool)
    if not len(entries):
        return found, ()
    actual = _prefix_of(base + "/", default="file")
    pairs: list[tuple[str, str]] = []
    if state.storage.moved:
        # A moved table is opened at its new place. So the location of the opened metadata file may have another prefix
        # than the locations in the metadata, which still have the old prefix. This is no conflict.
        own = pc.is_in(references["kind"], pa.array(["metadata file", "version hint"]))
        references = references.filter(pc.invert(own))
    parts = pc.extract_regex(references["location"], _URI)
    columns = [pc.fill_null(pc.struct_field(parts, name), "") for name in ("scheme", "authority")]
    distinct = (
        pa.table(columns, ["scheme", "authority"]).group_by(["scheme", "authority"], use_threads=False).aggregate([])
    )
    for row in build.to_pylist(distinct):
        valid = row["scheme"], row["authority"]
        if prefixes.same(valid, actual):
            continue
        mine = pc.and_(pc.equal(columns[0], valid[0]), pc.equal(columns[1], valid[1]))
        hit = is_referenced(state.storage, entries, references["location"].filter(mine))
        if hit.any():
            found |= hit
            pairs.append((_shown(valid), _shown(actual)))
    return found, tuple(sorted(pairs))


def _prefix_of(location: str, *, default: str = "") -> tuple[str, str]:
    found = re.match(_URI, location)
    return (default, "") if found is None else (found["scheme"] or default, found["authority"] or "")


def _shown(prefix: tuple[str, str]) -> str:
    return f"{prefix[0]}://{prefix[1]}"


# Missing files --------------------------------------------------------------------------------------------------------


def _missing(
    state: TableState, references: pa.Table, entries: Sequence[Entry] | None, folder: str, notes: list[str]
) -> pa.Table:
    """Return the referenced files that do not exist.

    A missing version hint is not returned, because tables in a catalog need none. The synthetic files of a simulation
    are not returned either, because they never exist.

    Parameters
    ----------
    references
        The files that the table references: ``location``, ``kind`` and ``bytes``.
    entries
        The files under ``folder``; None if the folder cannot be listed. Referenced files that are not among them are
        looked up one by one if they are in other folders or if ``entries`` is None.
    notes
        A note is added if some files cannot be looked up.
    """
    storage = state.storage
    wanted = references.filter(pc.not_equal(references["kind"], "version hint"))
    if isinstance(storage, OverlayStorage):
        made_up = [is_synthetic(place) for place in build.to_pylist(wanted["location"])]
        wanted = wanted.filter(pc.invert(pa.array(made_up, pa.bool_())))
    wanted = (
        wanted.group_by(["location", "kind"], use_threads=False)
        .aggregate([("bytes", "max")])
        .rename_columns(wanted.column_names)
    )
    keys = path_keys(storage, wanted["location"])
    if entries is None:
        inside = pa.array(np.zeros(len(wanted), bool))
        there = inside
    else:
        listed = path_keys(storage, pa.array([e.real for e in entries], pa.string()))
        root = build.to_pylist(path_keys(storage, pa.array([folder], pa.string())))[0]
        inside = pc.starts_with(keys, root.rstrip("/") + "/")
        there = pc.is_in(keys, value_set=listed)
    gone = wanted.filter(pc.and_(inside, pc.invert(there)))
    outside = wanted.filter(pc.and_(pc.invert(inside), pc.invert(there)))
    names = build.to_pylist(outside["location"].slice(0, _MOST_LOOKED_UP))
    if len(outside) > _MOST_LOOKED_UP:
        left = len(outside) - _MOST_LOOKED_UP
        notes.append(f"{left:,} referenced files outside the listed folder were not looked up.")
    lacking = [_lacks(state, name, notes) for name in names]
    return pa.concat_tables([gone, outside.slice(0, _MOST_LOOKED_UP).filter(pa.array(lacking, pa.bool_()))])


def _lacks(state: TableState, name: str, notes: list[str]) -> bool:
    try:
        return not state.storage.exists(name)
    except IceexploreError as error:
        text = f"Some referenced files outside the listed folder could not be looked up: {error}"
        if not any(note.startswith(text[:60]) for note in notes):
            notes.append(text)
        return False


# Calls ----------------------------------------------------------------------------------------------------------------


def _source(older_than: object) -> str:
    return DEFAULT if older_than == "3d" else ARGUMENT


def _calls(
    state: TableState,
    limit: int,
    now_ms: int,
    location: str | None,
    schemes: Mapping[str, str] | None,
    authorities: Mapping[str, str] | None,
    mode: str,
) -> Iterator[EngineCall]:
    call = spark_call(
        state,
        "remove_orphan_files",
        older_than=spark_timestamp(limit),
        location=None if location is None else sql_text(location),
        equal_schemes=_sql_map(schemes),
        equal_authorities=_sql_map(authorities),
        prefix_mismatch_mode=None if mode == "error" else sql_text(mode),
    )
    age = now_ms - limit
    short = "in the future" if age < 0 else f"{duration(age)} ago"
    note = f"refuses an older_than that is less than 24 hours ago; this one is {short}" if age < _DAY else ""
    yield EngineCall(call.engine, call.code, note)
    yield EngineCall(
        "iceexplore",
        f"lab.remove_orphan_files({max(0, age)})",  # the argument is an age, which cannot be negative
        "for tables made by ix.create; keeps metadata files older than the current one",
    )


def _sql_map(values: Mapping[str, str] | None) -> str | None:
    if not values:
        return None
    return f"map({', '.join(sql_text(text) for pair in values.items() for text in pair)})"
