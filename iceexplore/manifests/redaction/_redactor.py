"""Redact manifests, manifest lists and roots of every dialect, in Avro and Parquet, keeping shape and counts.

Fields are kept only if they are known to reveal nothing; their ids and types decide what they are (`_places`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from iceexplore.arrow import PlainValue
from iceexplore.errors import IceexploreError
from iceexplore.manifests._manifest_dv import decode_manifest_dv
from iceexplore.manifests.redaction._places import Terms, value_keys
from iceexplore.metadata import TableMetadata, resolved_location

__all__ = ["Redactor"]


class Redactor:
    """Redacts manifests.

    Parameters
    ----------
    terms
        What is redacted, and by which placeholders.
    header
        A function that redacts the key-value metadata of a file.
    metadata
        The table's metadata: it defines which V4 statistics hold partition values, and which columns may hold text.
    """

    def __init__(
        self, terms: Terms, header: Callable[[Mapping[str, str]], dict[str, str]], metadata: TableMetadata
    ) -> None:
        self.terms = terms
        self.header = header
        self.field_keys, self.stats_keys, self.derived_keys = value_keys(metadata)
        numbers = ("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "decimal")
        self.table = metadata.location
        #: Columns whose bounds are not text and so hold no credentials.
        self.plain = frozenset(i for i, (_, f) in metadata.all_fields().items() if str(f.type).startswith(numbers))

    def length_of(self, lengths: Mapping[str, int]) -> Callable[[Any, int], int]:
        """Return a function that maps a file's location (in V4 perhaps relative) and old length to its new length."""

        def now(location: PlainValue, length: int) -> int:
            if location in lengths or not isinstance(location, str) or location.startswith("/") or ":" in location:
                return lengths.get(location, length)
            return lengths.get(resolved_location(location, self.table), length)

        return now

    def value_text(self, text: str) -> str:
        """Return a value that is kept, with secrets redacted."""
        from_secret = self.terms.credentials and not self.terms.values
        return self.terms.secretless(text) if from_secret else text

    def has_secret(self, data: bytes) -> bool:
        """Return whether these bytes are a text that contains a secret."""
        if not self.terms.credentials or len(data) < 4:
            return False
        text = data.decode("utf-8", "replace")
        return bool(self.terms.secretless(text) != text)

    def data(self, data: bytes) -> bytes:
        """Redact bytes of unknown meaning."""
        if self.terms.blanks or not data:
            return b""
        text = data.decode("utf-8", "replace")
        made = self.terms.text(text)
        return data if made == text else made.encode()

    def vector(self, data: bytes) -> bytes:
        """Keep a valid vector; redact anything else as bytes of unknown meaning."""
        try:
            decode_manifest_dv(data)
        except IceexploreError:
            return self.data(data)
        return data
