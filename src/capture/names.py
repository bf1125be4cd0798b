# SPDX-License-Identifier: Apache-2.0
"""Whether a model's name can be one at all, known without loading PyTorch: by the folders of
models/ and by the words of torchvision's files."""

from __future__ import annotations

import difflib
import functools
import importlib.util
import json
import re
import sys
from pathlib import Path

from strata_sdk.zoo import install_hint

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def _known() -> frozenset[str] | None:
    """None: which models torchvision would have is not known."""
    torchvision = importlib.util.find_spec("torchvision")
    if torchvision is None or not torchvision.origin:
        return None
    known: set[str] = set()
    for path in (ROOT / "models").glob("*/model.json"):
        about = json.loads(path.read_text(encoding="utf-8"))
        known |= set(about.get("names", [path.parent.name]))
    for path in (Path(torchvision.origin).parent / "models").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        known |= set(re.findall(r"^def (\w+)\(", text, re.M)) | set(re.findall(r'"(\w+)"', text))
    return frozenset(known)


def _is_torchvisions(model: str) -> bool:
    """Whether it is a classifier whose graph was recorded (tools/record_operations.py) and which
    models/ does not define by itself."""
    try:
        recorded = json.loads((ROOT / "src/graph/recorded/operations.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    names = {name for alike in recorded["graphs"] for name in alike["models"]}
    return model in names and not (ROOT / "models" / model).is_dir()


def unknown(model: str) -> dict | None:
    """What a capture would answer of a name that nothing has, or None: it may be one."""
    if not model.isidentifier():  # a file
        return None
    known = _known()
    if known is None and _is_torchvisions(model):
        return {
            "ok": False,
            "code": "unavailable",
            "what": f"the model '{model}' is torchvision's, which {sys.executable} does not have",
            "where": "model",
            "got": model,
            "hint": install_hint(),
        }
    if known is None or model in known:
        return None
    near = difflib.get_close_matches(model, sorted(known), n=1, cutoff=0.5)
    return {
        "ok": False,
        "code": "usage",
        "what": f"no model is called '{model}'",
        "where": "model",
        "got": model,
        "hint": (f"did you mean {near[0]}? " if near else "")
        + "`strata list models` shows all; a model of your own is given as path/to/file.py:build",
    }
