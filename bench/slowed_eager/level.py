# SPDX-License-Identifier: Apache-2.0
"""slowed_eager: eager that does more work in each iteration, as much as it is told."""

import os
import sys
from pathlib import Path

from strata_sdk import Job
from strata_sdk.torch_level import TorchLevel

sys.path.append(str(Path(__file__).resolve().parent))
from extra_work import turn


class SlowedEager(TorchLevel):
    def load(self, job: Job) -> None:
        self.turns = int(os.environ.get("STRATA_EXTRA_TURNS", "0"))
        super().load(job)

    def run(self) -> None:
        super().run()
        turn(self.turns)
