"""Redact manifests, manifest lists and roots of every dialect, in Avro and Parquet: their shape and counts stay.

Only what is known to hold nothing of the table is kept; what a field is, its id and type tell (`_redact_places`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from iceexplore.errors import IceexploreError
from iceexplore.manifests._manifest_dv import decode_manifest_dv
from iceexplore.manifests.model._locations import joined
from iceexplore.manifests.redaction._places import Terms, value_keys

__all__ = ["Redactor"]


class Redactor:
    """Redacts manifests.

    Parameters
    ----------
    terms
        What is redacted, and what stands in for it.
    header
        Redacts the key-value metadata of a file.
    metadata
        The table's: which statistics of V4 hold partition values, and which columns may hold text.
    """

    def __init__(self, terms: Terms, header: Callable[[Mapping[str, str]], dict[str, str]], metadata: Any) -> None:
        self.terms = terms
        self.header = header
        self.field_keys, self.stats_keys, self.derived_keys = value_keys(metadata)
        numbers = ("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "decimal")
        self.table = metadata.location
        #: Columns whose bounds are no text, so hold no credentials.
        self.plain = frozenset(i for i, (_, f) in metadata.all_fields().items() if str(f.type).startswith(numbers))

    def length_of(self, lengths: Mapping[str, int]) -> Callable[[Any, int], int]:
        """What a file that was rewritten is long now, by its location as written: in V4 it may be relative."""

        def now(location: Any, length: int) -> int:
            if location in lengths or not isinstance(location, str) or location.startswith("/") or ":" in location:
                return lengths.get(location, length)
            return lengths.get(joined(location, self.table), length)

        return now

    def value_text(self, text: str) -> str:
        """A value that stays a value, without what has the form of a secret."""
        from_secret = self.terms.credentials and not self.terms.values
        return self.terms.secretless(text) if from_secret else text

    def has_secret(self, data: bytes) -> bool:
        """Whether bytes are a text with a secret in it."""
        if not self.terms.credentials or len(data) < 4:
            return False
        text = data.decode("utf-8", "replace")
        return bool(self.terms.secretless(text) != text)

    def data(self, data: bytes) -> bytes:
        """Bytes of unknown meaning."""
        if self.terms.blanks or not data:
            return b""
        text = data.decode("utf-8", "replace")
        made = self.terms.text(text)
        return data if made == text else made.encode()

    def vector(self, data: bytes) -> bytes:
        """Positions stay; what is none is data of unknown meaning."""
        try:
            decode_manifest_dv(data)
        except IceexploreError:
            return self.data(data)
        return data
