# SPDX-License-Identifier: Apache-2.0
"""The ring of inputs: crops of photographs, handwritten digits, a folder of images, the user's
tensors (input_file.py), or seeded numbers; whole batches that all differ, where inputs can differ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from capture.case import DTYPES, Input, is_image
from capture.errors import Problem
from capture.images import images, normalised
from capture.input_file import ring_from
from capture.kinds import is_constant, is_discrete, stays

KEPT = 0.75  # of a mask whose example masks nothing
# draws of an input that came out as an earlier one, which those of more elements do not by chance
TRIES, FEW = (
    16,
    1024,
)


def make_ring(
    spec: dict,
    inputs: list[Input],
    repeat: bool = False,
    answers: Callable[[dict[str, Tensor]], dict[str, Tensor] | None] | None = None,
    further: int = 0,
) -> tuple[list[dict[str, Tensor]], str]:
    """`ring` entries of contiguous CPU tensors, with `further` ones of the same kind behind them,
    and a phrase that says where they come from. What the user gave is one of the ring's, as it is.
    `repeat`: the user's file may hold less than a batch; `answers`: of the network to an entry,
    None where it raises: what was made of an example and breaks it gives way to the example."""
    size = spec["ring"]
    if spec["input_file"]:
        ring, source = ring_from(Path(spec["input_file"]), inputs, size, repeat, further)
        sources, why = [source], "the file holds too few rows"
    else:
        blank = {declared.name for declared in inputs if _is_blank(declared, inputs)}
        # faults are planted on the first entry, and are not seen in zeros
        place = 1 if blank else 0
        ring, sources = _drawn(spec, further, inputs, blank, place)
        if answers is not None:
            sources += _without_broken(ring, size, inputs, place, answers)
        why = "they have too few values"
    if (alike := size - distinct(ring[:size])) > 0:
        sources.append(
            f"{'all are equal' if alike == size - 1 else f'only {size - alike} of {size} differ'}, since {why}: a level that answers from memory may stay unseen"
        )
    return ring, "; ".join(sources)


def _is_blank(declared: Input, inputs: list[Input]) -> bool:
    """An example of floats that says a shape alone: torch.zeros(1, 8), or another constant where no
    input has more."""
    example = declared.example
    if example is None or not example.is_floating_point() or not is_constant(example):
        return False
    return not bool(example.any()) or all(
        other.example is not None and is_constant(other.example) for other in inputs
    )


def _drawn(
    spec: dict, further: int, inputs: list[Input], blank: set[str], place: int
) -> tuple[list[dict[str, Tensor]], list[str]]:
    """`place`: the entry that is the user's example; the values of `blank` ones mean nothing."""
    ring: list[dict[str, Tensor]] = [{} for _ in range(spec["ring"] + further)]
    sources: list[str] = []
    for index, declared in enumerate(inputs):
        generator = torch.Generator().manual_seed(spec["seed"] * 1009 + index)
        values, source = _unlike(
            functools.partial(_values, spec, further, declared, generator, declared.name in blank)
        )
        if declared.example is not None:
            values[0], values[place] = values[place], declared.example.clone()
            source += ", beside the user's example" if "example" not in source else ""
        for entry, value in zip(ring, values):
            entry[declared.name] = value.contiguous()
        if source not in sources:
            sources.append(source)
    if spec["input_from"] and not any("image files" in s for s in sources):
        raise Problem(
            "usage",
            "--input-from was given, but no input is a batch of images",
            "images need a float or uint8 input of shape (N, 3, H, W) or (N, 1, H, W)",
        )
    return ring, sources


def distinct(ring: list[dict[str, Tensor]]) -> int:
    """How many entries are not equal to an earlier one."""
    return sum(
        not any(all(torch.equal(entry[n], ring[k][n]) for n in entry) for k in range(i))
        for i, entry in enumerate(ring)
    )


def _without_broken(
    ring: list[dict[str, Tensor]],
    size: int,
    inputs: list[Input],
    place: int,
    answers: Callable[[dict[str, Tensor]], dict[str, Tensor] | None],
) -> list[str]:
    """Replaces entries that the network does not run on, or answers with NaN where it answers the
    example with numbers, by the example with its rows moved on, or as it is; a phrase that says so
    of the first `size`. Offsets, sorted lengths and permutations are no longer what they were when
    shuffled."""
    if all(declared.example is None for declared in inputs):
        return []

    def fits(entry: dict[str, Tensor], like: dict[str, Tensor]) -> bool:
        given = answers(entry)
        return given is not None and not any(
            name in given and not bool(given[name].isfinite().all())
            for name, value in like.items()
            if value.is_floating_point() and bool(value.isfinite().all())
        )

    expected = answers(ring[place])
    if expected is None:  # which the capture says better
        return []
    broken = []
    for i, entry in enumerate(ring):
        if i == place or fits(entry, expected):
            continue
        broken.append(i)
        ring[i] = {
            name: value.roll(i, 0) if value.dim() else value.clone()
            for name, value in ring[place].items()
        }
        if not fits(ring[i], expected):
            ring[i] = {name: value.clone() for name, value in ring[place].items()}
    count = sum(i < size for i in broken)
    if not count:
        return []
    return [
        f"{count} of {size} are the user's example again, since the network does not run on its values in another order: --inputs FILE takes more that it runs on"
    ]


def _values(
    spec: dict, further: int, declared: Input, generator: torch.Generator, blank: bool
) -> tuple[list[Tensor], str]:
    count, shape, dtype = spec["ring"] + further, declared.shape, DTYPES[declared.dtype]
    example = declared.example
    image_type = dtype.is_floating_point or dtype == torch.uint8
    if is_image(shape) and image_type and declared.low is None and not spec["synthetic"]:
        arrays, source = images(spec["input_from"], count, spec["ring"], shape, generator)
        return [normalised(a, dtype) for a in arrays], source
    if example is not None:
        real = example.is_floating_point() and not bool(stays(example).any())
        if is_constant(example) and (real or (blank and example.numel() == 1)):
            return [
                _near(example, i, generator) for i in range(count)
            ], "the user's number, moved by a tenth"
        if is_discrete(example) and not blank:
            return [
                _rearranged(example, i, generator) for i in range(count)
            ], "values of the user's example, shuffled"
        mean, std = _moments(example)
        return (
            [_noise_like(example, mean, std, blank, generator) for _ in range(count)],
            f"synthetic normal numbers, seeded {spec['seed']} with the mean and deviation of the user's example",
        )
    if declared.low is not None:
        return [_ranged(declared, generator) for _ in range(count)], _range_words(
            declared, spec["seed"]
        )
    if dtype == torch.bool:
        return [
            torch.rand(shape, generator=generator) < 0.5 for _ in range(count)
        ], f"seeded {spec['seed']} booleans"
    if dtype == torch.uint8:
        return [
            torch.randint(0, 256, shape, generator=generator).to(dtype) for _ in range(count)
        ], f"integers 0 to 255, seeded {spec['seed']}"
    return [
        torch.randn(shape, generator=generator).to(dtype) for _ in range(count)
    ], f"synthetic normal numbers, seeded {spec['seed']}"


def _ranged(declared: Input, generator: torch.Generator) -> Tensor:
    """Whole numbers of the range, or real ones, evenly drawn."""
    dtype = DTYPES[declared.dtype]
    assert declared.low is not None and declared.high is not None
    if not dtype.is_floating_point:
        return torch.randint(
            declared.low, declared.high + 1, declared.shape, generator=generator
        ).to(dtype)
    drawn = torch.rand(declared.shape, generator=generator, dtype=torch.float64)
    return (
        (declared.low * (1 - drawn) + declared.high * drawn)
        .clamp(declared.low, declared.high)
        .to(dtype)
    )


def _range_words(declared: Input, seed: int) -> str:
    if declared.low == declared.high:
        return f"the constant {declared.low}"
    kind = "numbers" if DTYPES[declared.dtype].is_floating_point else "integers"
    return f"{kind} {declared.low} to {declared.high}, seeded {seed}"


def _unlike(draw: Callable[[], tuple[list[Tensor], str]]) -> tuple[list[Tensor], str]:
    """What draw() gives; where some of it is equal, as of one boolean or one small whole number,
    each entry is drawn until it differs from those before, if it can."""
    values, source = draw()
    for i in range(1, len(values) if values[0].numel() <= FEW else 1):
        for _ in range(TRIES):
            if not any(torch.equal(values[i], earlier) for earlier in values[:i]):
                break
            values[i] = draw()[0][i]
    return values, source


def _near(example: Tensor, entry: int, generator: torch.Generator) -> Tensor:
    """Entry 0 is the example; later ones lie a tenth beside it (a scale or a time step must not
    change its sign), or anywhere where it is 0."""
    if entry == 0:
        return example.clone()
    noise = torch.randn(example.shape, generator=generator)
    return (example.double() * (1 + 0.1 * noise) if bool(example.any()) else noise).to(
        example.dtype
    )


def _moments(example: Tensor) -> tuple[float, float]:
    """Of the values that noise replaces."""
    values = example[~stays(example)].double()
    std = float(values.std()) if values.numel() > 1 else 0.0
    return (float(values.mean()), std) if std > 0 else (0.0, 1.0)


def _noise_like(
    example: Tensor, mean: float, std: float, blank: bool, generator: torch.Generator
) -> Tensor:
    """Normal numbers where the example, shuffled, has real ones; whole numbers, as the zeros of
    padding, stay what they are. `blank`: none of the example's values means anything."""
    noise = (torch.randn(example.shape, generator=generator) * std + mean).to(example.dtype)
    if blank or example.dim() == 0:
        return noise
    shuffled = _shuffled(example, generator)
    return torch.where(stays(shuffled), shuffled, noise)


def _rearranged(example: Tensor, entry: int, generator: torch.Generator) -> Tensor:
    """The example at entry 0, then shuffled, then drawn from the smaller and from the larger of its
    values: every value stays one that the model accepts, while extremes, sums and the number of
    distinct values differ."""
    if entry == 0 or example.dim() == 0:
        return example.clone()
    if example.numel() > 1 and bool((example == 1).all()):  # a mask of which nothing is masked
        return (torch.rand(example.shape, generator=generator) < KEPT).to(example.dtype)
    if entry % 3 == 1:
        return _shuffled(example, generator)
    values = example.reshape(-1).sort().values
    distinct = values.unique()
    if len(distinct) < 2:
        return example.clone()
    half = max(1, len(distinct) // 2)
    low, high = (
        (distinct[0], distinct[-1 - half]) if entry % 3 == 2 else (distinct[half], distinct[-1])
    )
    kept = values[(values >= low) & (values <= high)] if entry % 3 == 0 else values[values <= high]
    return kept[torch.randint(0, len(kept), example.shape, generator=generator)]


def _shuffled(example: Tensor, generator: torch.Generator) -> Tensor:
    """By example and by position: along the first and the last dimension."""
    for dim in {0, example.dim() - 1}:
        order = torch.randperm(example.shape[dim], generator=generator)
        example = example.index_select(dim, order)
    return example
