"""Define the options for a commit's metadata layout, mainly the choices that the V4 proposal leaves open."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from inspect import cleandoc
from typing import Any, Literal, get_args, get_type_hints

from iceexplore.errors import OptionError, renamed_method, version_of

__all__ = [
    "Affinity",
    "DvEncoding",
    "LEAST",
    "LayoutOptions",
    "OptionDoc",
    "PartitionStorage",
    "option_docs",
]

_SECTION = "Attributes\n----------\n"


@dataclass(frozen=True)
class OptionDoc:
    """The description of one option of `LayoutOptions`.

    Attributes
    ----------
    name
        The name of the keyword argument.
    default
        The default value.
    choices
        The accepted strings; empty if the option is not a choice between strings.
    least, most
        The minimum and maximum of a number, None if there is none. For `rewrite_leaf_at`, the minimum is exclusive.
    text
        The option's description in the docstring of `LayoutOptions`.
    """

    name: str
    default: Any
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    text: str = ""


def option_docs(format_version: int) -> tuple[OptionDoc, ...]:
    """Return descriptions of a format version's layout options, in the order of `LayoutOptions`.

    ``format_version`` and ``relaxed`` are left out. Below version 4 the result is empty, because these versions leave
    no choice of layout.

    Raises
    ------
    OptionError
        The format version does not exist.
    """
    default, hints, texts = LayoutOptions.of(format_version), get_type_hints(LayoutOptions), _texts()
    if not default.has_root_manifest:
        return ()
    out = []
    for field in fields(LayoutOptions):
        if field.name in ("format_version", "relaxed"):
            continue
        value = getattr(default, field.name)
        choices: tuple[str, ...] = tuple(c for c in get_args(hints[field.name]) if isinstance(c, str))
        if field.name == "dialect":
            choices = _DIALECTS_V4
        least, most = (0, 1) if field.name == "rewrite_leaf_at" else (LEAST.get(field.name), None)
        out.append(OptionDoc(field.name, value, choices, least, most, texts.get(field.name, "")))
    return tuple(out)


def _texts() -> dict[str, str]:
    """Return each option's description, taken from the docstring of `LayoutOptions`; empty under ``python -OO``."""
    section = cleandoc(LayoutOptions.__doc__ or "").partition(_SECTION)[2]
    out: dict[str, str] = {}
    for found in re.finditer(r"^(\w[\w, ]*)\n((?: {4}.*\n?|\n)+)", section + "\n", re.MULTILINE):
        text = " ".join(found[2].split()).replace("``", "").replace("`", "")
        out |= dict.fromkeys((name.strip() for name in found[1].split(",")), text)
    return out


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


#: How the root records that a commit removes more entries from a leaf manifest that already has a manifest DV
#: ("Brainstorming about detecting changes" in the proposal). ``removed``: the old DV is listed as DELETED, and a new DV
#: with all removed positions is listed as ADDED. ``replace``: the old DV is not listed, and a new DV with all removed
#: positions is listed as ADDED. ``delta``: the old DV is listed as EXISTING, and a second DV, which has only the
#: positions that this commit removes, is listed as ADDED.
DvEncoding = Literal["removed", "replace", "delta"]
#: Whether commits write delete manifests that are affiliated with a data manifest, that is, whose deletes are all for
#: files of this one data manifest. ``all``: always, if possible; ``none``: never; ``some``: only if the table would
#: otherwise have too many unaffiliated delete manifests (option ``unaffiliated_manifests`` of `LayoutOptions`). In the
#: proposal: "Optional Affinity between Data and Delete Manifests".
Affinity = Literal["all", "some", "none"]
#: Where manifests store the partition values of files. ``derived``: as statistics of a derived column such as
#: ``day(ts)`` (layout (a) of the proposal, which prefers this layout); ``source``: with the statistics of the source
#: column, here ``ts`` (layout (b)); ``tuple``: in a struct with all partition values of a file, as before V4.
PartitionStorage = Literal["derived", "source", "tuple"]
#: Options that are refused for the dialect ``v4-draft``. They are about points that the V4 proposal leaves open, such
#: as where partition values are stored. The V4 draft settles these points, so there is nothing to choose.
_PROPOSAL_ONLY = (
    "dv_encoding", "dv_attached", "partition_storage", "affinity", "unaffiliated_manifests", "affiliated_manifests",
    "inline_dv_bytes", "relaxed",
)  # fmt: skip
#: Options that are refused for the dialect ``v4-java``, because they are about root manifests. ``flush_data_files`` and
#: ``flush_delete_files`` are not among them, although they have no effect there: the option ``round_trip_ms``, which is
#: accepted for every dialect, sets both.
_ROOTS_ONLY = (*_PROPOSAL_ONLY, "compact_leaves", "rewrite_leaf_at")
_TREES = ("v4-proposal", "v4-draft")
_DIALECTS_V4 = (*_TREES, "v4-java")
#: The number of data files that, listed directly in a Parquet root, add half a millisecond to the total time for
#: reading and writing this root; measured by `benchmarks/flush.py`.
_FILES_IN_HALF_A_MS = 80
#: The number of DVs that, listed directly in a Parquet root, add half a millisecond to the total time for reading and
#: writing this root; measured by `benchmarks/flush.py`.
_VECTORS_IN_HALF_A_MS = 160
#: The options whose values are integers, each with its minimum.
LEAST = {
    "flush_data_files": 0,
    "flush_delete_files": 0,
    "leaf_entries": 1,
    "unaffiliated_manifests": 0,
    "affiliated_manifests": 0,
    "inline_dv_bytes": 0,
    "compact_leaves": 0,
}


@dataclass(frozen=True)
class LayoutOptions:
    """Options for the layout of new metadata.

    Below V4, only `format_version`, `dialect`, `manifest_format` and `leaf_entries` have an effect.

    Attributes
    ----------
    format_version
        The format version of the table, 1 to 4.
    dialect
        The form in which manifests are written. Below version 4 there is no choice: ``v1``, ``v2`` or ``v3``. Version 4
        has three dialects: ``v4-proposal`` (a root manifest), ``v4-draft`` (a root manifest as in the draft of the V4
        spec of September 2026) and ``v4-java`` (a manifest list). Of the options below, only `manifest_format`,
        `flush_data_files`, `leaf_entries`, `compact_leaves` and `rewrite_leaf_at` have an effect with ``v4-draft``, and
        only `manifest_format` and `leaf_entries` with ``v4-java``. With these two dialects, an option without an
        effect must keep its default. The exceptions are `flush_data_files` and `flush_delete_files`: they accept any
        number, even where they have no effect.
    manifest_format
        ``parquet`` or ``avro``; below V4 always ``avro``. Iceberg 1.11, the newest release, cannot read Parquet
        manifests of ``v4-java`` in which two files have split offsets.
    dv_encoding
        A manifest DV lists the positions of entries that are removed from a leaf manifest without rewriting it. This
        option determines how the root records that a commit removes more entries from a leaf that already has a DV.
        ``removed``: the old DV is listed as DELETED, and a new DV with all removed positions is listed as ADDED.
        ``replace``: the old DV is not listed, and a new DV with all removed positions is listed as ADDED. ``delta``:
        the old DV is listed as EXISTING, and a second DV, which has only the positions that this commit removes, is
        listed as ADDED.
    dv_attached
        Store the manifest DV in the manifest's entry (field id 522 in the draft) instead of in a separate entry.
    partition_storage
        Where manifests store the partition values of files. ``derived``: as statistics of a derived column such as
        ``day(ts)`` (layout (a) of the proposal, which prefers this layout); ``source``: with the statistics of the
        source column, here ``ts`` (layout (b)); ``tuple``: in a struct with all partition values of a file, as before
        V4. With ``derived`` and ``source``, the value of an identity field is the lower bound of its source column.
    flush_data_files, flush_delete_files
        The maximum number of data files, and of DVs and equality deletes together, that the root lists directly. A
        commit that adds more entries of one of these kinds writes them to new leaf manifests. Any commit moves EXISTING
        entries from the root to leaf manifests (a flush) if the root would otherwise list too many.
        The proposal: "Ideally the time to do I/O on the root node should be close to the round trip latency of cloud
        storage systems". The defaults are for a round trip of 50 ms; see `for_round_trip`.
    leaf_entries
        The approximate maximum number of entries in a new leaf manifest.
    affinity
        Whether delete manifests are affiliated with a single data manifest, so that planning skips them together with
        this data manifest. ``all``: always, if possible; ``none``: never; ``some``: only if a commit would otherwise
        leave more than `unaffiliated_manifests` unaffiliated delete manifests.
    unaffiliated_manifests
        The maximum number of unaffiliated delete manifests after a commit, with affinity ``some``. More are possible
        only because of two kinds of entries that do not belong to one data manifest: equality deletes, and DVs for data
        files that the root lists directly.
    affiliated_manifests
        The maximum number of delete manifests affiliated with one data manifest: once there are this many, the next
        flush merges them with its new entries. With 1, each flush rewrites the data manifest's delete manifest; with 0,
        there is no maximum, and each flush adds a new one. With the default, flushes write no more than with 0, and
        planning opens far fewer manifests (`benchmarks/results/evidence.md`).
    inline_dv_bytes
        The maximum size of a manifest DV in the root, in bytes; larger ones are written to a Puffin file.
    compact_leaves
        If a root lists at least this number of small data manifests, or of small delete manifests, the next commit
        merges them, whatever its operation. With 0, commits never merge leaves. A leaf is small if at most half as many
        entries as `leaf_entries` remain in it.
    rewrite_leaf_at
        A share of a leaf's entries, such as 0.5, or None. If manifest DVs have removed at least this share of the
        entries, the leaf is replaced by a new leaf with only the remaining entries, as EXISTING. A commit cannot remove
        entries from a leaf and also replace it. The leaf is therefore replaced later, by the next commit that removes
        no entries from it. With None, the number of removed entries never causes a rewrite.
    relaxed
        Ids of rules that this layout breaks on purpose, to try approaches that the authors of the proposal discarded. A
        commit with this layout does not check these rules.
    """

    format_version: int = 2
    dialect: str = "v2"
    manifest_format: Literal["parquet", "avro"] = "avro"
    dv_encoding: DvEncoding = "removed"
    dv_attached: bool = False
    partition_storage: PartitionStorage = "derived"
    flush_data_files: int = 50 * _FILES_IN_HALF_A_MS
    flush_delete_files: int = 50 * _VECTORS_IN_HALF_A_MS
    leaf_entries: int = 10_000
    affinity: Affinity = "some"
    unaffiliated_manifests: int = 2
    affiliated_manifests: int = 4
    inline_dv_bytes: int = 4096
    compact_leaves: int = 0
    rewrite_leaf_at: float | None = None
    relaxed: tuple[str, ...] = ()

    @classmethod
    def of(cls, format_version: int, **given: Any) -> LayoutOptions:
        """Return layout options for a format version: the given ones, and defaults for the others.

        The additional option ``round_trip_ms=`` sets the two flush thresholds, ``flush_data_files`` and
        ``flush_delete_files``, to the result of `for_round_trip`. A threshold that is given explicitly takes
        precedence.

        Raises
        ------
        OptionError
            An option is unknown, or a value is invalid; the message lists what is accepted.
        """
        format_version = version_of(format_version)
        if "round_trip_ms" in given:
            given = {**cls.for_round_trip(given.pop("round_trip_ms")), **given}
        known = {f.name for f in fields(cls)} - {"format_version"} | {"round_trip_ms"}
        unknown = sorted(set(given) - known)
        if unknown:
            raise OptionError(f"unknown layout option {unknown[0]!r}; options: {', '.join(sorted(known))}")
        dialect = given.pop("dialect", "v4-proposal" if format_version == 4 else f"v{format_version}")
        allowed = _DIALECTS_V4 if format_version == 4 else (f"v{format_version}",)
        if dialect not in allowed:
            raise OptionError(f"dialect={dialect!r}: format version {format_version} accepts {_listed(allowed)}")
        given.setdefault("manifest_format", "parquet" if dialect in _TREES else "avro")
        made = cls(format_version=format_version, dialect=dialect, **given)
        made._check()
        return made

    def replace(self, **given: Any) -> LayoutOptions:
        """Return a copy of these options with some values replaced; raises the same errors as `of`."""
        mine = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "format_version"}
        if "round_trip_ms" in given:
            given = {**self.for_round_trip(given.pop("round_trip_ms")), **given}
        return LayoutOptions.of(self.format_version, **{**mine, **given})

    but = renamed_method("replace", "but")

    @staticmethod
    def for_round_trip(milliseconds: float) -> dict[str, int]:
        """Return the two flush thresholds for a storage whose round trips take this number of milliseconds.

        The result has the keys ``flush_data_files`` and ``flush_delete_files``, and can be passed to `of` as options.

        The more files a root lists directly, the longer it takes to read and write. The thresholds limit this
        additional time to one round trip: half of it for data files (``flush_data_files``), the other half for DVs and
        equality deletes (``flush_delete_files``). The time for the root's entries for leaf manifests is not counted,
        because a flush, which moves files from the root to leaves, does not save this time.

        The additional time is proportional to the number of files. It was measured with this library on Parquet roots
        that list 100 leaves, with ten columns of statistics: CPU time for reading and writing, and transfer at 100 MB/s
        each way (`benchmarks/results/flush.md`). The thresholds are the same for Avro roots, although these take longer
        to write: this library writes Avro slowly, row by row, so thresholds from measurements of Avro would describe
        the library rather than the format.

        Raises
        ------
        OptionError
            The time is not a number of milliseconds above 0 and at most 10,000.
        """
        given: object = milliseconds
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= 10_000:
            raise OptionError(f"round_trip_ms={milliseconds!r}: expected milliseconds, above 0 and at most 10,000")
        return {
            "flush_data_files": max(1, round(milliseconds * _FILES_IN_HALF_A_MS)),
            "flush_delete_files": max(1, round(milliseconds * _VECTORS_IN_HALF_A_MS)),
        }

    @property
    def has_root_manifest(self) -> bool:
        """Whether snapshots have a root manifest instead of a manifest list."""
        return self.dialect in _TREES

    @property
    def deletion_vectors_on_entries(self) -> bool:
        """Whether deletion vectors are part of the entries of data files and manifests, as in the V4 draft."""
        return self.dialect == "v4-draft"

    @property
    def uses_expressions(self) -> bool:
        """Whether partition specs reference expressions in the table's metadata, as in the V4 proposal."""
        return self.dialect == "v4-proposal"

    @property
    def has_layout(self) -> bool:
        """Whether the format version leaves a choice of layout, as version 4 does."""
        return self.format_version >= 4

    @property
    def title(self) -> str:
        """A short name for the layout: ``v3``, ``V4``, ``V4, draft``, or ``V4, list`` for V4 with a manifest list."""
        if self.deletion_vectors_on_entries:
            return "V4, draft"
        if self.has_root_manifest:
            return "V4"
        return "V4, list" if self.has_layout else f"v{self.format_version}"

    def _check(self) -> None:
        hints = get_type_hints(type(self))
        for name in ("manifest_format", "dv_encoding", "partition_storage", "affinity"):
            value = getattr(self, name)
            if value not in get_args(hints[name]):
                raise OptionError(f"{name}={value!r}: choose one of {', '.join(map(repr, get_args(hints[name])))}")
        for name, least in LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise OptionError(f"{name}={value!r}: expected an integer of at least {least}")
        if self.manifest_format == "parquet" and self.dialect not in _DIALECTS_V4:
            raise OptionError(f"manifest_format='parquet': manifests of {self.dialect} are always Avro")
        default = type(self)()
        if self.deletion_vectors_on_entries:
            for name in _PROPOSAL_ONLY:
                if getattr(self, name) != getattr(default, name):
                    raise OptionError(f"{name}= is an option of 'v4-proposal': the V4 draft leaves no such choice")
        elif self.has_layout and not self.has_root_manifest:
            for name in _ROOTS_ONLY:
                if getattr(self, name) != getattr(default, name):
                    raise OptionError(f"{name}= is an option of root manifests: {self.dialect!r} has manifest lists")
        share: Any = self.rewrite_leaf_at
        if share is not None and (not isinstance(share, (int, float)) or not 0 < share <= 1):
            raise OptionError(f"rewrite_leaf_at={share!r}: expected a share above 0 and at most 1, or None")
