# SPDX-License-Identifier: Apache-2.0
"""Starts Python programs that need PyTorch by forking a process that has loaded it: its imports
cost three to seven seconds of CPU at every start, most of what a small network costs. The program
itself runs as `python -m module` or `python file` would, in a session, folder and environment of
its own. Where the driver starts the programs, it is given `forked_python` as its interpreter."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

# by libgomp, where levels set their threads themselves, and by numpy
READ_ON_LOADING = {
    "OMP_NUM_THREADS": "2",
    "OMP_WAIT_POLICY": "PASSIVE",
    "OPENBLAS_NUM_THREADS": "1",
}
# of the PyTorch that is tested; the tests themselves run in strata's own
PYTHON = os.environ.get("STRATA_PYTHON") or sys.executable
MODULES = (
    "torch",
    "torch.export",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch._inductor.codecache",
    "torch.utils.flop_counter",
    "torchvision.models",
    "safetensors.torch",
    "onnxscript",
    "torch.onnx",
    "torch.onnx._internal.exporter._core",
    "sklearn.datasets",
)


class Process:
    """A forked program: what the tests use of subprocess.Popen. Its input and output are pipes."""

    def __init__(self, words: list[str], env: dict[str, str], cwd: str, stderr) -> None:
        assert words[0] == PYTHON, words
        child_input, ours = os.pipe()
        theirs, child_output = os.pipe()
        self._status = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._status.connect(server())
        request = {
            "words": words[1:],
            "env": env,
            "cwd": cwd,
            "cores": list(os.sched_getaffinity(0)),
        }
        socket.send_fds(
            self._status,
            [json.dumps(request).encode()],
            [child_input, child_output, stderr.fileno()],
        )
        os.close(child_input)
        os.close(child_output)
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


def run(
    words: list[str], env: dict[str, str], cwd: str | Path, timeout: float
) -> subprocess.CompletedProcess:
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


def pytest_configure(config) -> None:
    """For a conftest.py: one server for all processes of a test session, which ends with the first
    of them."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="strata-preloaded-")
        os.environ |= {
            "STRATA_TEST_SERVER": f"{folder}/server",
            "STRATA_TEST_OWNER": str(os.getpid()),
        }
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def server() -> str:
    """The address of the server, started on first use. Until it has loaded everything, programs
    wait for it."""
    address = Path(os.environ["STRATA_TEST_SERVER"])
    with open(address.with_name("lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                listener.bind(str(address))
                listener.listen(64)
                subprocess.Popen(
                    [PYTHON, __file__, str(listener.fileno()), os.environ["STRATA_TEST_OWNER"]],
                    pass_fds=[listener.fileno()],
                    env=os.environ | READ_ON_LOADING,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
    return str(address)


def interpreter() -> dict[str, str]:
    """The variables that give a driver `forked_python` for the measured interpreter."""
    server()
    return {"STRATA_PYTHON": str(Path(__file__).with_name("forked_python"))}


# ---------------------------------------------------------------------------------- in the server


def serve(listener: socket.socket, owner: int) -> None:
    end = os.pidfd_open(owner)
    # on a machine with a GPU imports start threads: programs load what they need themselves there
    for name in () if os.environ.get("STRATA_TEST_FRESH") else MODULES:
        # what an environment lacks, none of its programs imports
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, (
        f"{threads} threads, which a fork would lose: leave out the module that starts them"
    )
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        if end in select.select([listener, end], [], [])[0]:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            os.close(end)
            look_after(connection)
        connection.close()


def look_after(connection: socket.socket) -> None:
    """Forks the program that the connection asks for, tells its pid, and once it has ended its exit
    code as subprocess gives it. It is killed if the other side goes first."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, fds, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    pid = os.fork()
    if pid == 0:
        connection.detach()
        become(json.loads(message), fds)
    for fd in fds:
        os.close(fd)
    with contextlib.suppress(OSError):
        connection.send(str(pid).encode())
    if connection in select.select([connection, os.pidfd_open(pid)], [], [])[0]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    _, how = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        connection.send(str(os.waitstatus_to_exitcode(how)).encode())
    os._exit(0)


def become(request: dict, fds: list[int]) -> None:
    os.setsid()
    os.sched_setaffinity(0, request["cores"])
    for standard, fd in enumerate(fds[:3]):
        os.dup2(fd, standard)
    os.closerange(3, 1 + max(int(fd) for fd in os.listdir("/proc/self/fd")))
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    words = request["words"]
    sys.path[:1] = [
        os.getcwd() if words[0] in ("-c", "-m") else os.path.dirname(words[0]),
        *filter(None, request["env"].get("PYTHONPATH", "").split(":")),
    ]
    code = 0
    try:
        if words[0] == "-c":
            sys.argv = ["-c", *words[2:]]
            exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
        elif words[0] == "-m":
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
    serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
