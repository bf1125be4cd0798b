# SPDX-License-Identifier: Apache-2.0
"""Which files a network came from: every file that the process read while the network was built and
captured, with its hash, so that a cached capture can be known to be that of the files as they are
now.

Seen are what Python opens (audit hook), modules, folders that were listed, files that are mapped,
and what native readers of safetensors and PyTorch were given. Not seen: other native readers,
environment variables, the network.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType

from capture.errors import Problem
from strata_sdk.models import ROOT
from strata_sdk.sources import is_library

SYSTEM = ("/proc/", "/dev/", "/sys/")
SYSTEM_PLACES = ("/usr/", "/lib", "/bin/", "/sbin/")  # of mapped files
LIBRARY_PLACES = ("/opt/", "/snap/", "/nix/")
OWN = tuple(f"{ROOT / name}/" for name in ("src", "sdk", "models", "levels"))
# Python looks for modules and packages by listing folders: that is no reading of the network's.
IMPORTERS = ("importlib", "pkgutil", "zipimport", "inspect", "linecache")

_current: Opened | None = None
_hooked = False


class Opened:
    """Records while it is the context; `files()` then says what was read. One at a time."""

    def __init__(self, leave_out: Iterable[Path | str]) -> None:
        self._left_out = tuple(f"{os.path.realpath(p)}/" for p in leave_out)
        self._read: dict[str, tuple | None] = {}  # what the file was when it was first read
        self._absent: set[str] = set()
        self._listed: set[str] = set()
        self._lost = ""  # why the record is not whole

    def __enter__(self) -> Opened:
        global _current, _hooked
        if not _hooked:
            sys.addaudithook(_hook)
            _wrap_native_readers()
            _hooked = True
        _current = self
        return self

    def __exit__(self, *_error: object) -> None:
        global _current
        self._add_mapped()
        _current = None

    # ----------------------------------------------------------------------------------- recording

    def reading(self, path: object, certain: bool = True) -> None:
        """A file is about to be read. `certain`: its reader wants the file itself, so that one that
        is missing now and there later makes another network."""
        name = self._name_of(path)
        if name is None or name in self._read:
            return
        identity = _identity(name)
        if identity is None and certain:
            self._absent.add(name)
        elif identity is not None and stat.S_ISREG(identity[-1]):
            self._read[name] = identity

    def listing(self, path: object) -> None:
        name = self._name_of("." if path is None else path)
        if name is not None and not _for_an_import():
            self._listed.add(name)

    def lost(self, why: str) -> None:
        self._lost = self._lost or why

    def _name_of(self, path: object) -> str | None:
        """The path to record; None: it is none that counts."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None  # a descriptor, whose opening was seen
        name = os.path.abspath(os.fsdecode(path))
        # a library's own name decides before links are followed, which takes a call for each folder
        if name.startswith(SYSTEM) or os.path.basename(name).startswith("<") or is_library(name):
            return None
        if "/__pycache__/" in name:
            with contextlib.suppress(ValueError):
                return self._name_of(source_from_cache(name))
            return None
        real = os.path.realpath(name)
        if real.startswith((*SYSTEM, *OWN)) or f"{real}/".startswith(self._left_out):
            return None
        return None if is_library(real) else name

    def _add_mapped(self) -> None:
        """What native code mapped and holds: libraries of the user's own, weights of
        torch.from_file."""
        with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8") as maps:
            for line in maps:
                path = line.rstrip("\n").split(maxsplit=5)[-1]
                system = path.startswith(SYSTEM_PLACES) or (
                    ".so" in os.path.basename(path) and path.startswith(LIBRARY_PLACES)
                )
                if path.startswith("/") and not path.endswith(" (deleted)") and not system:
                    self.reading(path, certain=False)

    # ------------------------------------------------------------------------------------- results

    def files(self) -> list[dict]:
        """What was read, sorted by path: {path, bytes, sha256}, {path, listing} of a folder, {path,
        absent} of what was looked for in vain; `changed` where a file changed meanwhile. Files that
        are gone are left out: they were temporary."""
        for module in list(sys.modules.values()):
            origin = getattr(module, "__file__", None)
            if isinstance(origin, str):
                self.reading(origin, certain=False)
        for record in _distributions():
            self._read.setdefault(record, _identity(record))
        entries = [self._entry(name, first) for name, first in self._read.items()]
        entries += [
            {"path": n, "listing": listing_hash(n)} for n in self._listed if os.path.isdir(n)
        ]
        entries += [
            {"path": n, "absent": True}
            for n in self._absent
            if n not in self._read and not os.path.lexists(n)
        ]
        entries += [
            {"path": n, "absent": True} for n in self._shadowing() if not os.path.lexists(n)
        ]
        if self._lost:  # a capture whose files are not known is never used again
            entries.append({"path": self._lost, "changed": True})
        return sorted((entry for entry in entries if entry), key=lambda e: (e["path"], len(e)))

    @staticmethod
    def _entry(name: str, first: tuple | None) -> dict:
        if _identity(name) is None:
            return {}
        try:
            digest, size = sha256_of(name)
        except OSError:
            return {"path": name, "changed": True}
        if _identity(name) != first:
            return {"path": name, "changed": True}
        return {"path": name, "bytes": size, "sha256": digest}

    def _shadowing(self) -> Iterator[str]:
        """A package beside a module of the same name would be imported in its place."""
        for name in self._read:
            if name.endswith(".py") and os.path.basename(name) != "__init__.py":
                yield os.path.join(name.removesuffix(".py"), "__init__.py")


def merged(earlier: list[dict], later: list[dict]) -> list[dict]:
    """Two records of one network, made one after the other; Problem where a file changed
    between."""
    both = {(e["path"], "listing" in e): e for e in earlier}
    for entry in later:
        key = (entry["path"], "listing" in entry)
        known = both.setdefault(key, entry)
        if "changed" in known or "changed" in entry:
            both[key] = {"path": entry["path"], "changed": True}
        elif known != entry:
            raise Problem(
                "failed", f"{entry['path']} changed while the network was captured", "run it again"
            )
    return [both[key] for key in sorted(both)]


def state_of_files(files: list[dict]) -> str:
    """One hash of all that was read."""
    lines = (f"{e['path']} {e.get('sha256') or e.get('listing') or sorted(e)}\n" for e in files)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def sha256_of(path: str | Path) -> tuple[str, int]:
    """Hash and size of a file."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
            size += len(part)
    return digest.hexdigest(), size


def listing_hash(folder: str) -> str:
    """As src/plan/read_files.cpp makes it: the sorted names, folders with a slash behind them."""
    with os.scandir(os.fsencode(folder)) as entries:
        names = sorted(
            e.name + (b"/" if e.is_dir() else b"") for e in entries if e.name != b"__pycache__"
        )
    return hashlib.sha256(b"".join(name + b"\n" for name in names)).hexdigest()


def _identity(path: str) -> tuple | None:
    """Tells a file from a changed one; None: it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
    )


def _distributions() -> set[str]:
    """RECORD of every installed package of which something was imported: it holds the hashes of the
    package's files, and another version has another one."""
    tops = {
        (name.partition(".")[0], _site_of(getattr(module, "__file__", None)))
        for name, module in list(sys.modules.items())
    }
    places = {place for _, place in tops if place}
    names = set()
    for distribution in metadata.distributions(path=sorted(places)):
        folder = str(getattr(distribution, "_path", ""))
        record = os.path.join(folder, "RECORD")
        if not os.path.isfile(record):
            continue
        with open(record, encoding="utf-8", errors="surrogateescape") as lines:
            parts = {line.partition(",")[0].partition("/")[0].removesuffix(".py") for line in lines}
        if any((part.partition(".")[0], os.path.dirname(folder)) in tops for part in parts):
            names.add(record)
    return names


def _site_of(file: object) -> str | None:
    """The site-packages folder in which an imported file lies."""
    if isinstance(file, str):
        for name in ("site-packages", "dist-packages"):
            head, middle, _ = file.rpartition(f"/{name}/")
            if middle:
                return f"{head}/{name}"
    return None


# -------------------------------------------------------------------------------------- the hooks


def _hook(event: str, arguments: tuple) -> None:
    record = _current
    if record is None or event not in _EVENTS:
        return
    try:
        _EVENTS[event](record, *arguments)
    except Exception as error:  # what the hook raises would fail the user's own open()
        record.lost(f"{event}: {type(error).__name__}: {error}")


def _opened(record: Opened, path: object, mode: object, flags: object) -> None:
    flags = flags if isinstance(flags, int) else 0
    writes = flags & os.O_ACCMODE == os.O_WRONLY or flags & (os.O_TRUNC | os.O_EXCL)
    if not writes:
        record.reading(path, certain=isinstance(mode, str) and flags & os.O_ACCMODE == os.O_RDONLY)


_EVENTS: dict[str, Callable] = {
    "open": _opened,
    "os.listdir": lambda record, path: record.listing(path),
    "os.scandir": lambda record, path: record.listing(path),
    "sqlite3.connect": lambda record, path: record.reading(path, certain=False),
    "ctypes.dlopen": lambda record, path: record.reading(path, certain=False),
    "strata.reads": lambda record, path: record.reading(path),
}


def _for_an_import() -> bool:
    """Whether the listing that is being announced is the import system's."""
    frame: FrameType | None = sys._getframe(1)
    library = f"{os.path.dirname(os.__file__)}/"
    while frame and (frame := frame.f_back):
        name = frame.f_code.co_filename
        if name.startswith("<frozen "):
            part = name.removeprefix("<frozen ")
        elif name.startswith(library) and not is_site(name):
            part = name.removeprefix(library)
        elif name.startswith("<") or name == __file__:
            continue
        else:
            return "/pkg_resources/" in name
        if part.startswith(IMPORTERS):
            return True
    return False


def is_site(path: str) -> bool:
    return "/site-packages/" in path or "/dist-packages/" in path


def _wrap_native_readers() -> None:
    """Readers that open files without Python announce what they were given."""
    import torch

    with contextlib.suppress(ImportError):
        import safetensors

        original = safetensors.safe_open

        class safe_open:  # the reader's own class has no subclasses
            def __new__(cls, filename, *args, **keywords):
                sys.audit("strata.reads", filename)
                return original(filename, *args, **keywords)

        for module in list(sys.modules.values()):
            if getattr(module, "safe_open", None) is original:
                vars(module)["safe_open"] = safe_open
    torch.jit.load = _announced(torch.jit.load)
    torch.from_file = _announced(torch.from_file)
    reader = torch._C.PyTorchFileReader

    class Reader(reader):  # type: ignore[misc, valid-type]
        def __init__(self, source, *args, **keywords):
            if isinstance(source, (str, os.PathLike)):
                sys.audit("strata.reads", source)
            super().__init__(source, *args, **keywords)

    Reader.__name__ = Reader.__qualname__ = reader.__name__
    torch._C.PyTorchFileReader = Reader


def _announced(function: Callable) -> Callable:
    def announced(source, *args, **keywords):
        if isinstance(source, (str, os.PathLike)):
            sys.audit("strata.reads", source)
        return function(source, *args, **keywords)

    return announced
