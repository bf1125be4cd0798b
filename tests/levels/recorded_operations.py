# SPDX-License-Identifier: Apache-2.0
"""What torchvision's classifiers use, by a record of their graphs."""

from __future__ import annotations

import json

from client import ROOT, level_folder


def lacking(level: str) -> dict[str, list[str]]:
    """What the level lacks of the operations that torchvision's classifiers use in inference, by
    model."""
    known = set(json.loads((level_folder(level) / "level.json").read_text())["operations"])
    recorded = json.loads((ROOT / "src" / "graph" / "recorded" / "operations.json").read_text())[
        "graphs"
    ]
    used = {name: set(alike["infer"]) for alike in recorded for name in alike["models"]}
    assert len(used) > 70 and {"resnet50", "vit_b_16", "swin_v2_t", "maxvit_t"} <= used.keys()
    return {name: sorted(needed - known) for name, needed in used.items() if not needed <= known}
