"""Re-raise errors from Spark's workers, and missing or damaged files that Spark finds, as this library's errors.

Spark delivers a worker's error as text only: Python's traceback, surrounded by messages of the JVM.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from iceexplore.errors import CommitConflictError, FileMissingError, FormatError, IceexploreError, RuleError

__all__ = ["as_ours"]

#: A traceback line that begins with an error's full name, followed by its message.
_RAISED = re.compile(r"^(iceexplore\.[\w.]+): ", re.MULTILINE)
#: The end of a message, which may have several lines: Java's stack, or the start of a chained Python error.
_AFTER = re.compile(
    r"\n\s*(?:\tat |Driver stacktrace:|JVM stacktrace:"
    r"|The above exception was the direct cause |During handling of the above exception, )"
)
#: The messages of Spark 4 and Spark 3.5 for a data file that no longer exists when Spark reads it.
_GONE = re.compile(
    r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (.+?)\. File does not exist"
    r"|SparkFileNotFoundException: File (.+?) does not exist"
)
#: The message of parquet-java for a page whose checksum does not match, in a file that Spark read, possibly through a
#: link.
_DAMAGED = re.compile(r"Encountered error while reading file \S*?([^/\s]+)\.\s.*?(could not verify [^\n]*)", re.DOTALL)


@contextmanager
def as_ours() -> Iterator[None]:
    """Re-raise an error from a worker as the one that was raised there."""
    try:
        yield
    except IceexploreError:
        raise
    except Exception as error:
        ours = _error_in(str(error))
        if ours is None:
            raise
        raise ours from error


def _error_in(text: str) -> IceexploreError | None:
    """Return the last error of this library in a text, as those before it are its causes; None if there is none."""
    kinds = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _below(IceexploreError)}
    raised = [found for found in _RAISED.finditer(text) if found[1] in kinds]
    if not raised:
        if damaged := _DAMAGED.search(text):
            return FormatError(f"the Parquet file cannot be read: {damaged[2].strip()}", location=damaged[1])
        gone = _GONE.search(text)
        return None if gone is None else FileMissingError(f"{gone[1] or gone[2]} does not exist")
    message = _AFTER.split(text[raised[-1].end() :], maxsplit=1)[0].strip()
    kind = kinds[raised[-1][1]]
    if issubclass(kind, (RuleError, CommitConflictError)):
        plain, _, rule = message.removesuffix("]").rpartition(" [rule ")
        return kind(rule, plain)
    return kind(message)


def _below(kind: type[IceexploreError]) -> Iterator[type[IceexploreError]]:
    """Yield all subclasses at every depth, including those that a package does not export."""
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)
