"""The entries of a V4 tree before and after a repair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.repair._corrections import Corrections
from iceexplore.doctor.repair._draft import ALL_PARTS, Draft, LeafEdit, live_mask
from iceexplore.doctor.repair._sound_values import SoundValues, are_sound, with_row_ids, with_sound_types
from iceexplore.errors import FormatError
from iceexplore.graph import TableState, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, Manifest, ManifestReader, concat_batches, root_batch, whole
from iceexplore.manifests.rules import FILES, Rows
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

__all__ = ["Part", "live_files", "parts_of", "sound_files", "tidy"]


@dataclass
class Part:
    """The entries of one leaf manifest of a V4 tree, or the files that the root manifest lists directly.

    Attributes
    ----------
    manifest
        The leaf, or the root.
    row
        The leaf's row in the root; None for the root.
    read
        The entries before the repair; for the root, without its entries for manifests and manifest DVs.
    made
        The entries after the repair, with the draft's edits and without values that the format does not allow. Some
        entries of ``read`` may be left out.
    """

    manifest: Manifest
    row: int | None
    read: EntryBatch
    made: EntryBatch

    @property
    def name(self) -> str:
        """The manifest's canonical location."""
        return canonical(self.manifest.location)

    def remove(self, ordinals: list[int]) -> None:
        """Mark entries of a leaf as removed by a manifest DV.

        Entries that are already marked keep their mark. If this part is not a leaf, but has the files that the root
        lists directly, nothing is marked, because manifest DVs apply only to leaves.

        Parameters
        ----------
        ordinals
            The positions in the leaf (column ``ordinal``) that the manifest DVs of the parent snapshot remove.
        """
        if self.row is None or not ordinals:
            return
        entries = self.made.entries
        gone = np.isin(np.asarray(entries["ordinal"], np.int64), ordinals) & np.asarray(
            entries["manifest_dv"].is_null()
        )
        if gone.any():
            given = whole(entries["manifest_dv"])
            self.made = self.made.with_columns(manifest_dv=pc.if_else(pa.array(gone), pa.scalar(0, given.type), given))


def live_files(reader: ManifestReader, root: Manifest, without: Iterable[str] = ()) -> EntryBatch:
    """Return the live entries of all files in a V4 tree, or in the manifests of a manifest list.

    The entries have the values that were read, even if they are wrong.

    Parameters
    ----------
    reader
        Reads the manifests that the root or the manifest list lists.
    root
        The root manifest or the manifest list.
    without
        The canonical locations of manifests to leave out.

    Raises
    ------
    FormatError
        A manifest cannot be read.
    """
    parts = []
    own = reader.direct(root)
    if own is not None:
        parts.append(root_batch(root).filter(_are_files(root.entries)))
    parts += [EntryBatch.of(leaf) for _, leaf in _leaves(reader, root, without)]
    return concat_batches([p.filter(pa.array(live_mask(p))) for p in parts])


def sound_files(state: TableState, reader: ManifestReader, root: Manifest, without: Iterable[str]) -> EntryBatch:
    """Return the live entries of all files in a V4 tree or a manifest list, without those that have faulty values.

    A repair can copy values from the returned entries into entries for the same files in other manifests. `are_sound`
    selects the entries, and `live_files` explains the parameters.
    """
    manifests = [
        m for m in (reader.direct(root), *(leaf for _, leaf in _leaves(reader, root, without))) if m is not None
    ]
    parts = []
    for manifest in manifests:
        batch = EntryBatch.of(manifest)
        mask = are_sound(manifest, batch, state) & np.asarray(_are_files(manifest.entries))
        parts.append(batch.filter(pa.array(mask)))
    return concat_batches(parts)


def _are_files(entries: pa.Table) -> AnyArray:
    return whole(pc.fill_null(pc.is_in(entries["content_type"], pa.array([int(k) for k in FILES], pa.int32())), False))


def _leaves(reader: ManifestReader, root: Manifest, without: Iterable[str]) -> Iterator[tuple[int, Manifest]]:
    gone = set(without)
    names = build.to_pylist(root.entries["location"])
    rows = [row for row in live_manifests(root) if names[row] and canonical(names[row]) not in gone]
    for row, leaf in zip(rows, reader.leaves(root, rows, ALL_PARTS) if rows else (), strict=True):
        if not leaf.dialect:
            raise FormatError("the manifest cannot be read", location=leaf.location)
        yield row, leaf


def parts_of(
    draft: Draft,
    reader: ManifestReader,
    snapshot: Snapshot,
    values: SoundValues,
    corrections: Corrections | None = None,
) -> list[Part]:
    """Return the entries of a snapshot's V4 tree before and after the repair, as one `Part` per manifest.

    If the root lists files directly, the first part has these files. Each leaf is a further part, except those in
    `Draft.dropped_leaves`.

    Parameters
    ----------
    draft
        The edits of the entries.
    values
        Restores missing and damaged values.
    corrections
        The values of files that the repair corrected in the trees of other snapshots. If an entry of this tree has the
        same wrong values for one of these files, it gets the corrected values. None if there are no corrections.

    Raises
    ------
    FormatError
        A manifest cannot be read, or a required value cannot be found anywhere; see `SoundValues.of`.
    """
    out: list[Part] = []
    root = reader.root(snapshot)
    typed = with_sound_types(root)
    ids = build.to_pylist(typed.entries["first_row_id"])
    own = _are_files(typed.entries)
    if bool(pc.any(own).as_py()):
        out.append(_part(draft, values, root, None, own, snapshot.first_row_id, corrections))
    for row, leaf in _leaves(reader, typed, draft.dropped_leaves):
        out.append(_part(draft, values, leaf, row, None, ids[row], corrections))
    return out


def _part(
    draft: Draft,
    values: SoundValues,
    manifest: Manifest,
    row: int | None,
    own: AnyArray | None,
    first_row_id: int | None,
    corrections: Corrections | None,
) -> Part:
    typed = with_sound_types(manifest)
    read, made = (EntryBatch.of(m) if own is None else root_batch(m).filter(own) for m in (manifest, typed))
    made = read if typed is manifest else with_row_ids(made, manifest, first_row_id)
    edits: list[LeafEdit] = draft.leaf_edits.get(canonical(manifest.location), [])
    for edit in edits:
        made = edit(made)
    if corrections is not None:
        made = corrections.apply(made)
    # A V4 tree may also list leaves in the format of V3 or older. The rules of V4 do not apply to their values.
    if manifest.dialect.has_root_manifest:
        made = values.of(made, manifest, typed)
    return Part(manifest, row, read, made)


def tidy(parts: list[Part]) -> None:
    """Remove surplus entries from the parts of one V4 tree, in place.

    Of the live entries of a data file, only the first stays. Of its deletion vectors, only the one with the highest
    sequence number stays. Deletion vectors of data files that are not live in the tree are removed.
    """
    if not parts:
        return
    batches = [p.made for p in parts]
    entries = concat_batches([EntryBatch(b.entries) for b in batches]).entries
    r = Rows(entries)
    keep = np.ones(len(r), bool)
    data = np.flatnonzero(r.live & r.is_kind(ContentType.DATA))
    keep[data] = False
    keep[data[_first(entries["location"].take(build.array(data)))]] = True
    vectors = np.flatnonzero(r.live & r.is_kind(ContentType.POSITION_DELETE) & r.has_vector)
    vectors = vectors[np.argsort(-r.ints("sequence_number")[vectors], kind="stable")]
    keep[vectors] = False
    vectors = vectors[_first(entries["referenced_file"].take(build.array(vectors)))]
    targets, files = entries["referenced_file"].take(build.array(vectors)), entries["location"].take(build.array(data))
    keep[vectors[np.asarray(pc.is_in(targets, value_set=whole(files)))]] = True
    ends = np.cumsum([len(b) for b in batches])
    for part, mask in zip(parts, np.split(keep, ends[:-1]), strict=True):
        if not mask.all():
            part.made = part.made.filter(pa.array(mask))


def _first(values: AnyChunkedArray) -> npt.NDArray[np.int64]:
    """Return the positions of the first occurrence of each value."""
    codes = np.asarray(pc.fill_null(whole(values).dictionary_encode().indices, -1))
    return np.unique(codes, return_index=True)[1]
