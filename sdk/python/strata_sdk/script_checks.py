# SPDX-License-Identifier: Apache-2.0
"""What a TorchScript archive is checked for before torch.jit.load sees it. Loading and running it
runs code in TorchScript, which can do nothing but call operators; some of those read and write
files. So its code is parsed here, without running it, and every operator and every class in C++
that it names must be of a list.
"""

from __future__ import annotations

import ast
import pickletools
import warnings
from pathlib import Path

from .archive_checks import Refused, open_archive

NAMESPACES = {
    "aten",
    "prim",
    "quantized",
    "_quantized",
    "torchvision",
    "mkldnn",
    "mkldnn_prepacked",
    "prepacked",
    "sparse",
    "onednn",
}
CLASSES = {"quantized", "rnn", "sparse", "mkldnn", "xnnpack"}  # of torch.classes
# also as methods of a value: x.save("file") is torch.save(x, "file")
REFUSED = {"save", "from_file", "PythonOp", "CallPython", "IgnoredPythonOp"}
DYNAMIC = {"setattr", "eval", "exec", "compile", "__import__"}


def check(path: Path) -> None:
    """Raises Refused with the place and the reason, RuntimeError for what is no archive of
    PyTorch's.
    """
    reader, names = open_archive(path)
    for name in names:
        if name.endswith(".py"):
            _check_code(name, reader.get_record(name))
        elif name.endswith(".pkl") and not name.endswith(".debug_pkl"):
            _check_pickle(name, reader.get_record(name))


def _check_code(file: str, content: bytes) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on odd escapes in texts
            tree = ast.parse(content.decode("utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"{file}: its code cannot be parsed: {error}") from error
    for node in ast.walk(tree):
        where = f"{file}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_own(node):
            raise Refused(f"{where}: it imports")
        if isinstance(node, ast.Name) and node.id in DYNAMIC:
            raise Refused(f"{where}: it calls {node.id}")
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "getattr"
        ):
            name = (
                node.args[1].value
                if len(node.args) == 2 and isinstance(node.args[1], ast.Constant)
                else None
            )
            if not isinstance(name, str):
                raise Refused(f"{where}: it calls getattr of a name that is computed")
            _check_name(where, name, name)
        if isinstance(node, ast.Attribute):
            _check_name(where, _dotted(node), node.attr)


def _is_own(node: ast.Import | ast.ImportFrom) -> bool:
    """Old archives import their own classes: `import __torch__.x`."""
    names = (
        [node.module or ""]
        if isinstance(node, ast.ImportFrom)
        else [alias.name for alias in node.names]
    )
    return all(name.split(".")[0] == "__torch__" for name in names)


def _check_name(where: str, name: str, last: str) -> None:
    if last in REFUSED:
        raise Refused(f"{where}: it calls {name or last}, which can reach files or other programs")
    parts = name.split(".")
    if parts[0] == "ops" and len(parts) > 1 and parts[1] not in NAMESPACES:
        raise Refused(f"{where}: it calls {name}, an operator that strata lets no file call")
    if (
        parts[:3] == ["__torch__", "torch", "classes"]
        and len(parts) > 3
        and parts[3] not in CLASSES
    ):
        raise Refused(f"{where}: it uses {name}, a class in C++ that strata lets no file use")


def _dotted(node: ast.expr) -> str:
    """a.b.c; empty where something else than names is in front."""
    if isinstance(node, ast.Name):
        return node.id
    inner = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{inner}.{node.attr}" if isinstance(node, ast.Attribute) and inner else ""


def _check_pickle(file: str, content: bytes) -> None:
    """PyTorch's own unpickler makes objects of TorchScript classes and no others; classes in C++
    are among them.
    """
    try:
        for code, argument, _ in pickletools.genops(content):
            if code.name in ("GLOBAL", "INST") and isinstance(argument, str):
                _check_name(file, argument.replace(" ", "."), "")
            elif isinstance(argument, str) and argument.startswith("__torch__.torch.classes."):
                _check_name(file, argument, "")
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"{file} cannot be read: {error}") from error
