"""Time travel: find the version with an id, or the one that was current at a time."""

from __future__ import annotations

from operator import attrgetter

from iceexplore.errors import OptionError, SnapshotNotFoundError
from iceexplore.metadata import format_ms, to_ms
from iceexplore.views._model import VersionLogEntry, ViewMetadata, ViewVersion
from iceexplore.views._state import ViewState

__all__ = ["resolve_view", "view_at", "view_clock"]


def view_clock(metadata: ViewMetadata) -> tuple[list[VersionLogEntry], bool]:
    """Return when each version became current, oldest first, and whether these times are from the version log.

    A version may occur several times, because a rollback makes an earlier one current again (view spec, "Version log").
    Only for a view without a version log are the versions' times of creation used instead.
    """
    if metadata.version_log:
        # The sort is stable: entries with the same millisecond keep their order in the log, so the last one wins.
        return sorted(metadata.version_log, key=attrgetter("timestamp_ms")), True
    made = sorted(metadata.versions, key=attrgetter("timestamp_ms", "version_id"))
    return [VersionLogEntry(v.timestamp_ms, v.version_id) for v in made], False


def view_at(state: ViewState, *, version: int | str | None = None, timestamp: object = None) -> ViewState:
    """Return the view as of a version or a time. Give exactly one of them.

    Raises
    ------
    OptionError
        Neither or both of them are given, or the value has the wrong type.
    SnapshotNotFoundError
        There is no such version, or the view did not exist yet; the message lists the nearest ones.
    """
    given = [name for name, value in (("version", version), ("timestamp", timestamp)) if value is not None]
    if len(given) != 1:
        raise OptionError(f"at() takes exactly one of version=, timestamp=; got {', '.join(given) or 'none'}")
    if version is not None:
        found = _version(state, version)
        return state.showing(found, f"version {found.version_id}")
    return _at_time(state, to_ms(timestamp))


def resolve_view(state: ViewState, at: object) -> ViewState:
    """Return the state for ``at``: a version, its id, or a state (of this or another view)."""
    if isinstance(at, ViewState):
        return at
    if isinstance(at, ViewVersion):
        return view_at(state, version=at.version_id)
    return state.showing(found := _version(state, at), f"version {found.version_id}")


def _version(state: ViewState, wanted: object) -> ViewVersion:
    text = str(wanted) if isinstance(wanted, (int, str)) and not isinstance(wanted, bool) else ""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
        raise OptionError(f"version={wanted!r} is not a version id (an integer); for a time use timestamp=")
    found = state.metadata.version(int(text))
    if found is not None:
        return found
    ids = sorted((v.version_id for v in state.metadata.versions), key=lambda i: abs(i - int(text)))
    if not ids:
        raise SnapshotNotFoundError(f"{state.name} has no version {text}: it has no versions at all")
    expired = next((e for e in state.metadata.version_log if e.version_id == int(text)), None)
    gone = "" if expired is None else f" (it was current from {format_ms(expired.timestamp_ms)} and has expired)"
    near = ", ".join(map(str, sorted(ids[:5])))
    raise SnapshotNotFoundError(f"{state.name} has no version {text}{gone}; the nearest of its {len(ids):,}: {near}")


def _at_time(state: ViewState, ms: int) -> ViewState:
    entries, _ = view_clock(state.metadata)
    past = [e for e in entries if e.timestamp_ms <= ms]
    if not past:
        first = "it has no versions"
        if entries:
            first = f"its history begins at {format_ms(entries[0].timestamp_ms)} (version {entries[0].version_id})"
        raise SnapshotNotFoundError(f"{state.name} had no version at {format_ms(ms)}: {first}")
    then = past[-1]
    found = state.metadata.version(then.version_id)
    if found is None:
        known = {v.version_id for v in state.metadata.versions}
        kept = sorted((e for e in entries if e.version_id in known), key=lambda e: abs(e.timestamp_ms - ms))[:3]
        listed = "; ".join(f"{e.version_id} (from {format_ms(e.timestamp_ms)})" for e in kept) or "none"
        raise SnapshotNotFoundError(
            f"at {format_ms(ms)} version {then.version_id} was current (from {format_ms(then.timestamp_ms)}), but it "
            f"has expired; the nearest that still exist: {listed}"
        )
    return state.showing(found, f"as of {format_ms(ms)}")
