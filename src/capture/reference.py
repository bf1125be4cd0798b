# SPDX-License-Identifier: Apache-2.0
"""Runs of the user's module: the float64 reference, the legitimate float32 runs that make the
envelope, and the reference with planted faults.

A module may change its inputs: call() gives it copies.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from capture.faults import POWER, apply_fault, shared_copy
from capture.graph_faults import ANY_FAULT, GRAPH_FAULTS, with_graph_fault
from capture.kinds import is_discrete, stays
from capture.reordered import Order, Reordered, lanes, shuffled
from strata_sdk.models import call

Named = dict[str, Tensor]
Entry = Mapping[str, Tensor]  # of the ring: inputs by their names
Change = Callable[[Tensor], Tensor]  # of an input; must not write into it
LEAST_RUNS = 5
LEAST_LIGHT_RUNS = 3  # of a point of a sweep, whose corners have the whole
PROVEN_GENERIC = 2  # entries of the ring that generic sets are proven on
FAULT_FLOPS = 400e9  # float64 work that planting faults may cost: about half a minute on two cores
CLEAR = 10  # bounds that a fault reaches which nobody could overlook
PLACES = 3  # at which a fault is tried
# an eighth of a relative error that is no change: float64's own rounding, and nothing
UNCHANGED_WIDE, UNCHANGED = 2.0**-40, 2.0**-60


def as_it_is(t: Tensor) -> Tensor:
    return t


def strict_float32() -> None:
    """No TF32 and no bfloat16 inside float32 operations, on any backend."""
    torch.set_float32_matmul_precision("highest")
    # the older interface: setting the parts one by one makes torch.export's look at this flag fail
    torch.backends.cudnn.allow_tf32 = False
    for part in (
        torch.backends.mkldnn.matmul,
        torch.backends.mkldnn.conv,
        torch.backends.mkldnn.rnn,
    ):
        part.fp32_precision = "ieee"


class Runner:
    """Runs modules on ring entries on the case's device; results are contiguous CPU tensors."""

    def __init__(self, bundle: dict, device: str) -> None:
        self.bundle, self.device = bundle, device

    def run(self, module: nn.Module, entry: Entry, change: Change = as_it_is) -> Named:
        """One forward pass; `change` maps each input, and must not write into it."""
        with torch.inference_mode():
            moved = {k: change(v).to(self.device) for k, v in entry.items()}
            return {
                k: v.detach().to("cpu", copy=True).contiguous()
                for k, v in call(module, moved, self.bundle).items()
            }


class Runs(Protocol):
    """What envelope() needs of a Runner."""

    device: str

    def run(self, module: nn.Module, entry: Entry, change: Change = ...) -> Named: ...


def by_entry(entries: Sequence[Named], before: str = "") -> Named:
    """Tensors as files of a bundle name them: `<before><entry>/<name>`."""
    return {f"{before}{i}/{k}": v for i, named in enumerate(entries) for k, v in named.items()}


def by_variant(runs: Mapping[str, Sequence[Named]]) -> Named:
    """The file of an envelope: `<variant>/<entry>/<name>`."""
    return {
        name: value
        for variant, results in runs.items()
        for name, value in by_entry(results, f"{variant}/").items()
    }


def to_double(t: Tensor) -> Tensor:
    return t.double() if t.is_floating_point() else t


def reference_float64(runner: Runner, module64: nn.Module, entries: Iterable[Entry]) -> list[Named]:
    """The module's outputs in float64 arithmetic; what is an integer stays one."""
    return [
        {k: to_double(v) for k, v in runner.run(module64, e, to_double).items()} for e in entries
    ]


def double_copy(module: nn.Module) -> nn.Module:
    """A float64 copy; the original keeps its type."""
    return copy.deepcopy(module).double()


# ----------------------------------------------------------------------------------- the envelope


def few_runs(spec: dict) -> bool:
    """Whether an envelope is of three runs of eager, not of all that a whole capture makes."""
    return spec["light"] and not spec["all_runs"]


def envelope(
    runner: Runs,
    module: nn.Module,
    entries: Sequence[Entry],
    seed: int,
    unit: float | None = None,
    light: bool = False,
) -> dict[str, list[Named]]:
    """Variant -> outputs of each entry. At least five legitimate runs (`light`: three) that differ
    only in rounding; noise moves values by `unit` (relative), None: by one ulp of float32. Orders
    of sums tell nothing at a lower precision, whose own roundings are larger."""
    runs: dict[str, list[Named]] = {}

    def add(name: str, change: Change = as_it_is) -> None:
        runs[name] = [runner.run(module, e, change) for e in entries]

    add("default")
    if unit is None:
        orders = [lanes, shuffled(seed)]
        # a run that fails leaves the envelope narrower; code of the user's may refuse a mode
        with contextlib.suppress(Exception):
            runs["reordered"] = [
                _reordered(orders[i % 2], runner, module, entry) for i, entry in enumerate(entries)
            ]
    if not light and any(t.dim() == 4 and t.is_floating_point() for t in entries[0].values()):
        # a view() inside may refuse this layout
        with contextlib.suppress(RuntimeError), _weights_as(module, torch.channels_last):
            add(
                "channels_last",
                lambda t: t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t,
            )
    if not light or unit is not None:
        # not every operation has kernels of PyTorch's own for each type
        with contextlib.suppress(RuntimeError), _plain_kernels(runner.device):
            add("plain_kernels")
    with_floats = any(_moves(t) for t in entries[0].values())
    if with_floats:
        add("input_ulp", ulp_noise(seed, unit))
    number = 1 if with_floats else 0
    while len(runs) < (LEAST_LIGHT_RUNS if light else LEAST_RUNS):
        number += 1
        suffix = str(number) if number > 1 else ""
        if with_floats:
            add(f"input_ulp{suffix}", ulp_noise(seed + number, unit))
        else:
            with _moved_weights(module, seed + number, unit):
                add(f"weight_ulp{suffix}")
    return runs


def _reordered(order: Order, runner: Runs, module: nn.Module, entry: Entry) -> Named:
    with Reordered(order):
        return runner.run(module, entry)


@contextlib.contextmanager
def _weights_as(module: nn.Module, memory_format: torch.memory_format) -> Iterator[nn.Module]:
    try:
        yield module.to(memory_format=memory_format)
    finally:
        module.to(memory_format=torch.contiguous_format)


@contextlib.contextmanager
def _plain_kernels(device: str) -> Iterator[None]:
    """oneDNN or cuDNN off: the framework's own kernels."""
    backend = torch.backends.mkldnn if device == "cpu" else torch.backends.cudnn
    before = backend.enabled
    backend.enabled = False
    try:
        yield
    finally:
        backend.enabled = before


def _moved(t: Tensor, generator: torch.Generator, unit: float | None) -> Tensor:
    """Every element moved up or down, at random: to the next number, or by `unit` of itself. Whole
    numbers stay: of 0, the next number is another answer to `== 0`."""
    up = torch.rand(t.shape, generator=generator) < 0.5
    if unit is not None:
        moved = t * torch.where(up, 1 + unit, 1 - unit).to(t.dtype)
    else:
        moved = torch.nextafter(t, torch.where(up, float("inf"), float("-inf")).to(t.dtype))
    return torch.where(stays(t), t, moved)


def _moves(t: Tensor) -> bool:
    return t.dtype in (torch.float32, torch.float64) and not is_discrete(t)


def ulp_noise(seed: int, unit: float | None) -> Change:
    generator = torch.Generator().manual_seed(seed)
    return lambda t: _moved(t, generator, unit) if _moves(t) else t


@contextlib.contextmanager
def _moved_weights(module: nn.Module, seed: int, unit: float | None) -> Iterator[None]:
    generator = torch.Generator().manual_seed(seed)
    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dtype in (torch.float32, torch.bfloat16):
                parameter.copy_(_moved(parameter.detach().cpu(), generator, unit))
    try:
        yield
    finally:
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(before[name])


def mean_of(runs: dict[str, list[Named]]) -> list[Named]:
    """The centre of an envelope in float64, for a module that cannot run in float64."""

    def centre(entry: tuple[Named, ...]) -> Named:
        first = entry[0]
        return {
            name: torch.stack([run[name].double() for run in entry]).mean(0)
            if value.is_floating_point()
            else value
            for name, value in first.items()
        }

    return [centre(entry) for entry in zip(*runs.values())]


# ------------------------------------------------------------------------ errors (PROOF: outputs)


def finite_errors(result: Named, reference: Named) -> dict[str, float]:
    """||y - y64|| / (||y64|| + floor) per floating-point output, over what is finite in both; the
    floor is 2^-24 sqrt(n) times the median |y| over all outputs. Infinite where shapes differ."""
    floats = {k: v for k, v in reference.items() if v.is_floating_point()}
    if not floats:
        return {}
    sizes = torch.cat([v.double().abs().reshape(-1) for v in floats.values()])
    sizes = sizes[sizes.isfinite()]
    median = sizes.median().item() if sizes.numel() else 0.0
    errors = {}
    for name, expected in floats.items():
        floor = 2.0**-24 * expected.numel() ** 0.5 * median
        if result[name].shape != expected.shape:
            errors[name] = float("inf")
            continue
        both = result[name].isfinite() & expected.isfinite()
        distance = (result[name].double() - expected.double())[both].norm().item()
        errors[name] = distance / max(expected.double()[both].norm().item() + floor, 1e-300)
    return errors


def strange_places(result: Tensor, *expected: Tensor) -> int:
    """Elements of a tensor that are NaN or infinite where none of the wanted ones of its shape is,
    or are it with another sign, or the other way round."""
    strange = torch.ones(result.shape, dtype=torch.bool)
    for other in expected:
        strange &= ~(
            (result.isfinite() & other.isfinite())
            | (result.isnan() & other.isnan())
            | (result.double() == other.double())
        )
    return int(strange.sum())


def output_errors(result: Named, reference: Named) -> dict[str, float]:
    """finite_errors(), infinite where one has NaN or an infinity that the other has not."""
    errors = finite_errors(result, reference)
    return {
        name: float("inf")
        if error < float("inf") and strange_places(result[name], reference[name])
        else error
        for name, error in errors.items()
    }


def differs(result: Named, expected: Named, legitimate: list[Named], e0: float) -> str:
    """Which output is not the reference's, and how; empty: each lies within 8 of the envelope `e0`,
    is NaN or infinite only where the reference or a legitimate run is, and whole numbers are exact
    (where no float shows it: an arg-max may flip)."""
    errors = finite_errors(result, expected)
    for name in errors:
        if result[name].shape != expected[name].shape:
            return (
                f"{name} has the shape {list(result[name].shape)}, not {list(expected[name].shape)}"
            )
        if places := strange_places(
            result[name], expected[name], *(run[name] for run in legitimate)
        ):
            return f"{name} has NaN or an infinity at {places} of {expected[name].numel()} places where the model has not, or the other way round"
    worst = max(errors, key=lambda k: errors[k], default=None)
    if worst is not None and not errors[worst] <= 8 * e0:
        return f"{worst} is off by {errors[worst]:.2g}, {errors[worst] / e0:.0f} times the envelope"
    integers = [
        k
        for k, v in expected.items()
        if not v.is_floating_point() and not torch.equal(result[k], v)
    ]
    return integers[0] if integers and not errors else ""


def same(a: Tensor, b: Tensor) -> bool:
    """Equal in type, shape and every value, NaN for NaN."""
    return (
        a.dtype == b.dtype and a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
    )


def envelope_error(runs: dict[str, list[Named]], reference: list[Named]) -> float:
    """E0: the largest error of the legitimate runs over outputs and entries, at least 8 * 2^-24."""
    errors = [
        e
        for variant in runs.values()
        for result, expected in zip(variant, reference)
        for e in finite_errors(result, expected).values()
    ]
    return max([8 * 2.0**-24, *errors])


# --------------------------------------------------------------------------------- planted faults


NOTHING_SHOWS = "no fault that is planted in it shows"


def faulty_references(
    runner: Runner,
    module: nn.Module,
    entry: Entry,
    expected: Named,
    flops: float,
    wide: bool,
    error: float,
) -> tuple[dict[str, Named], list[str], str]:
    """Fault -> outputs of one entry, sentences that say what was planted, and why no fault can be
    seen (empty: one can). A fault that moves the answers by less than CLEAR times what a level is
    allowed (8 of the envelope, whose size `error` is), as before a maximum that takes another
    operand, is planted elsewhere; if it shows nowhere, the others stand. Where no layer's fault
    changes anything, they are planted in the graph. `module` stays whole, `expected` is its result,
    `wide`: it is float64."""
    most = max(3, int(FAULT_FLOPS / max(flops, 1.0)))
    planted: dict[str, tuple[float, Named, str]] = {}  # bounds that it reaches, ...

    def run(changed: nn.Module) -> Named:
        outputs = runner.run(changed, entry, to_double if wide else as_it_is)
        return {k: to_double(v) for k, v in outputs.items()}

    def in_layers(name: str, attempt: int) -> tuple[Named, str]:
        faulty = shared_copy(module)
        sentence = apply_fault(faulty, name, attempt)
        return run(faulty), sentence

    def in_graph(name: str, attempt: int) -> tuple[Named, str]:
        return with_graph_fault(module, name, run, attempt)

    def clear() -> list[str]:
        return [name for name, (bounds, _, _) in planted.items() if bounds >= CLEAR]

    runs = 0
    for names, plant in ((POWER, in_layers), (GRAPH_FAULTS, in_graph), (ANY_FAULT, in_graph)):
        for name, attempt in itertools.product(names, range(PLACES)):
            if name in clear() or (runs >= most and clear()):
                continue
            try:
                result, sentence = plant(name, attempt)
            # also a fault that makes shapes disagree: it shows itself without a proof
            except Exception:
                continue
            if differs(result, expected, [], UNCHANGED_WIDE if wide else UNCHANGED):
                runs += 1
                bounds = _farthest(result, expected) / (8 * error)
                planted[name] = max(
                    planted.get(name, (0.0, {}, "")), (bounds, result, sentence), key=lambda p: p[0]
                )
        if planted:
            break
    shown = clear() or sorted(planted, key=lambda name: -planted[name][0])[:1]
    return (
        {name: planted[name][1] for name in shown},
        [f"{name}: {planted[name][2]}" for name in shown],
        _why_unseen(*planted[shown[0]]) if shown else NOTHING_SHOWS,
    )


def _why_unseen(bounds: float, _: Named, sentence: str) -> str:
    """Of the fault that reaches the most bounds; empty: it can be seen."""
    if bounds >= 1:
        return ""
    return f"{NOTHING_SHOWS} (most: {sentence}, by {bounds:.2g} of what a level may differ)"


def _farthest(result: Named, expected: Named) -> float:
    """The largest relative error; infinite where whole numbers differ."""
    exact = [same(result[k], v) for k, v in expected.items() if not v.is_floating_point()]
    return max(output_errors(result, expected).values(), default=0.0) if all(exact) else math.inf
