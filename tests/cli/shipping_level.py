# SPDX-License-Identifier: Apache-2.0
"""A fake level with an artefact and an export folder, and its export."""

from __future__ import annotations

import json

from conftest import MODEL

RECIPE = {
    "what": "a file",
    "artefacts": {"net.bin": "{cache}/net.bin"},
    "packages": ["numpy"],
    "build": "true",
    "test": "{tools_python} check.py {tools_python} serve.py",
    "run": "{tools_python} serve.py . test/inputs.safetensors",
}


# answers with the reference as float32 and one number from the artefact, a scale: a program that is
# right or wrong as its artefact is
SERVE = """
import sys
from pathlib import Path
from tensor_files import read_safetensors, write_safetensors
folder = Path(sys.argv[1])
scale = float((folder / "net.bin").read_text())
assert read_safetensors(Path(sys.argv[2]))
write_safetensors(Path(sys.argv[3]), {n.removeprefix("f64/"): (v * scale).astype("f4") for n, v in read_safetensors(folder / "test/reference.safetensors").items()})
"""


OPTIONS = ["--threads", "1"]


def shipping_level(
    strata, name: str = "shipped", *, recipe: dict | None = None, prepare: str = "", **keywords
) -> None:
    """A fake level whose prepare command writes net.bin, with an export folder."""
    strata.level(
        name,
        json_fields={"prepare": ["/bin/sh", "{level}/prepare.sh"]}
        | keywords.pop("json_fields", {}),
        **keywords,
    )
    folder = strata.levels / name
    (folder / "prepare.sh").write_text(
        prepare or 'echo 1.0 > "$4/net.bin"; echo \'{"ok":true}\'\n', encoding="utf-8"
    )
    (folder / "export").mkdir()
    (folder / "export" / "serve.py").write_text(SERVE, encoding="utf-8")
    (folder / "export" / "export.json").write_text(
        json.dumps(RECIPE | (recipe or {})), encoding="utf-8"
    )


def export(strata, *more: str, level: str = "shipped", to: str = "out", **keywords):
    return strata.run(
        "export",
        MODEL,
        "--level",
        level,
        "-o",
        to,
        "--store",
        str(strata.store),
        *OPTIONS,
        *more,
        **keywords,
    )


def read(strata, name: str, folder: str = "out") -> dict:
    return json.loads((strata.folder / folder / name).read_text(encoding="utf-8"))
