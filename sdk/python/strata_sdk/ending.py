# SPDX-License-Identifier: Apache-2.0
"""A worker whose driver is gone ends, even in the middle of a long request."""

import os
import select
import sys
import threading
import time

GRACE_S = 4.0  # the protocol allows 5


def watch_input() -> None:
    """Ends the process GRACE_S after the writing end of its standard input was closed, unless it
    ended by itself before. Costs no wake-up until then."""
    poller = select.poll()
    # no event but POLLHUP and POLLERR, which cannot be masked; a file never hangs up
    poller.register(0, 0)
    before = threading.stack_size(256 * 1024)
    threading.Thread(target=_watch, args=(poller,), name="strata-input", daemon=True).start()
    threading.stack_size(before)


def _watch(poller: "select.poll") -> None:
    while not any(
        event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poller.poll()
    ):
        pass
    time.sleep(GRACE_S)
    sys.stderr.write("strata: the input was closed during a request; ending\n")
    sys.stderr.flush()
    os._exit(1)
