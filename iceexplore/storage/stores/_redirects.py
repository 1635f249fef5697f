"""Follow HTTP redirects to other addresses only with permission.

Otherwise a table's server could make this machine send requests to any host that it can reach, and disclose the
responses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

__all__ = ["guard_session", "origin", "traced_client"]

_PORTS = {"http": 80, "https": 443, "webhdfs": 80, "swebhdfs": 443}


def origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL; an unparsable URL is its own origin."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        return scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(scheme)
    except ValueError:
        return url, "", None


def traced_client(options: Any, check: Callable[[str, str], None]) -> dict[str, Any]:
    """Return options for aiohttp's session that call ``check`` with each redirect before it is followed."""
    import aiohttp

    async def on_redirect(session: Any, context: Any, details: Any) -> None:
        headers = details.response.headers
        target = headers.get("Location") or headers.get("URI")
        if target is not None:
            asked = str(details.response.url)
            check(asked, urljoin(asked, target))

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(on_redirect)
    given = dict(options) if isinstance(options, Mapping) else {}
    return {**given, "trace_configs": [*(given.get("trace_configs") or ()), trace]}


def guard_session(session: Any, check: Callable[[str, str], None]) -> None:
    """Make a `requests` session call ``check`` with each redirect before it is followed."""
    find = session.get_redirect_target

    def checked(response: Any) -> Any:
        target = find(response)
        if target:
            check(response.url, urljoin(response.url, target))
        return target

    session.get_redirect_target = checked
