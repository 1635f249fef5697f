"""Deleted rows as bits in one flat array of longs, which a row looks up by its position in the file or by its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["KeyBits", "kept_by_key", "kept_by_place", "key_bits"]

#: Number of words (1 MiB) up to which keys are stored as bits even if there are few keys.
_SMALL = 1 << 17
#: Maximum number of words of key bits, however many keys there are (32 MiB).
_MOST = 1 << 22


@dataclass(frozen=True, eq=False)
class KeyBits:
    """Deleted integer keys, as bits.

    Attributes
    ----------
    lowest, highest
        The smallest and greatest key.
    words
        Key ``n`` has bit ``n & 63`` of word ``(n >> 6) - (lowest >> 6)``. The words of all sets of deletes are
        concatenated.
    size
        The number of words per set.
    """

    lowest: int
    highest: int
    words: AnyArray
    size: int


def key_bits(keys: Sequence[AnyArray], masks: Sequence[Sequence[int]]) -> KeyBits | None:
    """Return the keys of some deletes as bits; None if a table of keys is smaller, or there are no keys.

    Parameters
    ----------
    keys
        The keys of each delete, integers without nulls.
    masks
        For each delete, which sets of deletes contain it (0 or 1 per set).
    """
    some = [(np.asarray(k.cast(pa.int64())), m) for k, m in zip(keys, masks, strict=True) if len(k)]
    if not some:
        return None
    lowest, highest = min(int(k.min()) for k, _ in some), max(int(k.max()) for k, _ in some)
    first, sets = lowest >> 6, len(masks[0])
    size = (highest >> 6) - first + 1
    if size * sets > min(_MOST, max(_SMALL, sum(len(k) for k, _ in some))):
        return None
    words = np.zeros((sets, size), dtype=np.uint64)
    for numbers, mask in some:
        at, bit = (numbers >> 6) - first, np.uint64(1) << (numbers & 63).astype(np.uint64)
        for one in np.flatnonzero(mask):
            np.bitwise_or.at(words[one], at, bit)
    return KeyBits(lowest, highest, pa.array(words.reshape(-1).view(np.int64)), size)


def kept_by_key(words: Column, bits: KeyBits, key: Column, number: Column | None) -> Column:
    """Return a condition that is true if no delete of a row's set contains its key; true for null.

    Parameters
    ----------
    number
        The number of the row's set; None if there is only one set.
    """
    from pyspark.sql import functions as f

    key = key.cast("bigint")
    # No step can overflow, in whatever order Spark evaluates them.
    word = f.shiftright(key, 6) - f.lit(bits.lowest >> 6).cast("bigint")
    if number is not None:
        word = number * f.lit(bits.size).cast("bigint") + word
    within = (key >= f.lit(bits.lowest).cast("bigint")) & (key <= f.lit(bits.highest).cast("bigint"))
    return f.when(within, _unset(words, word, key)).otherwise(f.lit(True))


def kept_by_place(words: Column, begin: Column, index: Column) -> Column:
    """Return a condition that is true if the row at an index in its file is not deleted.

    Parameters
    ----------
    begin
        The index of the file's first word.
    """
    from pyspark.sql import functions as f

    return _unset(words, begin + f.shiftright(index, 6), index)


def _unset(words: Column, word: Column, number: Column) -> Column:
    from pyspark.sql import functions as f

    bit = number.bitwiseAND(f.lit(63).cast("bigint")).cast("int")
    shifted = f.call_function("shiftright", f.get(words, word), bit)
    return shifted.bitwiseAND(f.lit(1).cast("bigint")) == f.lit(0).cast("bigint")
