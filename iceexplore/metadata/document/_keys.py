"""Reading keys of a JSON object that somebody else wrote: every fault is reported, and something sensible goes on."""

from __future__ import annotations

from typing import Any

from iceexplore.errors import FormatError, Problems, problem

__all__ = ["Keys", "Reporter"]

LONG = 63
INT = 31


class Reporter:
    """Where faults go: problems on one node, or, without ``problems``, a `FormatError`."""

    def __init__(self, problems: Problems | None, where: str) -> None:
        self.problems = problems
        self.where = where

    def at(self, part: str) -> Reporter:
        """The reporter of a part of this node, such as ``snapshot 17``."""
        return Reporter(self.problems, f"{self.where}#{part}")

    def error(self, text: str, key: str) -> None:
        """Report a breach of the spec that readers trip over."""
        if self.problems is None:
            raise FormatError(text, location=self.where or None, field=key, code="metadata-invalid")
        self.problems.add(problem("metadata-invalid", self.where, text, field=key))

    def warning(self, text: str, key: str, *, found: object = None) -> None:
        """Report what is wrong and yet can be read."""
        if self.problems is not None:
            item = problem("metadata-invalid", self.where, text, field=key, found=found, severity="warning")
            self.problems.add(item)

    def unsupported(self, text: str, key: str) -> None:
        """Report what may be sound, and is not known here."""
        if self.problems is not None:
            self.problems.add(problem("unsupported", self.where, text, field=key))


class Keys:
    """An object's values by key, checked."""

    def __init__(self, json: Any, reporter: Reporter, what: str) -> None:
        self.reporter = reporter
        self.what = what
        if not isinstance(json, dict):
            reporter.error(f"{what} must be an object, found {shown(json)}", what)
            json = {}
        self.json: dict[str, Any] = json

    def integer(self, key: str, *, bits: int = LONG, required: bool = False) -> int | None:
        """An int or long. Digits in a string, and whole floats, are reported and used."""
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
        """A snapshot id. One that only fits an unsigned 64-bit number is reported, and read as the signed one.

        Some writers made such ids; as every mention is read alike, what they name is still found.
        """
        value = self.json.get(key)
        if type(value) is int and 1 << LONG <= value < 1 << (LONG + 1):
            self.reporter.error(
                f"{key} of {self.what} is {value}, which is no 64-bit signed number: read as {signed(value)}", key
            )
            return signed(value)
        return self.integer(key, required=required)

    def text(self, key: str, *, required: bool = False) -> str | None:
        """A string."""
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
        """A list of ints; what is none is left out."""
        values = self.items(key, required=required)
        good = tuple(v for v in values if type(v) is int and -(1 << INT) <= v < 1 << INT)
        if len(good) < len(values):
            self._wrong(key, "a list of ints", values)
        return good

    def items(self, key: str, *, required: bool = False) -> list[Any]:
        """A list of anything; an absent one is empty."""
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
        """An object; an absent one is empty."""
        value = self.json.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._wrong(key, "an object", value)
            return {}
        return value

    def string_map(self, key: str) -> dict[str, str]:
        """An object of strings. Other plain values are reported (a warning) and used as they print."""
        out: dict[str, str] = {}
        for name, value in self.object(key).items():
            if not isinstance(value, str):
                self.reporter.warning(f"{key} of {self.what}: {name!r} must be a string, found {shown(value)}", key)
                value = shown(value)
            out[name] = value
        return out

    def _wrong(self, key: str, expected: str, value: Any) -> None:
        self.reporter.error(f"{key} of {self.what} must be {expected}, found {shown(value)}", key)


def signed(value: int) -> int:
    """An unsigned 64-bit number's bits as a signed number; others as they are."""
    return value - (1 << (LONG + 1)) if 1 << LONG <= value < 1 << (LONG + 1) else value


def shown(value: Any) -> str:
    """A value of any size for a message."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if abs(value) >= 1 << 128:  # printing has a limit of digits (sys.set_int_max_str_digits)
            return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
