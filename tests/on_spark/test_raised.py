"""Errors that workers raise, as Spark's text brings them: the same errors here, with every line of what they say."""

from __future__ import annotations

import inspect

import pytest

from iceexplore import errors
from iceexplore.errors import (
    CommitConflictError,
    FileMissingError,
    FormatError,
    IceexploreError,
    OptionError,
    RuleError,
    StorageError,
)
from iceexplore.on_spark.transport._errors import as_ours
from iceexplore.storage import ExistsError

CLASSES = [kind for name in errors.__all__ if inspect.isclass(kind := getattr(errors, name))]
KINDS = [kind for kind in CLASSES if issubclass(kind, IceexploreError) and kind is not IceexploreError]
#: What PySpark 4.1, PySpark 3.5 and Spark Connect put around a traceback.
AROUND = [
    "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n{}\n",
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "0.0 (TID 0) (host executor driver): org.apache.spark.api.python.PythonException: {}\n\n"
    "\tat org.apache.spark.api.python.BasePythonRunner.x(PythonRunner.scala:572)\n\nDriver stacktrace:",
    "(org.apache.spark.api.python.PythonException) {}\n\nJVM stacktrace:\norg.apache.spark.x\n\tat org.apache.y(z:1)",
]


def raised(text: str) -> BaseException:
    """What becomes of an error of Spark's with this text."""
    with pytest.raises(Exception) as caught, as_ours():  # noqa: PT011 (any kind, which is what is looked at)
        raise RuntimeError(text)
    return caught.value


def traceback(*raised: str) -> str:
    one = "Traceback (most recent call last):\n  File 'x.py', line 1, in run\n    raise OptionError('no')\n"
    return "\n\nThe above exception was the direct cause of the following exception:\n\n".join(one + r for r in raised)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("kind", KINDS)
def test_every_error_of_ours_comes_back_as_itself(kind: type[IceexploreError], around: str) -> None:
    made = (
        kind("ref-type", "a tag: no branch") if kind in (RuleError, CommitConflictError) else kind("a tag: no branch")
    )
    found = raised(around.format(traceback(f"iceexplore.errors.{kind.__name__}: {made}")))
    assert type(found) is kind and str(found) == str(made)
    if isinstance(found, (RuleError, CommitConflictError)):
        assert found.rule == "ref-type"


@pytest.mark.parametrize("around", AROUND)
def test_messages_of_several_lines_stay_whole(around: str) -> None:
    message = "the filter cannot be read here:\n  id >> 3\n     ^\n\none of <, >"
    found = raised(around.format(traceback(f"iceexplore.errors.OptionError: {message}")))
    assert type(found) is OptionError and str(found) == message


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred while calling o1.x.\n: org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] "
        "Encountered error while reading file file:///t/a.b.parquet. File does not exist. It is possible",
        "Lost task 0.0 (TID 4) (h): org.apache.spark.SparkFileNotFoundException: File file:///t/a.b.parquet does not "
        "exist\nIt is possible the underlying files have been updated.",
    ],
)
def test_a_file_that_spark_does_not_find(text: str) -> None:
    found = raised(text)
    assert type(found) is FileMissingError and str(found) == "file:///t/a.b.parquet does not exist"


def test_a_page_that_does_not_fit_its_checksum() -> None:
    found = raised(
        "An error occurred while calling o4.x.\n: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] "
        "Encountered error while reading file viewfs://ix7/_n=0/f0/1-data.parquet.  SQLSTATE: KD001\n\tat a.B.c(D:8)"
        "\nCaused by: org.apache.parquet.io.ParquetDecodingException: could not verify page integrity, CRC checksum "
        "verification failed"
        "\n\tat a.B.d(D.java:9)"
    )
    assert type(found) is FormatError and found.location == "1-data.parquet"
    assert found.reason.endswith("could not verify page integrity, CRC checksum verification failed")


def test_errors_that_are_a_packages_own() -> None:
    found = raised(traceback("iceexplore.storage.output._writable.ExistsError: there already"))
    assert type(found) is ExistsError and isinstance(found, StorageError)


def test_the_last_error_counts_and_not_its_causes() -> None:
    cause, last = "iceexplore.errors.FormatError: damaged", "iceexplore.errors.UnsupportedError: no such codec"
    assert str(raised(traceback(cause, last))) == "no such codec"
    found = raised(traceback(cause, "pyarrow.lib.ArrowInvalid: Exception of the stream"))
    assert type(found) is FormatError and str(found) == "damaged"


def test_other_errors_stay_what_they_are() -> None:
    for text in ("executor lost", traceback("ValueError: iceexplore.errors.OptionError: x"), "iceexplore.errors.No: x"):
        assert type(raised(text)) is RuntimeError
