# SPDX-License-Identifier: Apache-2.0
"""Inputs that no level sees before it is timed on them (docs/proof.md, "How it behaves while it is
timed"), with what the network answers: a result that was remembered, however it is looked up, is
wrong for them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from capture import reference as ref
from capture.inputs import distinct

Entry = dict[str, Tensor]


def how_many(spec: dict) -> int:
    """Drawn behind the ring. A point of a sweep has few: each costs a run in float64."""
    return 0 if spec["mode"] == "train" else 2 if spec["light"] else 6


def unseen_entries(
    runner: ref.Runner,
    module: nn.Module,
    wide: bool,
    ring: Sequence[Entry],
    drawn: Sequence[Entry],
    error: float,
    seed: int,
) -> dict[str, Tensor]:
    """The file `reference/unseen` (docs/bundle.md): of `drawn` what is not in the ring, and answers
    of the module, in float64 arithmetic where it is `wide`. `error`: the envelope of the ring, of
    which an entry that rounding carries further, over a threshold, is left out."""
    view = ref.double_copy(module) if wide else module
    tensors: dict[str, Tensor] = {}
    known = list(ring)
    for place, entry in enumerate(drawn, start=len(ring)):
        if any(distinct([earlier, entry]) < 2 for earlier in known):
            continue
        known.append(entry)
        moved = runner.run(module, entry, ref.ulp_noise(seed + place, None))
        runs = [runner.run(module, entry), moved]
        answers = ref.reference_float64(runner, view, [entry])[0] if wide else runs[0]
        if ref.envelope_error({str(i): [run] for i, run in enumerate(runs)}, [answers]) > 2 * error:
            continue
        tensors |= {f"{place}/{k}": v for k, v in entry.items()}
        tensors |= {f"f64/{place}/{k}": v for k, v in answers.items()}
    return tensors
