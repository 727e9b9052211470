"""What the web servers answer: files, a page that says which host was asked, a place that leads elsewhere, and git by its own server program."""

from __future__ import annotations

import http.server
import os
import subprocess
from urllib.parse import parse_qs, urlsplit


class Pages(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/":
            self._answer(200, f"hello from {self.headers.get('Host', '')}\n".encode())
        elif asked.path == "/elsewhere":
            self._answer(302, b"", {"Location": parse_qs(asked.query)["to"][0]})
        elif asked.path.startswith("/git/"):
            self._ask_git(b"")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self._ask_git(self._read_body())

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _ask_git(self, body: bytes) -> None:
        """As a web server's CGI does."""
        asked = urlsplit(self.path)
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.directory, "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command,
            "PATH_INFO": asked.path, "QUERY_STRING": asked.query, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, timeout=60)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self._answer(int(fields.pop("Status", "200")[:3]), content, fields)

    def _answer(self, code: int, content: bytes, fields: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(content)), **(fields or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
