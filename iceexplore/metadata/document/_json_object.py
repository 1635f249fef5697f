"""Read keys of an untrusted JSON object: report every fault, and continue with a usable value."""

from __future__ import annotations

from typing import Any

from iceexplore.errors import FormatError, Problems, problem
from iceexplore.storage import JsonValue

__all__ = ["JsonObjectReader", "Reporter"]

LONG = 63
INT = 31


class Reporter:
    """Reports the faults of a document or of a part of it as problems.

    Without ``problems``, raises a `FormatError` for an error and ignores lesser faults.

    Parameters
    ----------
    code
        The problem code of documents that break the spec.
    """

    def __init__(self, problems: Problems | None, where: str, code: str = "metadata-invalid") -> None:
        self.problems = problems
        self.where = where
        self.code = code

    def at(self, part: str) -> Reporter:
        """Return a reporter for a part of this document, such as ``snapshot 17``."""
        return Reporter(self.problems, f"{self.where}#{part}", self.code)

    def error(self, text: str, key: str) -> None:
        """Report a violation of the spec that makes readers fail."""
        if self.problems is None:
            raise FormatError(text, location=self.where or None, field=key, code=self.code)
        self.problems.add(problem(self.code, self.where, text, field=key))

    def warning(self, text: str, key: str, *, found: object = None) -> None:
        """Report a fault that readers tolerate."""
        if self.problems is not None:
            item = problem(self.code, self.where, text, field=key, found=found, severity="warning")
            self.problems.add(item)

    def unsupported(self, text: str, key: str) -> None:
        """Report something that may be valid but is not supported."""
        if self.problems is not None:
            self.problems.add(problem("unsupported", self.where, text, field=key))


class JsonObjectReader:
    """A JSON object with checked access by key."""

    def __init__(self, json: JsonValue, reporter: Reporter, what: str) -> None:
        self.reporter = reporter
        self.what = what
        if not isinstance(json, dict):
            reporter.error(f"{what} must be an object, found {shown(json)}", what)
            json = {}
        self.json: dict[str, Any] = json

    def integer(self, key: str, *, bits: int = LONG, required: bool = False) -> int | None:
        """Return an int or long, None if there is none. A string of digits or a whole float is reported and used."""
        value = self.json.get(key)
        if value is None:
            if required:
                self.reporter.error(f"{self.what} lacks {key}", key)
            return None
        if type(value) is not int:
            self._wrong(key, "a whole number", value)
            digits = isinstance(value, str) and len(value) <= 20 and value.isascii()
            if (digits and value.removeprefix("-").isdecimal()) or (isinstance(value, float) and value.is_integer()):
                value = int(value)
            else:
                return None
        if not -(1 << bits) <= value < 1 << bits:
            self.reporter.error(f"{key} of {self.what} does not fit in {bits + 1} bits: {shown(value)}", key)
            return None
        return value

    def snapshot_id(self, key: str, *, required: bool = False) -> int | None:
        """Return a snapshot id. A number that fits only an unsigned 64-bit integer is reported and read as signed.

        Some writers created such ids. References are read in the same way, so they still resolve.
        """
        value = self.json.get(key)
        if type(value) is int and 1 << LONG <= value < 1 << (LONG + 1):
            self.reporter.error(
                f"{key} of {self.what} is {value}, which is not a signed 64-bit integer: read as {signed(value)}", key
            )
            return signed(value)
        return self.integer(key, required=required)

    def text(self, key: str, *, required: bool = False) -> str | None:
        """Return a string, None if missing or of another type."""
        value = self.json.get(key)
        if value is None:
            if required:
                self.reporter.error(f"{self.what} lacks {key}", key)
            return None
        if not isinstance(value, str):
            self._wrong(key, "a string", value)
            return None
        return value

    def integers(self, key: str, *, required: bool = False) -> tuple[int, ...]:
        """Return a list of ints; other items are reported and left out."""
        values = self.items(key, required=required)
        good = tuple(v for v in values if type(v) is int and -(1 << INT) <= v < 1 << INT)
        if len(good) < len(values):
            self._wrong(key, "a list of ints", values)
        return good

    def items(self, key: str, *, required: bool = False) -> list[Any]:
        """Return a list of any items; a missing one is empty."""
        value = self.json.get(key)
        if value is None:
            if required:
                self.reporter.error(f"{self.what} lacks {key}", key)
            return []
        if not isinstance(value, list):
            self._wrong(key, "a list", value)
            return []
        return value

    def object(self, key: str) -> dict[str, Any]:
        """Return an object; a missing one is empty."""
        value = self.json.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._wrong(key, "an object", value)
            return {}
        return value

    def string_map(self, key: str) -> dict[str, str]:
        """Return an object of strings; other values are reported (a warning) and converted to text."""
        out: dict[str, str] = {}
        for name, value in self.object(key).items():
            if not isinstance(value, str):
                self.reporter.warning(f"{key} of {self.what}: {name!r} must be a string, found {shown(value)}", key)
                value = shown(value)
            out[name] = value
        return out

    def _wrong(self, key: str, expected: str, value: JsonValue) -> None:
        self.reporter.error(f"{key} of {self.what} must be {expected}, found {shown(value)}", key)


def signed(value: int) -> int:
    """Return an unsigned 64-bit number reinterpreted as signed; other numbers unchanged."""
    return value - (1 << (LONG + 1)) if 1 << LONG <= value < 1 << (LONG + 1) else value


def shown(value: object) -> str:
    """Return a value as a short text for a message, however large the value is."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if abs(value) >= 1 << 128:  # Python limits the digits of printed ints (sys.set_int_max_str_digits)
            return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
