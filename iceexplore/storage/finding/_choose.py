"""Choose a folder's current metadata file: by the version hint, the names and, for ties, the files' contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iceexplore.errors import (
    AccessDeniedError,
    FileMissingError,
    FormatError,
    IceexploreError,
    MemoryLimitError,
    MetadataNotFoundError,
    Problems,
    SnapshotNotFoundError,
    StorageError,
    UnsupportedError,
    problem,
)
from iceexplore.storage._location import basename, is_local, join, same_location
from iceexplore.storage._storage import Storage
from iceexplore.storage.finding._document import parse_document, too_large
from iceexplore.storage.finding._kinds import TABLE, DocumentKind
from iceexplore.storage.finding._versions import (
    HINT,
    MetadataVersion,
    choose,
    hinted_names,
    is_metadata_name,
    match_version,
    parse_name,
    version_names,
)

__all__ = ["Pick", "Picker", "nearest_versions"]

_MOST_TIED = 64
#: Maximum size of a version hint, which contains only a number or a name.
_HINT_BYTES = 64 << 10
_MOST_STEPS = 100_000


@dataclass(frozen=True)
class Pick:
    """A chosen metadata file: its real location, its document, and notes on why it was chosen."""

    real: str
    document: dict[str, Any]
    notes: tuple[str, ...]


class Picker:
    """Chooses metadata files of one table or view; faults found on the way are added to ``problems``."""

    def __init__(self, storage: Storage, problems: Problems, max_bytes: int, kind: DocumentKind = TABLE) -> None:
        self.kind = kind
        self._storage = storage
        self._problems = problems
        self._max_bytes = max_bytes

    def load(self, real: str, *notes: str) -> Pick:
        """Read one metadata file. Raises the same errors as `Storage.read` and `parse_document`."""
        try:
            data = self._storage.read_real(real, kind="metadata", most=self._max_bytes)
        except MemoryLimitError:
            raise too_large(self._max_bytes, self._storage.unresolve(real)) from None
        document, more = parse_document(data, self._storage.unresolve(real), self._max_bytes, self.kind)
        return Pick(real, document, (*notes, *more))

    def in_folder(self, folder: str, version: int | str | None = None) -> Pick | None:
        """Return the current metadata file of a metadata folder, or that of ``version``; None if there is none.

        Raises
        ------
        SnapshotNotFoundError
            The version does not exist.
        FormatError
            No file can be read as metadata.
        """
        hint: tuple[str, ...] = ()
        if version is None:
            pick, hint = self._by_hint(folder)
            if pick is not None:
                return pick
        try:
            entries = self._storage.entries(folder, details=False)
        except FileMissingError:
            return None
        names = [basename(e.real) for e in entries if not e.is_folder]
        if not any(map(is_metadata_name, names)):
            return None
        if version is not None:
            return self._by_version(folder, version, names)
        chosen = choose(names, lambda name: self._modified(join(folder, name)))
        pick = None
        if chosen.tied:
            tied = [join(folder, n) for n in chosen.tied]
            pick = self.newest_of(tied, one_table=parse_name(chosen.tied[0]) is not None)
        if pick is None:
            rest = [n for n in chosen.names if n not in chosen.tied]
            pick = self._first([join(folder, n) for n in rest], chosen.reason)
        return None if pick is None else Pick(pick.real, pick.document, (*pick.notes, *hint))

    def newest_of(self, reals: Sequence[str], *, one_table: bool = False) -> Pick | None:
        """Return the newest of several files whose names do not show their order; None if none of them is metadata.

        Raises
        ------
        MetadataNotFoundError
            The files belong to several tables or views (not checked with ``one_table``, for files in one folder).
        """
        picks: list[Pick] = []
        first: FormatError | UnsupportedError | None = None
        for real in reals[:_MOST_TIED]:
            try:
                picks.append(self.load(real))
            except (FormatError, UnsupportedError) as e:
                first = first or e
                if len(reals) == 1 or one_table:
                    self._problems.add_error(e, self._storage.unresolve(real))
        if not picks:
            if first is not None and len(reals) == 1:
                raise first
            return None
        if len(picks) == 1:
            why = "" if len(reals) == 1 else f": of {len(reals)} candidates the only {self.kind.name} metadata"
            return self._noted(picks[0], f"Metadata: {basename(picks[0].real)}{why}.")
        uuids, locations = ({str(p.document.get(key)) for p in picks} for key in (self.kind.uuid, "location"))
        if len(uuids) > 1 and len(locations) > 1 and not one_table:
            listed = ", ".join(sorted(basename(p.real) for p in picks)[:12])
            raise MetadataNotFoundError(
                f"these metadata files belong to {len(uuids)} {self.kind.name}s; open one of them by its path: {listed}"
            )
        return self._newest(picks, one_table)

    # ------------------------------------------------------------------------------------------------------------------

    def _newest(self, picks: list[Pick], one_table: bool) -> Pick:
        ancestors = {basename(f) for p in picks for f in _log_of(p.document)}
        heads = [p for p in picks if basename(p.real) not in ancestors] or picks
        heads.sort(key=lambda p: (self.kind.age(p.document), basename(p.real)), reverse=True)
        best = heads[0]
        name = basename(best.real)
        rivals = [p for p in heads[1:] if _is_rival(p, best, self.kind.uuid)]
        if not rivals:
            return self._noted(
                best, f"Metadata: {name}, the last written of {len(picks)} metadata files of this name or number."
            )
        others = ", ".join(basename(p.real) for p in rivals[:6]) + (" …" if len(rivals) > 6 else "")
        same_time = self.kind.age(best.document)[0] == self.kind.age(rivals[0].document)[0]
        if same_time and not one_table:
            listed = ", ".join(sorted(basename(p.real) for p in picks)[:12])
            raise MetadataNotFoundError(
                f"cannot determine the newest of {len(picks)} metadata files; open one by its path: {listed}"
            )
        why = (
            "the last by name, as several were written at the same time"
            if same_time
            else f"the last written ({'last-updated-ms' if self.kind == TABLE else 'version-log'})"
        )
        uuids = len({p.document.get(self.kind.uuid) for p in (best, *rivals)})
        again = f" They have {uuids} {self.kind.uuid}s: a {self.kind.name} was dropped and recreated here."
        different = again if uuids > 1 else ""
        text = f"{name} was chosen, {why}; others that could be the newest: {others}.{different}"
        self._problems.add(
            problem(
                "metadata-ambiguous",
                self._storage.unresolve(best.real),
                f"Several metadata files could be the newest; {text}",
                found=f"{len(rivals) + 1} files",
                expected="one",
            )
        )
        return self._noted(best, f"Metadata: {text}")

    def _by_hint(self, folder: str) -> tuple[Pick | None, tuple[str, ...]]:
        try:
            data = self._storage.read_real(join(folder, HINT), kind="metadata", most=_HINT_BYTES)
            text = data[:4096].decode("utf-8", "replace")
        except MemoryLimitError:
            return None, (f"{HINT} has more than {_HINT_BYTES:,} bytes: the newest by name was chosen.",)
        except (FileMissingError, AccessDeniedError):
            return None, ()  # without permission to list, object stores refuse access to missing files
        except StorageError:
            entry = self._storage.find(join(folder, HINT))
            if entry is None or not entry.is_folder:
                raise
            return None, (f"{HINT} is a folder, not a file: the newest by name was chosen.",)
        number, names = hinted_names(text)
        found = self._existing(folder, names)
        if found is None:
            shown = text.strip()[:80]
            if not names:
                explanation = f"contains {shown!r}, which is not a version" if shown else "is empty"
                return None, (f"{HINT} {explanation}: the newest by name was chosen.",)
            where = self._storage.unresolve(join(folder, HINT))
            explanation = f"{HINT} points to {shown!r}, a missing metadata file: the newest by name was chosen."
            self._problems.add(problem("file-missing", where, explanation, found=shown, severity="warning"))
            return None, (explanation,)
        reason = f"from {HINT}"
        if number is not None:
            # As HadoopTableOperations.refresh does: from the hinted version, go on to the next one while there is one.
            hinted = number
            while number - hinted < _MOST_STEPS and (later := self._existing(folder, version_names(number + 1))):
                number, found = number + 1, later
            if number != hinted:
                reason = f"newer than version {hinted} in {HINT}; Iceberg looks for later versions from there"
        elif (newer := self._newer_than(folder, found)) is not None:
            reason += f" ({newer} has a larger number)"
        return self._or_older(found, folder, f"Metadata: {basename(found)}, {reason}."), ()

    def _modified(self, real: str) -> int:
        entry = self._storage.find(real)
        return (entry.modified_ms if entry else None) or 0

    def _newer_than(self, folder: str, real: str) -> str | None:
        """Return the file with the largest number; None if the hinted number is the largest, or for a remote folder."""
        number = parse_name(real)
        if number is None or not is_local(folder):
            return None
        names = [n for e in self._storage.entries(folder, details=False) if is_metadata_name(n := basename(e.real))]
        newest = max(names, key=lambda n: (-1 if (v := parse_name(n)) is None else v, n))
        found = parse_name(newest)
        return newest if found is not None and found > number else None

    def _or_older(self, real: str, folder: str, note: str) -> Pick:
        try:
            return self.load(real, note)
        except FormatError as e:
            names = [basename(x.real) for x in self._storage.entries(folder, details=False) if not x.is_folder]
            older = [join(folder, n) for n in choose(names).names if join(folder, n) != real]
            pick = self._fall_back(older, {real: e})
            if pick is None:
                raise
            return pick

    def _first(self, reals: Sequence[str], reason: str) -> Pick | None:
        if not reals:
            return None
        try:
            return self.load(reals[0], f"Metadata: {basename(reals[0])}, {reason}.")
        except FormatError as e:
            pick = self._fall_back(reals[1:], {reals[0]: e})
            if pick is None:
                raise
            return pick

    def _fall_back(self, reals: Sequence[str], broken: dict[str, IceexploreError]) -> Pick | None:
        """Return the next older readable file, or None; report unreadable files only if a readable one is found."""
        for real in reals[:_MOST_TIED]:
            try:
                pick = self.load(real)
            except (FormatError, UnsupportedError) as e:
                broken[real] = e
                continue
            for path, error in broken.items():
                self._problems.add_error(error, self._storage.unresolve(path))
            names = ", ".join(map(basename, broken))
            return self._noted(pick, f"Metadata: {basename(real)}, because newer files cannot be read: {names}.")
        return None

    def _by_version(self, folder: str, version: int | str, names: list[str]) -> Pick:
        files = [
            MetadataVersion(parse_name(n), self._storage.unresolve(join(folder, n)))
            for n in names
            if n.endswith((".json", ".gz"))
        ]
        found = match_version(version, files, same_location)
        if not found:
            raise nearest_versions(version, [f for f in files if is_metadata_name(f.name)], folder)
        reals = [join(folder, f.name) for f in found]
        pick = (
            self.load(reals[0], f"Metadata: {found[0].name}, from version=.")
            if len(reals) == 1
            else self.newest_of(reals, one_table=True)
        )
        if pick is None:
            raise FormatError(
                f"version {version}: its files are not {self.kind.name} metadata", location=folder, code=self.kind.code
            )
        return pick

    def _existing(self, folder: str, names: Sequence[str]) -> str | None:
        for name in names:
            real = join(folder, name)
            entry = self._storage.find(real)
            if entry is not None and not entry.is_folder:
                return real
        return None

    @staticmethod
    def _noted(pick: Pick, note: str) -> Pick:
        return Pick(pick.real, pick.document, (note, *pick.notes))


def nearest_versions(version: int | str, files: Sequence[MetadataVersion], where: str) -> SnapshotNotFoundError:
    """Return the error for a version that does not exist; it lists the nearest ones."""
    if isinstance(version, int):
        near: list[MetadataVersion] = sorted(
            (f for f in files if f.number is not None), key=lambda f: abs((f.number or 0) - version)
        )
    else:
        import difflib

        names = difflib.get_close_matches(version, [f.name for f in files], 5, 0.3)
        near = [f for n in names for f in files if f.name == n]
    listed = ", ".join(f.name for f in (near or list(files))[:5]) or "none"
    return SnapshotNotFoundError(
        f"no metadata file of version {version!r} in {where}; the nearest: {listed} ({len(files)} in all)"
    )


def _is_rival(other: Pick, best: Pick, uuid: str) -> bool:
    """Return whether ``other`` may be newer than ``best``: their UUIDs differ, or its number is not lower.

    Files of failed commits, which no metadata log lists, have lower numbers than the newest file.
    """
    if other.document.get(uuid) != best.document.get(uuid):
        return True
    mine, its = parse_name(best.real), parse_name(other.real)
    return mine is None or its is None or its >= mine


def _log_of(document: dict[str, Any]) -> list[str]:
    log = document.get("metadata-log")
    entries = log if isinstance(log, list) else []
    return [f for e in entries if isinstance(e, dict) and isinstance(f := e.get("metadata-file"), str)]
