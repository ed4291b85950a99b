"""`epsilometer serve`: a real process, asked over loopback by friends and by others."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from unittest import mock
from urllib.parse import urlsplit

import pytest
from stored import PLAN, planned, results, store_run

from epsilometer.adversaries import Gradient
from epsilometer.auditing import spec_from_dict
from epsilometer.overview.folder import Folder
from epsilometer.overview.server import FolderServer
from epsilometer.runs import STORE, SqliteStore

EVIL = "<img src=x onerror=alert(1)>\x1b]0;owned\x07\u202e"
MANY = 50_000  # pairs
SECRET = "the secret outside"


@dataclass(frozen=True)
class Evil(Gradient):
    name: ClassVar[str] = "<script>alert(3)</script>"


@dataclass(frozen=True)
class Answer:
    code: int
    headers: dict[str, str]
    text: str


class Page:
    """A running server."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.host, self.port, self.process = parts.hostname, parts.port, process

    def ask(self, path: str = "/", method: str = "GET", host: str | None = None) -> Answer:
        """The path as it is written: nothing is put in order on the way."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if host != "":
            connection.putheader("Host", host or f"{self.host}:{self.port}")
        connection.endheaders()
        found = connection.getresponse()
        text = found.read().decode()
        connection.close()
        return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, text)

    def listed(self) -> list[str]:
        return re.findall(r'href="/run/([0-9a-f]{16})"', self.ask().text)

    def key_of(self, name: str) -> str:
        (key,) = re.findall(rf'href="/run/([0-9a-f]{{16}})">{re.escape(name)}<', self.ask().text)
        return str(key)


@contextmanager
def serving(directory: Path, *options: str) -> Iterator[Page]:
    command = [sys.executable, "-m", "epsilometer", "serve", str(directory), "--json", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield Page(json.loads(process.stdout.readline())["url"], process)
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of all kinds, and links that lead outside."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text(SECRET)
    store_run(outside / "run", planned(seed=7), pairs=25, epsilon=3.0)
    (outside / "run" / "report.html").write_text(SECRET)
    inside = tmp_path_factory.mktemp("inside")
    store_run(inside / "deep" / "below" / "done", pairs=25, epsilon=0.7551)
    (inside / "deep" / "below" / "done" / "report.html").write_text("<p>the report</p>")
    store_run(inside / "stopped", planned(seed=1), pairs=7)
    store_run(inside / EVIL, planned(adversary=Evil()), pairs=25, epsilon=0.25)
    many = spec_from_dict({"training": {"steps": 3, "noise_multiplier": 1.0}, "audit": {"trials": MANY}}).plan()
    store_run(inside / "many", many, pairs=MANY)
    (inside / "broken").mkdir()
    (inside / "broken" / STORE).write_bytes(b"SQLite format 3\0" + bytes(2000))
    (inside / "linked").symlink_to(outside / "run")
    (inside / "half").mkdir()
    (inside / "half" / STORE).symlink_to(outside / "run" / STORE)
    store_run(inside / "leads-out", planned(seed=2), pairs=25, epsilon=0.5)
    (inside / "leads-out" / "report.html").symlink_to(outside / "secret.txt")
    (inside / "report-only").mkdir()
    (inside / "report-only" / "report.html").write_text("<p>another report</p>")
    store_run(inside / "piped", planned(seed=3), pairs=2)
    os.mkfifo(inside / "piped" / f"{STORE}-wal")
    return inside


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Page]:
    with serving(folder) as running:
        yield running


def test_all_runs_of_a_folder_are_listed(page: Page, folder: Path) -> None:
    before = {p: p.lstat().st_mtime_ns for p in sorted(folder.rglob("*"))}
    shown = page.ask()
    assert shown.code == 200
    assert len(page.listed()) == 9
    for words in (
        "deep/below/done",
        "0.755",
        "14 of 50",
        "interrupted",
        f"{2 * MANY} of {2 * MANY}",
        "an intact store",
    ):
        assert words in shown.text, words
    assert '<meta http-equiv="refresh"' in shown.text
    assert {p: p.lstat().st_mtime_ns for p in sorted(folder.rglob("*"))} == before


def test_a_run_has_a_page_and_a_report(page: Page) -> None:
    key = page.key_of("deep/below/done")
    shown = page.ask(f"/run/{key}")
    assert shown.code == 200
    for words in ("ε ≥ 0.755 (certified)", "ε ≥ 1.250", "ε ≤ 4", "recipe.noise_multiplier", PLAN.fingerprint()):
        assert words in shown.text
    assert page.ask(f"/run/{key}/report.html").text == "<p>the report</p>"
    assert page.ask(f"/run/{key}/result.json").headers["content-type"] == "application/json"
    assert page.ask(f"/run/{page.key_of('report-only')}/report.html").text == "<p>another report</p>"
    assert page.ask(f"/run/{page.key_of('stopped')}/report.html").code == 404


def test_many_trials_are_counted_and_not_loaded(page: Page, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteStore, "results", lambda *_: pytest.fail("results were loaded"))
    found, complete = Folder(folder).entries()
    (many,) = [entry.run for entry in found if entry.name == "many"]
    assert many is not None
    assert many.done == 2 * MANY
    assert complete
    assert f"{2 * MANY} of {2 * MANY}" in page.ask(f"/run/{page.key_of('many')}").text


def test_stores_that_have_not_changed_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Folder(folder)
    first, _ = looked.entries()
    monkeypatch.setattr(SqliteStore, "reading", lambda *_: pytest.fail("a store was read again"))
    assert looked.entries()[0] == first


def test_names_from_outside_show_as_text(page: Page) -> None:
    texts = [page.ask().text, *(page.ask(f"/run/{key}").text for key in page.listed())]
    for text in texts:
        assert "<script" not in text
        assert "<img" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;\\x1b]0;owned\\x07\\u202e" in texts[0]
    assert "&lt;script&gt;alert(3)&lt;/script&gt;" in texts[0]
    assert any("&lt;script&gt;alert(2)&lt;/script&gt; &amp; \\x1b[31m" in text for text in texts[1:])


def test_nothing_outside_is_shown(page: Page) -> None:
    listed = page.ask().text
    assert ">linked<" not in listed
    assert "no plain file" in listed  # the store that is a link, and the log that is a pipe
    assert page.ask(f"/run/{page.key_of('leads-out')}/report.html").code == 404
    assert "report.html" not in page.ask(f"/run/{page.key_of('leads-out')}").text
    for key in page.listed():
        for address in (f"/run/{key}", f"/run/{key}/report.html", f"/run/{key}/result.json"):
            assert SECRET not in page.ask(address).text


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/%252e%252e%252fsecret.txt",
        "/..%c0%afsecret.txt",
        "/..\\secret.txt",
        "//etc/passwd",
        "/etc/passwd",
        "/run/KEY/../../../../etc/passwd",
        "/run/KEY/%2e%2e/%2e%2e/secret.txt",
        "/run/KEY/report.html/../trials.sqlite",
        "/run/KEY/trials.sqlite",
        "/run/KEY/report.html%00.txt",
        "/run/KEY/",
        "/run/../run/KEY",
        "/run/deep/below/done",
        "/run/0000000000000000",
        "/run/KEYKEY",
        "/run/",
        "/favicon.ico",
        "http://127.0.0.1/etc/passwd",
        "file:///etc/passwd",
    ],
)
def test_no_other_address_leads_anywhere(page: Page, path: str) -> None:
    shown = page.ask(path.replace("KEY", page.key_of("deep/below/done")))
    assert shown.code == 404, shown
    assert "root:" not in shown.text
    assert SECRET not in shown.text
    assert "the report" not in shown.text


def test_headers_leave_nothing_to_scripts_frames_and_caches(page: Page) -> None:
    for path in ("/", f"/run/{page.key_of('deep/below/done')}/report.html", "/nowhere"):
        headers = page.ask(path).headers
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "python" not in headers["server"].lower()
    head, get = page.ask("/", "HEAD"), page.ask("/")
    assert head.text == ""
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_runs_can_only_be_read(page: Page, method: str) -> None:
    shown = page.ask("/", method)
    assert shown.code == 405
    assert shown.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("localhost:PORT", 200),
        ("127.0.0.1", 200),
        ("[::1]:PORT", 200),
        ("evil.example", 421),
        ("evil.example:PORT", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("10.0.0.1", 421),
        ("127.0.0.1@evil.example", 421),
        ("", 421),
    ],
)
def test_only_its_own_name_is_answered(page: Page, host: str, code: int) -> None:
    shown = page.ask("/", host=host.replace("PORT", str(page.port)))
    assert shown.code == code
    assert ("deep/below" in shown.text) is (code == 200)


def test_requests_that_are_none(page: Page) -> None:
    for request in (
        b"\x16\x03\x01\x02\x00\x01\n\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 70_000,
    ):
        with socket.create_connection((page.host, page.port), timeout=30) as connection:
            connection.sendall(request + b"\r\n\r\n")
            with connection.makefile("rb") as answer:
                text = answer.read().decode()
        assert "Traceback" not in text
        assert "deep/below" not in text
    assert page.ask().code == 200


def test_browsers_that_do_not_wait_for_their_answer(tmp_path: Path) -> None:
    """Each left a traceback in the terminal."""
    with serving(tmp_path) as page:
        for _ in range(3):
            with socket.create_connection((page.host, page.port), timeout=30) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 300)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        assert page.ask().code == 200
        page.process.terminate()
        _, told = page.process.communicate(timeout=30)
    assert told.splitlines() == [f"showing the runs in {tmp_path}; Ctrl-C ends it", "ended"]


def test_clients_that_leave_while_they_are_answered(tmp_path: Path) -> None:
    """SIGPIPE ended the server: the program has it as other tools do, for `| head`."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "report.html").write_text("<p>" + "x" * 20_000_000)
    with serving(tmp_path) as page:
        (key,) = page.listed()
        asked = f"GET /run/{key}/report.html HTTP/1.1\r\nHost: {page.host}\r\n\r\n".encode()
        for read in (0, 1000):  # one leaves at once, another with a part of the answer
            for _ in range(3):
                with socket.create_connection((page.host, page.port), timeout=30) as connection:
                    connection.sendall(asked)
                    connection.recv(read)
            assert page.ask().code == 200
        assert page.process.poll() is None
        page.process.send_signal(signal.SIGINT)
        assert "Traceback" not in page.process.communicate(timeout=30)[1]


def test_a_page_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A mistake of ours, with a name from outside in it: one line, and the server goes on."""
    folder = Folder(tmp_path)
    with FolderServer(folder, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        codes = []
        for broken in (True, False):
            if broken:
                folder.entries = mock.Mock(side_effect=ZeroDivisionError("\x1b[31m"))  # type: ignore[method-assign]
            else:
                del folder.entries
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
            connection.request("GET", "/")
            codes.append(connection.getresponse().status)
            connection.close()
        server.shutdown()
    assert codes == [500, 200]
    (told,) = caplog.messages
    assert told.isprintable()
    assert "ZeroDivisionError" in told


def test_a_run_that_is_written_while_it_is_read(tmp_path: Path) -> None:
    """Every answer is a state that the store had: counts rise, no answer fails, and the last one is complete."""
    plan, step = planned(trials=400, seed=11), 8
    store_run(tmp_path / "run", plan)
    begun, ended = threading.Event(), threading.Event()

    def write() -> None:
        with SqliteStore(tmp_path / "run" / STORE) as store:
            for first in range(0, 400, step):
                store.add(plan.fingerprint(), results(first, step), 0.01)
                begun.set()
            ended.wait(60)

    with serving(tmp_path) as page:
        writer = threading.Thread(target=write)
        writer.start()
        assert begun.wait(60)
        seen = []
        while 800 not in seen:
            shown = page.ask()
            assert shown.code == 200
            assert ">running</td>" in shown.text
            (done,) = re.findall(r"> (\d+) of 800<", shown.text)
            seen.append(int(done))
        ended.set()
        writer.join()
        assert seen == sorted(seen)
        assert all(count % (2 * step) == 0 for count in seen)
        assert ">interrupted</td>" in page.ask().text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as page:
        assert "There are no runs yet" in page.ask().text
        page.process.send_signal(number)
        _, told = page.process.communicate(timeout=30)
        assert page.process.returncode == 0, told
        assert told.endswith("ended\n")
        assert "Traceback" not in told


def test_others_are_let_in_only_if_asked(here, place: Path) -> None:
    for address in ("0.0.0.0", "::", "192.0.2.1"):
        shown = here("serve", ".", "--address", address)
        assert shown.returncode == 2
        assert "add --allow-remote" in shown.stderr
        assert shown.stderr.count("\n") == 1
    with serving(place, "--address", "0.0.0.0", "--allow-remote") as page:
        assert page.ask(host=f"127.0.0.1:{page.port}").code == 200
        assert page.ask(host=f"192.0.2.7:{page.port}").code == 200
        assert page.ask(host="evil.example").code == 421


def test_mistakes_are_one_line(here, place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, words in (
            (["missing"], "DIR = 'missing': expected an existing directory"),
            ([".", "--address", "example.com"], "--address = 'example.com': expected an address in numbers"),
            ([".", "--port", port], f"--port = {port}: expected one that is free here"),
            ([".", "--port", "70000"], "--port"),
        ):
            shown = here("serve", *arguments)
            assert shown.returncode == 2
            assert words in shown.stderr
            assert shown.stderr.count("\n") == 1
