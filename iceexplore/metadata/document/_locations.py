"""Parse the names of metadata files."""

from __future__ import annotations

import re

__all__ = ["parse_version"]

# "v3.metadata.json" in file-system tables, "00003-<uuid>.metadata.json" from catalogs. The suffix of gzip may be in
# either of the places where Java writes it (spec, "Naming for GZIP compressed Metadata JSON files"); some writers use
# other codecs.
_NAME = re.compile(r"(?:v(\d{1,18})|(\d{1,18})-[^/\\]*?)(?:\.(?:gz|zstd|zst))?\.metadata\.json(?:\.(?:gz|zstd|zst))?")


def parse_version(location: str) -> int | None:
    """Return the number in a metadata file's name; None where it has none (``vfinal.metadata.json``)."""
    match = _NAME.fullmatch(re.split(r"[/\\]", location)[-1])
    return int(match[1] or match[2]) if match else None
