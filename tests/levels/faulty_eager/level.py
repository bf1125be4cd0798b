# SPDX-License-Identifier: Apache-2.0
"""faulty_eager: eager with the fault that STRATA_FAULT names, of the network (src/capture/faults.py) or of the level (below)."""
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from strata_sdk import Job, UnsupportedError, models
from strata_sdk.torch_level import TorchLevel
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parents[3] / "src"))
from capture import faults  # noqa: E402


def wanted_fault() -> str:
    """STRATA_FAULT, or what the file that it names by @FILE holds."""
    name = os.environ.get("STRATA_FAULT", "").strip()
    return (Path(name[1:]).read_text(encoding="utf-8").strip() if name.startswith("@") else name) or "none"


class FaultyEager(TorchLevel):
    def load(self, job: Job) -> None:
        self.fault = wanted_fault()
        if self.fault != "none" and self.fault not in faults.FAULTS and self.fault not in LEVEL_FAULTS:
            raise UnsupportedError(f"STRATA_FAULT is '{self.fault}'", f"allowed: none, {', '.join([*faults.FAULTS, *LEVEL_FAULTS])}")
        if self.fault == "other_batch" and job.about["inputs"][0]["shape"][0] < 2:
            raise UnsupportedError("other_batch needs a batch of 2 or more")
        self.count, self.first_inputs, self.memo, self.has_weights = 0, None, None, False
        super().load(job)

    def load_weights(self, weights: str) -> None:
        if self.fault == "baked_weights" and self.has_weights:
            return
        if self.has_weights:  # network faults overwrite weights and wrap layers, so each set starts from a sound network
            self.module = self.runner = self.build_module(self.job)
        super().load_weights(weights)
        self.has_weights = True
        if self.fault == "wrong_seed":
            other = models.build_model(self.job.case["model"], int(self.job.case.get("seed") or 0) + 1).module
            self.module.load_state_dict(other.state_dict())
        if self.fault in faults.FAULTS:
            inner = self.module.inner if self.job.deep else self.module
            try:
                print(faults.apply_fault(inner, self.fault), file=sys.stderr)
            except faults.NotApplicable as error:
                raise UnsupportedError(f"{self.fault}: {error}") from error

    def set_input(self, inputs: tuple[Tensor, ...]) -> None:
        if self.fault == "stale_input":  # the buffer is filled once
            self.first_inputs = self.first_inputs or inputs
            inputs = self.first_inputs
        elif self.fault == "un_normalised_input":  # undoes (x - mean) / std with the mean and deviation of photographs
            inputs = tuple(x * 0.226 + 0.449 if x.is_floating_point() else x for x in inputs)
        elif self.fault == "other_batch":  # half of the work, then the results twice
            inputs = tuple(x[: x.shape[0] // 2] for x in inputs)
        super().set_input(inputs)

    def run(self) -> None:
        if self.fault == "memo" and self.memo is not None:
            return
        super().run()

    def outputs(self) -> tuple[Tensor, ...]:
        if self.fault == "memo":
            self.memo = self.memo or super().outputs()
            return self.memo
        result = super().outputs()
        self.count += 1
        change = LEVEL_FAULTS.get(self.fault)
        return tuple(change(self, i, y) for i, y in enumerate(result)) if change else result

    def repeat_batch(self, _i: int, y: Tensor) -> Tensor:
        whole = self.job.about["inputs"][0]["shape"][0]
        return torch.cat([y, y, y])[:whole] if y.dim() else y


def spoil_element(y: Tensor, value: float) -> Tensor:
    """A copy with one element in the middle replaced."""
    y = y.clone()
    y.view(-1)[y.numel() // 2] = value
    return y


# Faults of the level: what becomes of output i; None: the methods above do it.
LEVEL_FAULTS: dict[str, Callable[[FaultyEager, int, Tensor], Tensor] | None] = {
    "stale_input": None, "memo": None, "un_normalised_input": None, "baked_weights": None, "wrong_seed": None,
    "other_batch": FaultyEager.repeat_batch,
    "constant_output": lambda _s, _i, y: torch.full_like(y, 0.5),
    "nan_output": lambda _s, i, y: spoil_element(y, float("nan")) if i == 0 else y,
    "one_element": lambda _s, i, y: spoil_element(y, y.abs().max().item() * 2 + 1) if i == 0 else y,
    "wrong_dtype": lambda _s, _i, y: y.double() if y.is_floating_point() else y,
    "wrong_shape": lambda _s, _i, y: y.unsqueeze(0),
    "every_tenth": lambda s, _i, y: y + 1 if s.count % 10 == 0 else y,
}

if __name__ == "__main__":
    print("\n".join([*faults.FAULTS, *LEVEL_FAULTS]))
