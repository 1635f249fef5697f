"""Redact a manifest, a manifest list or a root manifest, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping

from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.formats import Avro, Parquet
from iceexplore.manifests.redaction._avro import redact_avro
from iceexplore.manifests.redaction._parquet import redact_parquet
from iceexplore.manifests.redaction._redactor import Redactor

__all__ = ["redact_manifest"]


def redact_manifest(redactor: Redactor, data: bytes, location: str, lengths: Mapping[str, int]) -> bytes:
    """Redact a file of records: a manifest, a manifest list, a root manifest or a delete file.

    Parameters
    ----------
    lengths
        New lengths of rewritten files, by location as written: the entries of these files get the new lengths.

    Raises
    ------
    FormatError
        The file is damaged, so that part of its content is unknown.
    UnsupportedError
        The file's format cannot be rewritten.
    """
    if not data.startswith((Avro.magic, Parquet.magic)):
        raise UnsupportedError(f"only Avro and Parquet files can be redacted, and {location} is neither")
    try:
        if data.startswith(Avro.magic):
            return redact_avro(redactor, data, location, lengths)
        return redact_parquet(redactor, data, location, lengths)
    except IceexploreError:
        raise
    except RecursionError:
        raise UnsupportedError(f"{location} cannot be redacted: its records are nested too deeply") from None
    except Exception as e:  # fastavro and Arrow raise all kinds of errors on damaged files
        raise FormatError(f"the file cannot be redacted: {type(e).__name__}", location=location) from e
