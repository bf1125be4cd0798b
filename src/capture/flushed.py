# SPDX-License-Identifier: Apache-2.0
"""What eager answers where subnormal numbers are taken for zero, as engines do that set FTZ and DAZ
for speed: such a level is then told what it does (docs/proof.md, "Naming the cause")."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from capture import reference as ref


def flushed_answers(
    runner: ref.Runner,
    module: nn.Module,
    entries: Sequence[ref.Entry],
    expected: Sequence[ref.Named],
    error: float,
) -> dict[str, Tensor]:
    """The file `reference/<set>.flushed` (docs/bundle.md). Empty where weights and inputs hold no
    subnormal number, or the answers lie within the envelope, whose size `error` is."""
    held = itertools.chain(
        module.parameters(), module.buffers(), *(entry.values() for entry in entries)
    )
    if runner.device != "cpu" or not any(_has_subnormals(t) for t in held):
        return {}
    with _flushing() as flushes:
        answers = [runner.run(module, entry) for entry in entries] if flushes else []
    if not any(ref.differs(a, e, [], error) for a, e in zip(answers, expected)):
        return {}
    return {f"{i}/{k}": v for i, named in enumerate(answers) for k, v in named.items()}


def _has_subnormals(t: Tensor) -> bool:
    return t.dtype == torch.float32 and bool(
        ((t != 0) & (t.abs() < torch.finfo(t.dtype).tiny)).any()
    )


@contextlib.contextmanager
def _flushing() -> Iterator[bool]:
    """Subnormal numbers are zero to this thread, the only one that computes; False: this processor
    cannot."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch.set_flush_denormal(True)
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)
