# SPDX-License-Identifier: Apache-2.0
"""The program with a capture that writes a bundle for training without PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import ROOT, Strata

CAPTURE = """
import hashlib, json, os, pathlib, sys
sys.path.insert(0, {fakes!r})
import train_bundle
for line in sys.stdin:  # a capture each, as src/capture/serve.py is asked for them
    words = json.loads(line)["arguments"]
    argument = lambda name: words[words.index(name) + 1]
    folder = pathlib.Path(argument("--out") + ".0123456789abcdef")
    train_bundle.write(str(folder), json.loads(argument("--spec")),
                       **json.load(open(os.path.join(os.environ["STRATA_ROOT"], "bundle.json"))))
    files = {{str(one.relative_to(folder)): {{"bytes": one.stat().st_size, "sha256": hashlib.sha256(one.read_bytes()).hexdigest()}}
             for one in folder.rglob("*") if one.is_file()}}
    (folder / "manifest.json").write_text(json.dumps({{"manifest": 1, "files": files}}))
    print(json.dumps({{"ok": True, "folder": str(folder)}}))
    print(json.dumps({{"exit_code": 0}}), flush=True)
"""


class Training(Strata):
    """A program whose capture writes the bundle of tests/fakes/train_bundle.py, so that neither
    PyTorch nor its gradients are needed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, folder / "cache")
        self.root = folder / "root"
        capture = self.root / "src" / "capture"
        capture.mkdir(parents=True)
        (capture / "__init__.py").write_text("", encoding="utf-8")
        (capture / "__main__.py").write_text(
            CAPTURE.format(fakes=str(ROOT / "tests" / "fakes")), encoding="utf-8"
        )
        (self.root / "sdk").symlink_to(ROOT / "sdk")
        self.bundle()
        self.environment |= {"STRATA_ROOT": str(self.root)}

    def bundle(self, **about) -> None:
        (self.root / "bundle.json").write_text(json.dumps(about), encoding="utf-8")

    def level(
        self,
        name: str,
        *,
        rank: int = 5,
        train: dict | None = None,
        precisions_in_json: list[str] | None = None,
        **more,
    ) -> None:
        super().level(
            name,
            rank=rank,
            json_fields={"modes": ["infer", "train"]}
            | ({"precisions": precisions_in_json} if precisions_in_json else {}),
            train=train or {},
            **more,
        )

    def compare(self, *levels: str, more: tuple[str, ...] = (), **keywords):
        return super().compare(
            *levels, more=("--mode", "train", *more), **({"restarts": 1} | keywords)
        )
