"""Downloads, from a real server on this machine."""

import functools
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from epsilometer.data.download import Remote, checksum, fetch
from epsilometer.data.files import Files
from epsilometer.errors import InvalidInput

BODY = bytes(range(256)) * 9000  # more than two chunks
MD5 = "md5:" + hashlib.md5(BODY).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/absent":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/unsized":
            self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:1000] if self.path == "/truncated" else BODY)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("path", "total"), [("/file", len(BODY)), ("/unsized", None)])
def test_a_file_arrives_and_says_how_far_it_is(address: str, tmp_path: Path, path: str, total: int | None) -> None:
    told: list[tuple[str, int, int | None]] = []
    arrived = fetch(Remote("a.bin", address + path, MD5), tmp_path / "new", lambda *news: told.append(news))
    assert arrived.read_bytes() == BODY
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["a.bin"]
    assert told[-1] == ("a.bin", len(BODY), total)
    assert len(told) >= 3
    assert [done for _, done, _ in told] == sorted({done for _, done, _ in told})


@pytest.mark.parametrize(
    ("path", "known", "words"),
    [
        ("/file", "md5:0123", "expected md5:0123, got md5:"),
        ("/truncated", MD5, "broke off after 1,000 of 2,304,000 bytes"),
        ("/absent", MD5, "404"),
    ],
)
def test_what_is_broken_or_false_leaves_no_trace(
    address: str, tmp_path: Path, path: str, known: str, words: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        fetch(Remote("a.bin", address + path, known), tmp_path)
    message = str(caught.value)
    assert words in message
    assert f"put it in {tmp_path}, from {address}{path}" in message
    assert "\n" not in message
    assert not list(tmp_path.iterdir())


def test_a_server_that_is_gone_is_an_error_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"download = 'a.bin': expected a complete file \(.*refused.*\); put it in"):
        fetch(Remote("a.bin", "http://127.0.0.1:9/a.bin", MD5), tmp_path)  # nobody listens at the discard port
    assert not list(tmp_path.iterdir())


def test_an_interrupted_download_leaves_no_trace(address: str, tmp_path: Path) -> None:
    def interrupt(*news: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(Remote("a.bin", f"{address}/file", MD5), tmp_path, interrupt)
    assert not list(tmp_path.iterdir())


def test_checksums_are_what_the_usual_tools_print(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"hello\n")
    assert checksum(path, "md5") == "md5:b1946ac92492d2347c6235b4d2611184"
    assert checksum(path, "git") == "git:ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object
    assert checksum(path, "sha256").startswith("sha256:5891b5b522d5df08")


def test_the_cache_is_asked_before_the_server(address: str, cache: Path) -> None:
    remotes = [Remote("a.bin", f"{address}/file", MD5), Remote("b.bin", f"{address}/unsized", MD5)]
    paths = Files().get("made", remotes)
    assert paths == [cache / "made" / "a.bin", cache / "made" / "b.bin"]
    gone = [Remote(remote.file, "http://127.0.0.1:9/", MD5) for remote in remotes]
    assert Files().get("made", gone) == paths


@pytest.mark.parametrize(
    ("files", "known", "words"),
    [(Files(download=False), MD5, "get it from"), (Files(), "", "no checksum is published, so it is not downloaded")],
)
def test_what_may_not_be_downloaded_is_not(address: str, cache: Path, files: Files, known: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        files.get("made", [Remote("a.bin", f"{address}/file", known)])
    assert f"a.bin in {cache / 'made'} or in the directory that EPSILOMETER_DATA names" in str(caught.value)
    assert not cache.exists()
