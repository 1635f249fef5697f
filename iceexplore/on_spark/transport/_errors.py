"""What a Spark worker raised as an error of ours, raised here as that error; and files that Spark itself missed.

Spark brings a worker's error as text alone: Python's traceback, and around it what the JVM has to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from iceexplore.errors import CommitConflictError, FileMissingError, FormatError, IceexploreError, RuleError

__all__ = ["as_ours"]

#: A line of a traceback that begins with an error's full name, and its message.
_RAISED = re.compile(r"^(iceexplore\.[\w.]+): ", re.MULTILINE)
#: What comes after a message, which may have several lines: Java's stack, or the error that Python made of this one.
_AFTER = re.compile(
    r"\n\s*(?:\tat |Driver stacktrace:|JVM stacktrace:"
    r"|The above exception was the direct cause |During handling of the above exception, )"
)
#: A data file that was gone when Spark came to read it, as Spark 4 and Spark 3.5 say it.
_GONE = re.compile(
    r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (.+?)\. File does not exist"
    r"|SparkFileNotFoundException: File (.+?) does not exist"
)
#: A page that does not fit its checksum (parquet-java), in a file that Spark read, maybe by a link.
_DAMAGED = re.compile(r"Encountered error while reading file \S*?([^/\s]+)\.\s.*?(could not verify [^\n]*)", re.DOTALL)


@contextmanager
def as_ours() -> Iterator[None]:
    """What a worker refuses, or cannot do, as the error that it raised there."""
    try:
        yield
    except IceexploreError:
        raise
    except Exception as error:
        ours = _told(str(error))
        if ours is None:
            raise
        raise ours from error


def _told(text: str) -> IceexploreError | None:
    """The last error of ours in a text: those before it are its causes."""
    kinds = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _below(IceexploreError)}
    raised = [found for found in _RAISED.finditer(text) if found[1] in kinds]
    if not raised:
        if damaged := _DAMAGED.search(text):
            return FormatError(f"the Parquet file does not read: {damaged[2].strip()}", location=damaged[1])
        gone = _GONE.search(text)
        return None if gone is None else FileMissingError(f"{gone[1] or gone[2]} does not exist")
    message = _AFTER.split(text[raised[-1].end() :], maxsplit=1)[0].strip()
    kind = kinds[raised[-1][1]]
    if issubclass(kind, (RuleError, CommitConflictError)):
        said, _, rule = message.removesuffix("]").rpartition(" [rule ")
        return kind(rule, said)
    return kind(message)


def _below(kind: type[IceexploreError]) -> Iterator[type[IceexploreError]]:
    """Every class of errors there is, also those that a package keeps to itself."""
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)
