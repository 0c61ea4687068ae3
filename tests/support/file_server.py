"""file_server.py — files in, a web server in this process out: with ranges and versions, and faults when told."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FileServer:
    """Serves `files` (path to bytes) at `url`. `asked` lists (path, Range header, status) of every request.

    cut: so many bytes of a body are sent before the connection is closed, for the next `cuts` requests.
    status: what every request is answered with instead, where it is set. lengths: whether bodies tell their length.
    """

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = dict(files or {})
        self.asked: list[tuple[str, str | None, int]] = []
        self.cut, self.cuts, self.status, self.lengths = 0, 0, 0, True
        self.redirects: dict[str, str] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server._answer(self)

            def log_message(self, *words: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> FileServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops it: its address refuses connections from now on."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, request: Any) -> None:
        asked = request.headers.get("Range")
        status, start = self.status or 200, 0
        body = self.files.get(request.path)
        if not self.status and request.path in self.redirects:
            status = 302
        elif not self.status and body is None:
            status = 404
        etag = f'"{hash(body)}"'
        if status == 200 and request.headers.get("If-None-Match") == etag:
            status = 304
        found = re.fullmatch(r"bytes=(\d+)-", asked or "")
        if status == 200 and found and request.headers.get("If-Range", etag) == etag:
            status, start = (206, int(found[1])) if int(found[1]) < len(body or b"") else (416, 0)
        self.asked.append((request.path, asked, status))
        request.send_response(status)
        sent = (body or b"")[start:] if status in (200, 206) else b""
        if status == 302:
            request.send_header("Location", self.redirects[request.path])
        request.send_header("ETag", etag)
        if status == 206:
            request.send_header("Content-Range", f"bytes {start}-{len(body or b'') - 1}/{len(body or b'')}")
        if self.lengths:
            request.send_header("Content-Length", str(len(sent)))
        request.end_headers()
        if self.cuts and sent:
            self.cuts -= 1
            sent = sent[: self.cut]
        request.wfile.write(sent)
        request.close_connection = True
