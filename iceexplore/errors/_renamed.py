"""Old names of arguments and methods: accepted for one release, with a `DeprecationWarning`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from iceexplore.errors._exceptions import OptionError

__all__ = ["renamed_arguments", "renamed_method"]

P = ParamSpec("P")
R = TypeVar("R")


def renamed_arguments(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that accepts keyword arguments under their old names.

    Parameters
    ----------
    names
        The new name of each argument, keyed by its old name.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            for old, new in names.items():
                if old in given:
                    if new in given:
                        raise OptionError(f"{function.__name__}(): {old}= is the old name of {new}=: give {new}= alone")
                    text = f"{function.__name__}({old}=...) is deprecated: use {new}="
                    warnings.warn(text, DeprecationWarning, stacklevel=2)
                    given[new] = given.pop(old)
            return function(*args, **given)

        return call

    return decorate


def renamed_method(new: str, old: str) -> Any:  # noqa: ANN401  a method of any signature
    """Return a method under an old name that warns and calls the method ``new`` of the same object."""

    def call(self: Any, *args: Any, **given: Any) -> Any:  # noqa: ANN401  the method's own
        warnings.warn(f"{old}() is deprecated: use {new}()", DeprecationWarning, stacklevel=2)
        return getattr(self, new)(*args, **given)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"Call `{new}`; this old name is deprecated."
    return call
