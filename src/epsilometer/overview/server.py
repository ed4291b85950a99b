"""A read-only server for one folder of runs: three kinds of addresses, two methods, nothing to be changed."""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from epsilometer.errors import InvalidInput, one_line
from epsilometer.escape import visible
from epsilometer.overview.folder import SHOWN, Folder
from epsilometer.overview.pages import error_page, index_page, run_page

HTML, JSON = "text/html; charset=utf-8", "application/json"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PATIENCE = 10.0  # seconds for a client to say what it wants
# Letters of an address are compared, never decoded: there is no way to write a path in it.
_RUN = re.compile(rf"/run/([0-9a-f]{{16}})(?:/({'|'.join(map(re.escape, SHOWN))}))?")
_LOG = logging.getLogger("epsilometer")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


class FolderServer(ThreadingHTTPServer):
    """Serves a folder at an address; `port` 0 takes a free one. Only who is asked for by its own name answers."""

    daemon_threads = True

    def __init__(self, folder: Folder, address: str, port: int, *, remote: bool = False) -> None:
        self.folder = folder
        host = reachable(address, remote)
        self.remote = not host.is_loopback
        self.address_family = socket.AF_INET6 if host.version == 6 else socket.AF_INET
        try:
            super().__init__((str(host), port), _Handler)
        except OSError as error:
            expected = f"one that is free here ({error.strerror})"
            raise InvalidInput("port", port, expected, "leave it out to have any") from None

    def server_bind(self) -> None:
        """Without asking for this machine's name, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that does not wait for its answer is nothing to tell of."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            _tell(error)

    @property
    def url(self) -> str:
        host = self.server_name
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"

    def answers_to(self, host: str | None) -> bool:
        """Whether a Host header names this server.

        A page elsewhere may let its own name point to this machine (DNS rebinding) and read what is here: then the
        header has that name. Numbers cannot be made to point elsewhere.
        """
        found = _HOST.fullmatch(host or "")
        if found is None:
            return False
        name = found.group(1).strip("[]").lower()
        if name == "localhost" or (self.remote and name == socket.gethostname().lower()):
            return True
        try:
            number = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.remote or number.is_loopback


def reachable(address: str, remote: bool) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address, if it is of this machine alone or others are to be let in."""
    try:
        found = ipaddress.ip_address("127.0.0.1" if address == "localhost" else address)
    except ValueError:
        raise InvalidInput("address", address, "an address in numbers, such as 127.0.0.1, or localhost") from None
    if not (found.is_loopback or remote):
        expected = "an address of this machine alone, such as 127.0.0.1: others could read all runs"
        raise InvalidInput("address", address, expected, "add --allow-remote if that is meant")
    return found


def _tell(error: BaseException | None) -> None:
    """In one line, with nothing in it that a terminal would obey."""
    _LOG.error("a page could not be made (%s)", visible(one_line(f"{type(error).__name__}: {error}", 200)))


class _Handler(BaseHTTPRequestHandler):
    server: FolderServer
    server_version, sys_version = "epsilometer", ""
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def do_GET(self) -> None:
        try:
            self._answer()
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # of one page: the others can still be read
            _tell(error)
            self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, "This page could not be made; the server says why.")

    def _answer(self) -> None:
        if not self.server.answers_to(self.headers.get("Host")):
            self._fail(HTTPStatus.MISDIRECTED_REQUEST, "This server answers under its own address only.")
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._send(index_page(self.server.folder.root.name, *self.server.folder.entries()).encode(), HTML)
            return
        found = _RUN.fullmatch(path)
        entry = None if found is None else self.server.folder.entry(found.group(1))
        if found is None or entry is None:
            self._fail(HTTPStatus.NOT_FOUND, "There is no such run or page here.")
        elif found.group(2) is None:
            self._send(run_page(entry).encode(), HTML)
        elif (content := self.server.folder.content(entry, found.group(2))) is None:
            self._fail(HTTPStatus.NOT_FOUND, "This run has no such file.")
        else:
            self._send(content, JSON if found.group(2).endswith(".json") else HTML)

    do_HEAD = do_GET  # noqa: N815 (its body is left out where it would be sent)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library complains of, in our words: another method, or a request that is none."""
        self.close_connection = True  # nobody reads what may follow
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._fail(HTTPStatus.METHOD_NOT_ALLOWED, "Runs can be read here, and nothing else.", Allow="GET, HEAD")
        else:
            self._fail(HTTPStatus(code), HTTPStatus(code).phrase)

    def _fail(self, code: HTTPStatus, words: str, **headers: str) -> None:
        self._send(error_page(code, words).encode(), HTML, code, **headers)

    def _send(self, content: bytes, kind: str, code: HTTPStatus = HTTPStatus.OK, **headers: str) -> None:
        self.send_response(code)
        lengths = {"Content-Type": kind, "Content-Length": str(len(content))}
        for name, value in {**HEADERS, **lengths, **headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing is kept of who asked for what."""
