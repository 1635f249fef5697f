"""A server on this machine that answers every request as a function does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

__all__ = ["answering"]


@contextmanager
def answering(
    answer: Callable[[str], tuple[int, str, bytes]],
    answer_post: Callable[[str, bytes], tuple[int, str, bytes]] | None = None,
) -> Iterator[str]:
    """Run a server, and yield its URL.

    Parameters
    ----------
    answer
        Takes the path of a GET or HEAD request, without its query; returns status, content type and body.
    answer_post
        The same for POST requests, with their bodies.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(*answer(self.path.partition("?")[0]))

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if answer_post is None:
                return self.send_error(501)
            self.reply(*answer_post(self.path.partition("?")[0], sent))

        def reply(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
