# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium over its DevTools pipe (--remote-debugging-pipe): no package, no port, no
driver program.

Messages are JSON ended by a NUL byte; the browser reads them from fd 3 and writes them to fd 4.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

Json = dict[str, Any]
DEADLINE_S = 60


def find_chromium() -> str | None:
    return os.environ.get("STRATA_CHROMIUM") or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


class Browser:
    """One browser with one page. `events` keeps everything the page reported since it was
    opened."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="strata-chromium-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # Above 10, so that placing them at 3 and 4 in the child overwrites neither.
        high_in, high_out = (
            os.dup2(fd, 60 + i, inheritable=True) for i, fd in enumerate((theirs_in, theirs_out))
        )

        def place() -> None:
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-component-update",
            "--remote-debugging-pipe",
            "--enable-unsafe-swiftshader",
            f"--user-data-dir={self.profile.name}",
        ]
        self.process = subprocess.Popen(
            [program, *options, "about:blank"],
            preexec_fn=place,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (theirs_in, theirs_out, high_in, high_out):
            os.close(fd)
        self.read_fd, self.write_fd = ours_in, ours_out
        self.buffer, self.next_id, self.session = b"", 0, ""
        self.events: list[Json] = []
        self.shown: tuple[Path, int, bool] | None = None
        target = next(
            t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page"
        )
        self.session = self.send(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.session = ""
            self.send("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.read_fd)
        os.close(self.write_fd)
        shutil.rmtree(self.profile.name, ignore_errors=True)

    def _message(self, deadline: float) -> Json:
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise RuntimeError(f"the browser said nothing for {DEADLINE_S} s")
            read = os.read(self.read_fd, 1 << 20)
            if not read:
                raise RuntimeError(f"the browser ended with code {self.process.poll()}")
            self.buffer += read
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def send(self, method: str, **parameters: Any) -> Json:
        """One DevTools command; its result. Raises RuntimeError with the browser's own words."""
        self.next_id += 1
        request: Json = {"id": self.next_id, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write_fd, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            message = self._message(deadline)
            if message.get("id") == self.next_id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message.get("result", {})
            self.events.append(message)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(
        self,
        path: Path,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        scripts: bool = True,
    ) -> None:
        """Loads a file and waits until its figures are drawn (or, without scripts, until it is
        there)."""
        self.shown = None
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.send("Page.navigate", url="about:blank")
        self.events.clear()
        self.send("Page.navigate", url=path.as_uri())
        done = "document.readyState === 'complete'" + (
            " && !!document.documentElement.dataset.drawn" if scripts else ""
        )
        deadline = time.monotonic() + DEADLINE_S
        while not self.evaluate(f"location.protocol === 'file:' && {done}"):
            if time.monotonic() > deadline or self.errors():
                raise RuntimeError(f"the page was not drawn: {self.errors()}")
            time.sleep(0.05)

    def show(self, path: Path, width: int = 1280, dark: bool = False) -> None:
        """As open(), but a page that show() left there stays. For tests that change no more than
        what is folded: drawing the figures takes seconds."""
        if self.shown == (path, width, dark):
            return
        self.open(path, width, dark=dark)
        self.shown = (path, width, dark)

    def overflowing(self) -> list[str]:
        """Elements that reach beyond the page's right edge without a container that scrolls."""
        return self.evaluate("""[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, pre, svg, .skip, .canvas')
            && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 120))""")

    def errors(self) -> list[str]:
        """Everything that went wrong in the page: exceptions, console errors, refused or failed
        loads."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(
                    str(
                        parameters["exceptionDetails"]
                        .get("exception", {})
                        .get("description", parameters)
                    )
                )
            elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in (
                "error",
                "warning",
                "assert",
            ):
                found.append(str(parameters["args"]))
            elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in (
                "error",
                "warning",
            ):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Addresses that the page asked for, beside files and data that it carries itself."""
        urls = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith(("file:", "data:", "blob:", "about:"))]

    def screenshot(self, path: Path, whole: bool = True) -> None:
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
