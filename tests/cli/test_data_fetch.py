# SPDX-License-Identifier: Apache-2.0
"""`strata data fetch`: from a server of the test's own; what has another checksum is never put in
place, what was cut off goes on."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

REAL = Path(os.environ.get("STRATA_TEST_DATA") or "/nowhere")
real = pytest.mark.skipif(
    not REAL.is_dir(), reason="no real data sets here: STRATA_TEST_DATA names no folder"
)
pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the program curl is missing")


class Server:
    """Serves files of a folder, parts of them too, and notes what was asked for."""

    def __init__(self, folder: Path) -> None:
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = folder / self.path.rsplit("/", 1)[-1]
                first = int(
                    (re.match(r"bytes=(\d+)-", self.headers.get("Range", "")) or [0, "0"])[1]
                )
                requests.append((path.name, first))
                if not path.is_file():
                    self.send_error(404)
                    return
                content = path.read_bytes()
                self.send_response(206 if first else 200)
                if first:
                    self.send_header(
                        "Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}"
                    )
                self.send_header("Content-Length", str(len(content) - first))
                self.end_headers()
                self.wfile.write(content[first:])

            def log_message(self, *_) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/mnist"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server(tmp_path):
    (tmp_path / "served").mkdir()
    one = Server(tmp_path / "served")
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture
def sets(strata, tmp_path) -> Path:
    strata.environment["STRATA_DATA"] = str(tmp_path / "sets")
    return tmp_path / "sets"


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_with_another_checksum_is_refused_and_removed(strata, server, sets, tmp_path):
    (tmp_path / "served" / "train-images-idx3-ubyte.gz").write_bytes(b"something else")
    done = strata.run("data", "fetch", "mnist", "--from", server.url)
    assert (
        done.returncode == 1
        and "md5" in done.stderr
        and "the publisher's: f68b3c2dcbeaaa9fbdd348bbdeb94873" in done.stderr
    ), done.stderr
    assert files(sets) == []


def test_without_a_network_it_says_which_file_goes_where(strata, sets):
    done = strata.run("data", "fetch", "cifar10", "--from", "http://127.0.0.1:9/nothing")
    assert done.returncode == 3, done.stderr
    for words in (
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        str(sets / "downloads" / "cifar-10-binary.tar.gz"),
        "run the same command again",
    ):
        assert words in done.stderr, done.stderr


def test_a_file_that_the_server_does_not_have_is_said(strata, server, sets):
    done = strata.run("data", "fetch", "mnist", "--from", server.url)
    assert done.returncode == 3 and "the server has no such file" in done.stderr, done.stderr


def a_curl(folder: Path, script: str) -> str:
    """A PATH on which curl is this script."""
    (folder / "bin").mkdir()
    curl = folder / "bin" / "curl"
    curl.write_text(f"#!/bin/sh\n{script}\n")
    curl.chmod(0o755)
    return f"{curl.parent}:{os.environ['PATH']}"


@contextlib.contextmanager
def raw_server(answer: bytes, times: int):
    """Sends these bytes to everybody, the body again and again."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.recv(4096)
                        head, _, body = answer.partition(b"\r\n\r\n")
                        connection.sendall(head + b"\r\n\r\n")
                        for _ in range(times):
                            connection.sendall(body)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_only_https_is_used_unless_another_place_is_named(strata, sets, tmp_path):
    """By a curl that notes its words and fails."""
    path = a_curl(tmp_path, f'echo "$@" > "{tmp_path}/words"\nexit 7')
    done = strata.run("data", "fetch", "stl10", PATH=path)
    words = (tmp_path / "words").read_text()
    assert (
        done.returncode == 3
        and "--proto =https --proto-redir =https " in words
        and "https://ai.stanford.edu/" in words
    ), words


def test_no_server_leads_to_a_file_here_and_what_comes_is_bounded(strata, sets, tmp_path):
    secret = tmp_path / "train-images-idx3-ubyte.gz"
    secret.write_bytes(b"x")
    redirect = f"HTTP/1.0 302 Found\r\nLocation: file://{secret}\r\n\r\n".encode()
    endless = b"HTTP/1.0 200 OK\r\n\r\n" + bytes(1 << 20)
    for answer, words in ((redirect, "curl ended with 1"), (endless, "bytes came")):
        with raw_server(answer, times=40 if answer is endless else 1) as url:
            done = strata.run("data", "fetch", "mnist", "--from", url)
        assert done.returncode == 3 and words in done.stderr, done.stderr
        got = [path for path in sets.rglob("*") if path.is_file()]
        assert all(path.stat().st_size <= 13 << 20 for path in got), got


def test_curl_ends_with_the_command_that_started_it_however_that_ends(strata, sets, tmp_path):
    place = a_curl(tmp_path, f'echo $$ > "{tmp_path}/pid"; exec sleep 60')
    strata.environment["PATH"] = place
    process = strata.start("data", "fetch", "mnist")
    until = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < until
        time.sleep(0.02)
    pid = (tmp_path / "pid").read_text().strip()
    process.kill()
    process.communicate(timeout=30)
    while Path(f"/proc/{pid}").exists():
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state == "Z":
            break
        assert time.monotonic() < until, "curl lives on"
        time.sleep(0.02)


def test_of_several_that_fetch_at_once_one_does_at_a_time(strata, sets, tmp_path):
    """By a curl that notes when another one runs, and fails."""
    busy, beside = tmp_path / "busy", tmp_path / "beside"
    strata.environment["PATH"] = a_curl(
        tmp_path,
        f'mkdir "{busy}" || touch "{beside}"; sleep 0.3; rmdir "{busy}"; exit 7',
    )
    processes = [strata.start("data", "fetch", "mnist") for _ in range(3)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert all("curl ended with 7" in text for text in errors), errors
    assert sum("another process fetches" in text for text in errors) == 2, errors
    assert not beside.exists()


def test_a_machine_without_curl_is_told(strata, sets, tmp_path):
    done = strata.run("data", "fetch", "mnist", PATH=str(tmp_path))
    assert done.returncode == 3 and "apt-get install curl" in done.stderr, done.stderr


def test_what_is_part_of_strata_or_unknown_is_not_fetched(strata, sets):
    done = strata.run("data", "fetch", "digits")
    assert done.returncode == 0 and "nothing to fetch" in done.stdout
    done = strata.run("data", "fetch", "imagenet")
    assert done.returncode == 2 and "imagenet: unknown" in done.stderr, done.stderr


@real
def test_a_set_is_fetched_goes_on_where_it_was_cut_and_is_not_fetched_twice(
    strata, server, sets, tmp_path
):
    for path in (REAL / "mnist").glob("*.gz"):
        shutil.copy(path, tmp_path / "served")
    cut = sets / "mnist" / "train-images-idx3-ubyte.gz.partial"
    cut.parent.mkdir(parents=True)
    cut.write_bytes((REAL / "mnist" / "train-images-idx3-ubyte.gz").read_bytes()[:5_000_000])
    done = strata.run("data", "fetch", "mnist", "--from", server.url)
    assert done.returncode == 0 and "strata data verify mnist reads it" in done.stdout, done.stderr
    assert ("train-images-idx3-ubyte.gz", 5_000_000) in server.requests and len(
        server.requests
    ) == 4
    assert (
        "already" in strata.run("data", "fetch", "mnist", "--from", server.url).stdout
        and len(server.requests) == 4
    )
    done = strata.run("data", "verify", "mnist")
    assert done.returncode == 0 and "4 files have their publisher's checksum" in done.stdout, (
        done.stderr
    )
    path = sets / "mnist" / "t10k-labels-idx1-ubyte.gz"
    content = bytearray(path.read_bytes())
    content[4] ^= 1  # the time in gzip's header: the labels are the same
    path.write_bytes(content)
    done = strata.run("data", "verify", "mnist")
    assert (
        done.returncode == 1 and "the publisher's: ec29112dd5afa0611ce80d1b7f02629c" in done.stderr
    ), done.stderr
