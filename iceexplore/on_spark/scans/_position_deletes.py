"""Deleted rows as bits: one flat array of longs, where a row finds its bit by its place in the file or by its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["KeyBits", "kept_by_key", "kept_by_place", "key_bits"]

#: Words of keys' bits that are worth it however few the keys are: 1 MiB.
_SMALL = 1 << 17
#: At most: 32 MiB.
_MOST = 1 << 22


@dataclass(frozen=True, eq=False)
class KeyBits:
    """Whole numbers that are deleted, as bits.

    Attributes
    ----------
    lowest, highest
        What the numbers lie between.
    words
        Bit ``n & 63`` of word ``(n >> 6) - (lowest >> 6)`` is a number's; one set of deletes after another.
    size
        How many words a set has.
    """

    lowest: int
    highest: int
    words: pa.Array
    size: int


def key_bits(keys: Sequence[pa.Array], masks: Sequence[Sequence[int]]) -> KeyBits | None:
    """Bits of the keys of some deletes; None where a table of keys takes less.

    Parameters
    ----------
    keys
        By delete, whole numbers without nulls.
    masks
        By delete whether it is in each set of deletes.
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
    """Whether a row's key is in no delete of its set; a null is in none.

    Parameters
    ----------
    number
        The row's set; None where there is one.
    """
    from pyspark.sql import functions as f

    key = key.cast("bigint")
    # Nothing here can overflow, whichever part of it Spark computes first.
    word = f.shiftright(key, 6) - f.lit(bits.lowest >> 6).cast("bigint")
    if number is not None:
        word = number * f.lit(bits.size).cast("bigint") + word
    within = (key >= f.lit(bits.lowest).cast("bigint")) & (key <= f.lit(bits.highest).cast("bigint"))
    return f.when(within, _unset(words, word, key)).otherwise(f.lit(True))


def kept_by_place(words: Column, begin: Column, index: Column) -> Column:
    """Whether the row of this index in its file is not deleted.

    Parameters
    ----------
    begin
        Where the file's words begin.
    """
    from pyspark.sql import functions as f

    return _unset(words, begin + f.shiftright(index, 6), index)


def _unset(words: Column, word: Column, number: Column) -> Column:
    from pyspark.sql import functions as f

    bit = number.bitwiseAND(f.lit(63).cast("bigint")).cast("int")
    shifted = f.call_function("shiftright", f.get(words, word), bit)
    return shifted.bitwiseAND(f.lit(1).cast("bigint")) == f.lit(0).cast("bigint")
