# SPDX-License-Identifier: Apache-2.0
"""A reference that proves nothing: legitimate float32 runs of eager part so far that the envelope
would allow a level any answer, or float32 overflows. Says on which input, and at which
operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from capture import reference as ref
from capture.watch import Watch

Named = dict[str, Tensor]
BROKEN = 1e-2  # of the output: more than rounding of float32 explains
CASTS = ("to", "_to_copy", "detach")  # are in one of two precisions alone
MOST_BYTES = 2 << 30  # of the activations that are held to find the operation
NOISES = 3


def broken_sentence(
    runner: ref.Runner,
    module: nn.Module,
    wide: nn.Module | None,
    entries: Sequence[ref.Entry],
    runs: dict[str, list[Named]],
    expected: list[Named],
    weight_set: str,
    seed: int,
) -> str:
    """`wide`: the module in float64, None where it does not run in it."""
    worst, variant, entry, output = max(
        (error, variant, i, output)
        for variant, results in runs.items()
        for i, (result, exact) in enumerate(zip(results, expected))
        for output, error in ref.finite_errors(result, exact).items()
    )
    where = _first_jump(runner, module, wide, entries[entry], seed)
    return (
        f"eager's own float32 runs part by {worst:.2g} of the size of '{output}' on input {entry} "
        f"(run {variant}, {weight_set} weights), where rounding explains at most {BROKEN:g}"
        + (f": the answer jumps at {where}" if where else "")
    )


def overflow_sentence(
    runner: ref.Runner,
    module: nn.Module,
    entries: Sequence[ref.Entry],
    results: list[Named],
    expected: list[Named],
    weight_set: str,
) -> str:
    """Of eager's float32 `results` where float64 has numbers; empty: they have them, too."""
    for i, (result, exact) in enumerate(zip(results, expected)):
        for output, value in exact.items():
            lost = int((value.isfinite() & ~result[output].isfinite()).sum())
            if lost:
                where = _first_overflow(runner, module, entries[i])
                return (
                    f"float32 overflows: '{output}' on input {i} is infinite or NaN at {lost} of "
                    f"{value.numel()} places where float64 has numbers ({weight_set} weights)"
                    + (f", first at {where}" if where else "")
                )
    return ""


def _first_overflow(runner: ref.Runner, module: nn.Module, entry: ref.Entry) -> str:
    """The first operation that gives something else than numbers in float32 alone."""
    try:
        wide = ref.double_copy(module)
        numbers = _Numbers(wide)
        with numbers:
            runner.run(wide, entry, ref.to_double)
        compared = _Numbers(module, numbers.results)
        with compared:
            runner.run(module, entry)
    except Exception:  # a network that cannot be watched overflows unseen
        return ""
    return compared.overflow


class _Numbers(TorchDispatchMode):
    """Whether each operation gives numbers alone; compares that with what another run gave."""

    def __init__(self, module: nn.Module, other: list[tuple[str, bool]] | None = None) -> None:
        super().__init__()
        self.results: list[tuple[str, bool]] = []
        self.other, self.overflow = other, ""
        self.watch = Watch(module, [])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.split("::")[-1]
        if name in CASTS:
            return result
        given = [v for v in tree_leaves(result) if isinstance(v, Tensor)]
        finite = all(bool(v.isfinite().all()) for v in given)
        number = len(self.results)
        self.results.append((name, finite))
        before = self.other[number] if self.other and number < len(self.other) else None
        if not self.overflow and not finite and before == (name, True):
            self.overflow = f"{name} at {self.watch.place()}".removesuffix(" at ")
        return result


def _first_jump(
    runner: ref.Runner, module: nn.Module, wide: nn.Module | None, entry: ref.Entry, seed: int
) -> str:
    """The first operation whose results part in two legitimate runs; empty: none was seen."""
    if runner.bundle["activation_bytes"] > MOST_BYTES:
        return ""
    seen = _Results(module)
    try:
        with seen:
            runner.run(module, entry)
        others: list[tuple[nn.Module, ref.Change]] = [
            (module, ref.ulp_noise(seed + n, None)) for n in range(NOISES)
        ]
        if wide is not None:
            others.insert(0, (wide, ref.to_double))
        for other, change in others:
            compared = _Results(other, seen.results)
            changed = {name: change(value) for name, value in entry.items()}
            with compared:
                runner.run(other, changed)
            if compared.jump:
                return compared.jump
    except Exception:  # a network that cannot be watched jumps unseen
        return ""
    return ""


class _Results(TorchDispatchMode):
    """Keeps what each operation gives, or compares it with what another run kept."""

    def __init__(self, module: nn.Module, other: list[tuple[str, list[Tensor]]] | None = None):
        super().__init__()
        self.results: list[tuple[str, list[Tensor]]] = []
        self.other, self.number, self.jump = other, 0, ""
        self.watch = Watch(module, [])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.split("::")[-1]
        if torch.Tag.maybe_aliasing_or_mutating in func.tags or name in CASTS:
            return result
        given = [v for v in tree_leaves(result) if isinstance(v, Tensor)]
        if self.other is None:
            self.results.append((name, [v.detach().clone() for v in given]))
        elif not self.jump and self.number < len(self.other):
            before, values = self.other[self.number]
            if before != name or _part(given, values):
                self.jump = f"{name} at {self.watch.place()}".removesuffix(" at ")
            self.number += 1
        return result


def _part(given: list[Tensor], before: list[Any]) -> bool:
    for now, old in zip(given, before):
        if now.shape != old.shape:
            return True
        both = now.isfinite() & old.isfinite()
        size = old.double()[both].norm().item()
        if (now.double() - old.double())[both].norm().item() > BROKEN * size and size > 0:
            return True
        if size == 0 and bool((now != old)[both].any()) and not now.is_floating_point():
            return True
    return False
