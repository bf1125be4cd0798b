# SPDX-License-Identifier: Apache-2.0
"""Whether a model's name can be one at all, known without loading PyTorch: by the folders of
models/ and by the words of torchvision's files."""

from __future__ import annotations

import difflib
import importlib.util
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def unknown(model: str) -> dict | None:
    """What a capture would answer of a name that nothing has, or None: it may be one."""
    if not model.isidentifier():  # a file
        return None
    known = set()
    for path in (ROOT / "models").glob("*/model.json"):
        about = json.loads(path.read_text(encoding="utf-8"))
        known |= set(about.get("names", [path.parent.name]))
    torchvision = importlib.util.find_spec("torchvision")
    if torchvision is None or not torchvision.origin:
        return None  # which models it would have is not known
    for path in (Path(torchvision.origin).parent / "models").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        known |= set(re.findall(r"^def (\w+)\(", text, re.M)) | set(re.findall(r'"(\w+)"', text))
    if model in known:
        return None
    near = difflib.get_close_matches(model, sorted(known), n=1, cutoff=0.5)
    return {
        "ok": False,
        "code": "usage",
        "what": f"no model is called '{model}'",
        "hint": (f"did you mean {near[0]}? " if near else "")
        + "`strata list models` shows all; a model of your own is given as path/to/file.py:build",
    }
