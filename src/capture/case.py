# SPDX-License-Identifier: Apache-2.0
"""From spec.json to a resolved case: the model built, every input's name, type, shape and range
known, the batch settled."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capture.errors import Problem
from capture.forward import WRAP, positional_names
from strata_sdk.files import KINDS
from strata_sdk.models import Built

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
HOW_TO_NAME_INPUTS = "give --input 1x3x224x224 (or --input ids=int64:1x128:0..30521) or --inputs FILE, or let build() return (module, example_inputs)"


@dataclasses.dataclass
class Input:
    """One input of the model. `example` is the user's own tensor, whose values the ring then
    follows."""

    name: str
    keyword: bool
    dtype: str
    shape: list[int]
    low: float | None = None  # whole numbers, of an input of whole numbers
    high: float | None = None
    example: Tensor | None = None

    def described(self) -> dict:
        """As bundle.json lists it."""
        return {
            "name": self.name,
            "keyword": self.keyword,
            "dtype": self.dtype,
            "shape": self.shape,
        }


FIELDS = (
    "model mode batch size inputs precision device threads optimiser loss seed weights input_from"
    " input_file synthetic ring generic_sets deep light all_runs dynamic"
).split()


def check_spec(spec: Any) -> dict:
    """The spec, whose values the driver has checked. Problem where it is none, or where this
    PyTorch cannot run it."""
    missing = [field for field in FIELDS if field not in spec] if isinstance(spec, dict) else FIELDS
    if missing:
        raise Problem(
            "usage",
            f"the spec has no field '{missing[0]}'",
            "docs/bundle.md describes spec.json, of which every field is there",
        )
    if spec["device"] == "cuda" and not torch.cuda.is_available():
        raise Problem(
            "unavailable",
            f"this PyTorch ({torch.__version__}) sees no CUDA device",
            "use --device cpu, or a machine and a PyTorch with CUDA",
        )
    return spec


def resolve_inputs(spec: dict, built: Built) -> list[Input]:
    """The model's inputs in order: those of the spec, else of the user's example, else of the
    model's definition."""
    if spec["mode"] == "train" and built.kind in KINDS.values():
        raise Problem(
            "unsupported",
            f"{built.name} holds a network as it answers, not one that can be trained",
            "give the module itself, as path/to/file.py:build",
        )
    if spec["inputs"]:
        inputs = [
            _from_entry(i, e, drawn=not spec["input_file"]) for i, e in enumerate(spec["inputs"])
        ]
    elif built.example_inputs is not None:
        inputs = _from_example(built.example_inputs)
        if built.targets:
            inputs += _from_example(built.targets)
    elif built.default_inputs:
        inputs = [_from_entry(i, e) for i, e in enumerate(built.default_inputs)]
    elif spec["input_file"]:
        from capture.input_file import inputs_in  # which takes Input from here

        inputs = inputs_in(Path(spec["input_file"]), spec["batch"], positional_names(built.module))
    else:
        raise Problem("usage", f"the inputs of {built.name} are not known", HOW_TO_NAME_INPUTS)
    _check_names(inputs, built)
    # Positional ones come first, as in a call, under the names that forward has for them.
    inputs.sort(key=lambda i: i.keyword)
    by_name = {i.name for i in inputs if i.keyword}
    for declared, name in zip(inputs, positional_names(built.module)):
        if not declared.keyword and name not in by_name:
            declared.name = name
    names = [i.name for i in inputs]
    for name in names:
        if names.count(name) > 1:
            raise Problem("usage", f"two inputs are called '{name}'", "give each its own name")
    _settle_batch(spec["batch"], inputs)
    if spec["size"]:
        _settle_size(spec["size"], inputs, built.name)
    if all(0 in declared.shape for declared in inputs):
        raise Problem(
            "usage",
            f"the input '{inputs[0].name}' has the shape {'x'.join(map(str, inputs[0].shape))}: without an element there is nothing to compute",
            "give an example of at least one element",
        )
    return inputs


def _check_names(inputs: list[Input], built: Built) -> None:
    """The graph of an ONNX file takes its inputs by name: Problem unless exactly those are
    given."""
    names = getattr(built.module, "input_names", None)
    if names is None or {declared.name for declared in inputs} == set(names):
        return
    flags = ", ".join(
        declared.name if declared.keyword else "one without a name" for declared in inputs
    )
    raise Problem(
        "usage",
        f"--input: {built.name} takes its inputs by name: {', '.join(names)}; given: {flags}",
        f"write NAME=SHAPE, as {names[0] if names else 'x'}=1x3x224x224, or leave --input out for the file's own",
    )


def _from_entry(index: int, entry: dict, drawn: bool = True) -> Input:
    """`drawn`: values will be drawn, for which whole numbers need a range."""
    dtype, shape = entry.get("dtype") or "float32", list(entry["shape"])
    if dtype not in DTYPES:
        raise Problem(
            "usage", f"input {index}: type '{dtype}' is unknown; allowed: {', '.join(DTYPES)}"
        )
    if not all(isinstance(n, int) and n >= 1 for n in shape):
        raise Problem(
            "usage", f"input {index}: shape {shape} is not made of positive whole numbers"
        )
    low, high = entry.get("low"), entry.get("high")
    if (
        drawn
        and dtype.startswith(("int", "uint"))
        and low is None
        and not (dtype == "uint8" and is_image(shape))
    ):
        raise Problem(
            "usage",
            f"input {entry.get('name') or index}: an integer input needs a range",
            f"write it as {entry.get('name') or 'ids'}={dtype}:{'x'.join(map(str, shape))}:0..100",
        )
    if low is not None:
        _check_range(entry.get("name") or str(index), dtype, low, high)
    name = entry.get("name") or ""
    return Input(name or f"arg{index}", bool(name), dtype, shape, low, high)


def _check_range(name: str, dtype: str, low: Any, high: Any) -> None:
    """Real numbers for a type of real numbers, whole ones else; all of them of the type."""
    kind = DTYPES[dtype]
    real = kind.is_floating_point
    if (
        any(
            isinstance(n, bool) or not isinstance(n, (int, float) if real else int)
            for n in (low, high)
        )
        or low > high
    ):
        raise Problem(
            "usage",
            f"input {name}: the range {low}..{high} is not one of {'numbers' if real else 'whole numbers'}",
            "low must not be above high",
        )
    about = (torch.finfo if real else torch.iinfo)(kind) if kind != torch.bool else None
    least, most = (about.min, about.max) if about else (0, 1)
    if low < least or high > most:
        raise Problem(
            "usage",
            f"input {name}: the range {low}..{high} does not fit {dtype}",
            f"allowed: {least} to {most}",
        )


def _from_example(example: Any) -> list[Input]:
    if isinstance(example, Tensor):
        named = [("arg0", False, example)]
    elif isinstance(example, dict):
        named = [(str(k), True, v) for k, v in example.items()]
    elif isinstance(example, (tuple, list)):
        *last, by_name = example if len(example) == 2 else (None,)
        if last and isinstance(last[0], (tuple, list)) and isinstance(by_name, dict):
            return [*_from_example(last[0]), *_from_example(by_name)]
        named = [(f"arg{i}", False, v) for i, v in enumerate(example)]
    else:
        raise Problem(
            "usage",
            f"build() returned example inputs of type {type(example).__name__}",
            "return (module, tensor), (module, (tensor, ...)), (module, {name: tensor}) or (module, ((tensor, ...), {name: tensor}))",
        )
    if not named:
        raise Problem(
            "usage", "build() returned no example inputs beside the module", HOW_TO_NAME_INPUTS
        )
    by_type = {v: k for k, v in DTYPES.items()}
    inputs = []
    for name, keyword, value in named:
        if not isinstance(value, Tensor):
            raise Problem(
                "usage",
                f"example input '{name}' is of type {type(value).__name__}, not a tensor",
                WRAP
                if isinstance(value, (dict, tuple, list))
                else "bind other arguments in build(), so that only tensors remain",
            )
        if value.dtype not in by_type:
            raise Problem(
                "unsupported",
                f"example input '{name}' has type {value.dtype}",
                f"allowed: {', '.join(DTYPES)}",
            )
        inputs.append(
            Input(
                name,
                keyword,
                by_type[value.dtype],
                list(value.shape),
                example=value.detach().cpu().contiguous(),
            )
        )
    return inputs


def _settle_batch(batch: int | None, inputs: list[Input]) -> None:
    """Puts the asked batch in place of the first extent of every input that has the first input's
    batch."""
    if batch is None or not inputs[0].shape:
        return
    own = inputs[0].shape[0]
    if own not in (1, batch) and inputs[0].example is None:
        raise Problem(
            "usage",
            f"batch {batch} contradicts the input's shape {'x'.join(map(str, inputs[0].shape))}",
            "give the batch once: as the shape's first extent or as --batch",
        )
    for declared in inputs:
        if declared.shape and declared.shape[0] == own:
            declared.shape = [batch, *declared.shape[1:]]
            if declared.example is not None:
                rows = torch.arange(batch) % own
                declared.example = declared.example[rows].contiguous()


def _settle_size(size: list[int], inputs: list[Input], name: str) -> None:
    """Gives every input that is an image the asked height and width; an example of another size is
    dropped, since its values cannot be followed."""
    images = [declared for declared in inputs if is_image(declared.shape)]
    if not images:
        raise Problem(
            "usage",
            f"--size {'x'.join(map(str, size))}: {name} has no input that is an image (N, 1 or 3, height, width)",
            "say the inputs' form with --input",
        )
    for declared in images:
        if declared.shape[2:] != size:
            declared.shape, declared.example = [*declared.shape[:2], *size], None


def is_image(shape: list[int]) -> bool:
    """(N, 3, H, W) or (N, 1, H, W)."""
    return len(shape) == 4 and shape[1] in (1, 3)
