"""The keys that the V4 proposal requires of every manifest ("V4 Manifest Key Value Metadata")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from iceexplore.metadata import Dialect

__all__ = ["key_faults"]


def key_faults(keys: Mapping[str, str], content: str, dialect: Dialect) -> Iterator[tuple[str, str | None, str]]:
    """Yield the faults of a manifest's key-value metadata: the key, its value (None if missing), and a description.

    Only the proposal has these keys: the V4 draft does not mention them, and Delta Lake writes none.

    Parameters
    ----------
    content
        The content that the manifest must have because of its place in the tree: ``data``, ``delete`` or ``root``.
    """
    if not dialect.has_root_manifest or dialect.deletion_vectors_on_entries:
        return
    version, stated = keys.get("format-version"), keys.get("content")
    if version is None:
        yield "format-version", None, "the key-value metadata has no format-version"
    elif not (version.isascii() and version.isdecimal() and len(version) < 4):
        yield "format-version", version[:40], f"the key-value metadata has format-version {version[:40]!r}"
    if stated is None:
        yield "content", None, "the key-value metadata has no content"
    elif stated != content:
        yield "content", stated[:40], f"the key-value metadata of a {content} manifest has content {stated[:40]!r}"
