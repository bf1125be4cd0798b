# SPDX-License-Identifier: Apache-2.0
"""Whether a model's name can be one at all, known without loading PyTorch: by the folders of
models/ and by the words of torchvision's files."""

from __future__ import annotations

import difflib
import functools
import importlib.util
import json
import re
from pathlib import Path

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


def unknown(model: str) -> dict | None:
    """What a capture would answer of a name that nothing has, or None: it may be one."""
    if not model.isidentifier():  # a file
        return None
    known = _known()
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
