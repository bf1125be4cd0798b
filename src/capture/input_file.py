# SPDX-License-Identifier: Apache-2.0
"""The user's own inputs: named tensors of a .safetensors or .npz file, checked against the
network's inputs and cut into the ring's batches. Nothing pickled is run; archives may unpack to a
size in proportion. arr_0, arr_1, ... (numpy's names for arrays without one) and arg0, arg1, ... are
taken by position, the only tensor of a network of one input whatever it is called; of a
.safetensors, 0/x, 1/x, ... (entries as strata's programs read them) are batches.
"""

from __future__ import annotations

import dataclasses
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capture.case import DTYPES, Input
from capture.errors import Problem
from capture.opened import sha256_of
from strata_sdk.archive_checks import Refused, check_size

SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
HOW_TO_WRITE = (
    "write it with safetensors.torch.save_file({name: tensor}, path), or "
    "numpy.savez(path, name=array)"
)


@dataclasses.dataclass
class Stored:
    """One tensor of the file. `first(n)` reads its first n rows; without rows it reads all."""

    dtype: str
    shape: list[int]
    first: Callable[[int], Tensor]

    def __str__(self) -> str:
        return _form(self.dtype, self.shape)


def ring_from(
    path: Path, inputs: list[Input], count: int, repeat: bool = False, further: int = 0
) -> tuple[list[dict[str, Tensor]], str]:
    """`count` batches of contiguous tensors by the inputs' names, `further` ones behind them, and a
    phrase on the file and the former.

    A tensor holds one batch or several along its first dimension; rows after the last whole one
    are left out. With fewer batches than `count` they come again, a row later each time where all
    inputs have the same first extent. `repeat`: also a tensor of less than a batch. Raises Problem.
    """
    stored = _by_input(path, inputs)
    batches = {
        declared.name: _batches(path, declared, stored[declared.name], repeat)
        for declared in inputs
    }
    several = {name: number for name, number in batches.items() if number > 1}
    if len(set(several.values())) > 1:
        counts = ", ".join(f"{name} {number}" for name, number in several.items())
        raise _bad(
            path,
            f"its tensors hold different numbers of batches ({counts})",
            "give every input as many batches, or one that serves for all",
        )
    held = max(batches.values(), default=1)
    moves = len({declared.shape[0] for declared in inputs if declared.shape}) == 1
    shifts = [i // held if moves else 0 for i in range(count + further)]
    ring: list[dict[str, Tensor]] = [{} for _ in shifts]
    for declared in inputs:
        for entry, value in zip(
            ring, _entries(declared, stored[declared.name], batches[declared.name], shifts)
        ):
            entry[declared.name] = value
    used = f"{count} of its {held}" if held > count else f"its {held}" if held > 1 else "its one"
    again = f", repeated{' a row later each time' if moves else ''}" if held < count else ""
    return ring, f"{label_words(path)}, {used} batch{'es' if held > 1 else ''}{again}"


def _entries(declared: Input, stored: Stored, batches: int, shifts: list[int]) -> list[Tensor]:
    """The ring's values of one input: entry i begins shifts[i] rows later than batch i."""
    if not declared.shape:
        return [stored.first(0).clone() for _ in shifts]
    extent = declared.shape[0]
    rows = min(batches * extent, stored.shape[0])
    values = stored.first(min(rows, len(shifts) * extent))
    order = torch.arange(extent)
    return [
        values[(order + i * extent + shift) % rows].contiguous() for i, shift in enumerate(shifts)
    ]


def inputs_in(path: Path, batch: int | None, names: list[str]) -> list[Input]:
    """The inputs of a network that does not say them, as the file has them: all rows are one batch
    unless `batch` says otherwise; arg0, arg1, ... are positional, and so is the only one of a
    network of one input, of `names`, that is called otherwise. Raises Problem."""
    entries = []
    held = _positions_named(_read(path), [])
    alone = len(held) == len(names) == 1
    for name, stored in held.items():
        if stored.dtype not in DTYPES:
            raise _bad(
                path, f"'{name}' has the type {stored.dtype}", f"allowed: {', '.join(DTYPES)}"
            )
        keyword = re.fullmatch(r"arg\d+", name) is None and not (alone and name not in names)
        entries.append(Input(name, keyword, stored.dtype, list(stored.shape)))
    if not entries:
        raise _bad(path, "it holds no tensor", HOW_TO_WRITE)
    entries.sort(
        key=lambda declared: (declared.keyword, len(declared.name), declared.name)
    )  # arg2 before arg10
    if batch and entries and entries[0].shape:
        own = entries[0].shape[0]
        for declared in entries:
            if declared.shape and declared.shape[0] == own:
                declared.shape[0] = batch
    return entries


def label_of(path: Path) -> str:
    """What the case says of the file."""
    return f"{path.name}:{sha256_of(path)[0][:12]}"


def label_words(path: Path) -> str:
    return f"the user's file {path.name} (SHA-256 {sha256_of(path)[0][:12]})"


# ---------------------------------------------------------------------------------- what must fit


def _by_input(path: Path, inputs: list[Input]) -> dict[str, Stored]:
    """The file's tensors by the inputs' names: all of them, and no other."""
    names = [declared.name for declared in inputs]
    stored = _positions_named(_read(path), names)
    expected = ", ".join(
        f"{declared.name} ({_form(declared.dtype, declared.shape)})" for declared in inputs
    )
    takes = f"the network takes {expected}"
    holds = ", ".join(f"{name} ({declared})" for name, declared in stored.items()) or "nothing"
    for name in names:
        if name not in stored:
            raise _bad(
                path,
                f"it holds no '{name}'; {takes}; it holds {holds}",
                f"name its tensors as the inputs: {', '.join(names)}",
            )
    for name in stored:
        if name not in names:
            raise _bad(
                path, f"it holds '{name}', which is no input; {takes}", "leave it out of the file"
            )
    return stored


def _positions_named(stored: dict[str, Stored], names: list[str]) -> dict[str, Stored]:
    """arr_0 or arg0, arr_1 or arg1, ... under the names of the inputs in that order (under arg0,
    arg1, ... where there is none), and the only tensor under the only name."""
    if len(stored) == len(names) == 1:  # whatever it is called
        return dict(zip(names, stored.values()))
    renamed: dict[str, Stored] = {}
    for name, declared in stored.items():
        match = re.fullmatch(r"(?:arr_|arg)(\d{1,4})", name)
        if match and name not in names:
            position = int(match[1])
            name = names[position] if position < len(names) else name if names else f"arg{position}"
        if name in renamed:
            raise Problem(
                "usage",
                f"the file of inputs holds two tensors for '{name}'",
                "give each input once, by its name or by its position",
            )
        renamed[name] = declared
    return renamed


def _batches(path: Path, declared: Input, stored: Stored, repeat: bool) -> int:
    """How many whole batches the tensor holds. Problem: it is none of this input's."""
    takes = _form(declared.dtype, declared.shape)
    if stored.dtype != declared.dtype:
        raise _bad(
            path,
            f"'{declared.name}' is {stored}; the network takes {takes}",
            f"convert it before it is saved, as array.astype('{declared.dtype}')",
        )
    if stored.shape == declared.shape:
        return 1
    if (
        not declared.shape
        or stored.shape[1:] != declared.shape[1:]
        or len(stored.shape) != len(declared.shape)
    ):
        several = " or several batches of it along the first dimension" if declared.shape else ""
        raise _bad(
            path,
            f"'{declared.name}' is {stored}; the network takes {takes}{several}",
            "give it that shape, or say with --input or --batch what the network takes",
        )
    rows, extent = stored.shape[0], declared.shape[0]
    if rows == 0 or (rows < extent and not repeat):
        raise _bad(
            path,
            f"'{declared.name}' has {rows} rows; a batch has {extent}",
            f"give it more rows{f', or --batch {rows}' if rows else ''}",
        )
    return max(1, rows // extent)


def _bad(path: Path, what: str, hint: str) -> Problem:
    return Problem("usage", f"--inputs {path}: {what}", hint)


def _form(dtype: str, shape: list[int]) -> str:
    return f"{dtype} {'x'.join(map(str, shape)) or 'without dimensions'}"


# -------------------------------------------------------------------------------- the two formats


def _read(path: Path) -> dict[str, Stored]:
    if not path.is_file():
        raise _bad(path, "there is no such file", "check the path")
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if path.suffix == ".npz":
        return _read_npz(path)
    raise _bad(path, f"it ends in '{path.suffix}'", "allowed: .safetensors, .npz")


def _read_safetensors(path: Path) -> dict[str, Stored]:
    import safetensors

    try:
        file = safetensors.safe_open(str(path), framework="pt")  # open as long as tensors are read
        return _joined(path, {name: _stored_in(file, name) for name in file.keys()})  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise _bad(path, f"it is no safetensors file: {_one_line(error)}", HOW_TO_WRITE) from error


def _joined(path: Path, stored: dict[str, Stored]) -> dict[str, Stored]:
    """Entries `<number>/<input>`, as strata's programs read them, as one tensor for each input."""
    if not stored or not all(re.fullmatch(r"\d{1,6}/.+", name) for name in stored):
        return stored
    entries: dict[str, dict[int, Stored]] = {}
    for key, part in stored.items():
        number, _, name = key.partition("/")
        entries.setdefault(name, {})[int(number)] = part
    return {name: _whole(path, name, parts) for name, parts in entries.items()}


def _whole(path: Path, name: str, parts: dict[int, Stored]) -> Stored:
    ordered = [parts[i] for i in range(len(parts)) if i in parts]
    first = next(iter(ordered), None)
    alike = len(ordered) == len(parts) and all(str(part) == str(first) for part in ordered)
    if first is None or not alike or (not first.shape and len(ordered) > 1):
        raise _bad(
            path,
            f"the entries of '{name}' are not 0, 1, ... of one type and shape",
            f"name them 0/{name}, 1/{name}, ..., each a batch",
        )
    if not first.shape:
        return first
    extent = first.shape[0]

    def rows(count: int) -> Tensor:
        needed = ordered[: -(-count // max(1, extent))]
        return torch.cat([part.first(extent) for part in needed])[:count]

    return Stored(first.dtype, [len(ordered) * extent, *first.shape[1:]], rows)


def _stored_in(file: Any, name: str) -> Stored:
    part = file.get_slice(name)
    dtype, shape = part.get_dtype(), list(part.get_shape())
    return Stored(
        SAFETENSORS_DTYPES.get(dtype, dtype),
        shape,
        lambda rows: part[:rows] if shape else file.get_tensor(name),
    )


def _read_npz(path: Path) -> dict[str, Stored]:
    try:
        with zipfile.ZipFile(path) as archive:
            check_size(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as file:
            return {name: _stored_array(path, name, file[name]) for name in file.files}
    except Refused as refusal:
        raise _bad(
            path,
            f"it is refused: {refusal}",
            "save it with numpy.savez, or allow more with --max-expansion",
        ) from refusal
    except Problem:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many kinds on what is damaged
        if "allow_pickle" in str(error):
            raise _bad(
                path,
                "it holds pickled objects, which strata does not run",
                "save arrays of numbers",
            ) from error
        raise _bad(path, f"it is no .npz file: {_one_line(error)}", HOW_TO_WRITE) from error


def _stored_array(path: Path, name: str, array: object) -> Stored:
    if not isinstance(array, np.ndarray):
        raise _bad(path, f"its member '{name}' is no array", HOW_TO_WRITE)
    return Stored(
        array.dtype.name,
        list(array.shape),
        lambda rows: _tensor_of(array[:rows] if array.ndim else array),
    )


def _tensor_of(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
