# SPDX-License-Identifier: Apache-2.0
"""Many captures by one process, `python -m capture --serve`: PyTorch is loaded once, and each
capture is a fork of that process, so that none sees what another left behind.

A line of standard input is one capture: {"arguments": [those of `python -m capture`], "log": where
its standard error goes}. It is answered as `python -m capture` would, and then by {"exit_code": n},
negative for the signal that ended it. The end of the input ends the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable

from capture.importing import why_not
from capture.names import unknown

# what every capture loads, none of which computes or starts a thread (PyTorch imports some where it
# first runs or exports a network, which takes longer than capturing a small one); torchvision only
# where networks are strata's own: of a user's network is recorded what it loads
MODULES = (
    "torch._dynamo",
    "torch.export",
    "torch.export._trace",
    "torch._export.non_strict_utils",
    "torch.utils.flop_counter",
    "safetensors.torch",
    "capture.bundle",
)
OF_SHIPPED_NETWORKS = ("torchvision.models",)
PR_SET_PDEATHSIG = 1


def serve(capture: Callable[[list[str]], int], say: Callable[[dict], None]) -> int:
    """`capture`: takes arguments, captures and answers, and returns the exit code."""
    loaded, broken = False, None
    for line in sys.stdin:
        request = json.loads(line)
        model = json.loads(request["arguments"][request["arguments"].index("--spec") + 1]).get(
            "model", ""
        )
        if refusal := unknown(model):
            say(refusal)
            say({"exit_code": 1})
            continue
        if not loaded:
            say({"progress": "loading PyTorch"})
            try:
                importlib.import_module("torch")
            except Exception as error:
                broken = why_not(error)
            shipped = OF_SHIPPED_NETWORKS if model.isidentifier() else ()
            for name in () if broken else MODULES + shipped:
                with contextlib.suppress(Exception):  # the capture itself says what is missing
                    importlib.import_module(name)
            loaded = True
        if broken:  # who imports PyTorch again gets another reason
            say(broken)
            say({"exit_code": 1})
            continue
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                # a capture whose answers nobody reads ends
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                os.dup2(log, 1)
                os.dup2(log, 2)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                code = capture(request["arguments"])
                sys.stderr.flush()
            finally:
                os._exit(code)  # threads of a user's libraries must not hold the process
        signal.signal(signal.SIGTERM, lambda *_, child=pid: end(child))
        _, status = os.waitpid(pid, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        say({"exit_code": os.waitstatus_to_exitcode(status)})
    return 0


def end(pid: int) -> None:
    """Lets the capture remove what it has half made."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    os._exit(1)
