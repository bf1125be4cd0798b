# SPDX-License-Identifier: Apache-2.0
"""Starts Python programs that need PyTorch by forking a process that has loaded it: its imports cost three to seven seconds of CPU at every start, most of what a small
network costs. The program itself runs as `python -m module` or `python file` would, in a session, folder and environment of its own. Comparisons start their workers afresh."""
from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

READ_ON_LOADING = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_NUM_THREADS": "1"}  # by libgomp, where levels set their threads themselves, and by numpy
PYTHON = os.environ.get("STRATA_PYTHON") or sys.executable  # of the PyTorch that is tested; the tests themselves run in strata's own
MODULES = ("torch", "torch.export", "torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.codecache", "torch.utils.flop_counter", "torchvision.models", "safetensors.torch", "onnxscript", "torch.onnx",
           "torch.onnx._internal.exporter._core", "sklearn.datasets")


class Process:
    """A forked program: what the tests use of subprocess.Popen. Its input and output are pipes."""

    def __init__(self, words: list[str], env: dict[str, str], cwd: str, stderr) -> None:
        assert words[0] == PYTHON, words
        child_input, ours = os.pipe()
        theirs, child_output = os.pipe()
        self._status, status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fds = [child_input, child_output, stderr.fileno(), status.fileno()]
        socket.send_fds(server(), [json.dumps({"words": words[1:], "env": env, "cwd": cwd}).encode()], fds)
        os.close(child_input)
        os.close(child_output)
        status.close()
        self.stdin, self.stdout = os.fdopen(ours, "wb"), os.fdopen(theirs, "rb", buffering=0)
        self.pid = int(self._status.recv(32))
        self.returncode: int | None = None

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_) -> None:
        self.kill()
        self.wait()
        self.stdin.close()
        self.stdout.close()

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                self.returncode = int(self._status.recv(32))
            except TimeoutError:
                raise subprocess.TimeoutExpired(str(self.pid), timeout) from None
            self._status.close()
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def run(words: list[str], env: dict[str, str], cwd: str | Path, timeout: float) -> subprocess.CompletedProcess:
    """As subprocess.run with text and both outputs captured."""
    with tempfile.TemporaryFile("w+") as errors, Process(words, env, str(cwd), errors) as process:
        process.stdin.close()
        alarm = threading.Timer(timeout, process.kill)
        alarm.start()
        output = process.stdout.read().decode()
        code = process.wait()
        alarm.cancel()
        errors.seek(0)
        return subprocess.CompletedProcess(words, code, output, errors.read())


_server: socket.socket | None = None


def server() -> socket.socket:
    """The socket of this process's own server, started on first use; it ends when this process does."""
    global _server
    if _server is None:
        _server, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        subprocess.Popen([PYTHON, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=os.environ | READ_ON_LOADING, stdin=subprocess.DEVNULL, start_new_session=True)
        theirs.close()
        assert _server.recv(16) == b"ready"
    return _server


# ---------------------------------------------------------------------------------------------------- in the server


def serve(requests: socket.socket) -> None:
    for name in MODULES:
        with contextlib.suppress(ImportError):  # what an environment lacks, none of its programs imports
            importlib.import_module(name)
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads, which a fork would lose: leave out the module that starts them"
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    requests.send(b"ready")
    while True:
        message, fds, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not message:
            return
        if os.fork() == 0:
            requests.close()
            look_after(json.loads(message), fds)
        for fd in fds:
            os.close(fd)


def look_after(request: dict, fds: list[int]) -> None:
    """Forks the program, tells its pid, and once it has ended its exit code as subprocess gives it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    status = socket.socket(fileno=fds[3])
    pid = os.fork()
    if pid == 0:
        status.detach()
        become(request, fds)
    for fd in fds[:3]:
        os.close(fd)
    status.send(str(pid).encode())
    _, how = os.waitpid(pid, 0)
    status.send(str(os.waitstatus_to_exitcode(how)).encode())
    os._exit(0)


def become(request: dict, fds: list[int]) -> None:
    os.setsid()
    for standard, fd in enumerate(fds[:3]):
        os.dup2(fd, standard)
    os.closerange(3, 1 + max(int(fd) for fd in os.listdir("/proc/self/fd")))
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    words = request["words"]
    sys.path[:1] = [os.getcwd() if words[0] == "-m" else os.path.dirname(words[0]), *filter(None, request["env"].get("PYTHONPATH", "").split(":"))]
    code = 0
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # as the interpreter does
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
