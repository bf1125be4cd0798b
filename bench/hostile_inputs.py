#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives wrong and damaged files to every program that strata writes, built with AddressSanitizer:
each must be refused (exit code 1, a sentence), none may end in a report.

    .venv/bin/python bench/hostile_inputs.py [--programs aoti,torchscript,...] [--mutations 60]
    [--folder DIR]

Programs: the exports aoti, torchscript, openvino and onnxruntime, and those of `strata generate`:
onednn, train, libtorch. Prints a line a program (files, refused, taken, reports) and every file
that was not treated as it should be; exits with 1 if there is one. Mutated files may be taken where
the mutation leaves a sound file."""

from __future__ import annotations

import argparse
import json
import operator
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "runtime" / "serve"))
from tensor_files import read_safetensors, write_safetensors  # noqa: E402

MODEL = "mnist_convnet"
EXPORTS, GENERATED = (
    ("aoti", "torchscript", "openvino", "onnxruntime"),
    ("onednn", "train", "libtorch"),
)
OPTIONS = {"onednn": [], "train": ["--train"], "libtorch": ["--target", "libtorch"]}
FLAGS = "-O1 -g -fsanitize=address -fno-omit-frame-pointer"
Change = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]


def run(words: list, **more: Any) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=600,
        **more,
    )


def built_program(name: str, folder: Path) -> Path:
    """The folder of the program, written by strata and built with the sanitizer."""
    words = (
        ["export", MODEL, "--level", name]
        if name in EXPORTS
        else ["generate", MODEL, *OPTIONS[name]]
    )
    done = run([ROOT / "strata", *words, "--threads", "1", "-o", folder])
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-2000:]}")
    places = [
        f"-DSTRATA_PYTHON={sys.executable}",
        f"-DDNNL_ROOT={ROOT / '.venv'}",
        "-DCMAKE_BUILD_TYPE=None",
        f"-DCMAKE_CXX_FLAGS={FLAGS}",
        "-Wno-dev",
    ]
    for command in (
        ["cmake", "-S", folder, "-B", folder / "build", *places],
        ["cmake", "--build", folder / "build"],
    ):
        done = run(command)
        if done.returncode:
            sys.exit(f"{name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return folder


def command_of(name: str, folder: Path, file: Path) -> list:
    return (
        [folder / "build" / "serve", folder, file]
        if name in EXPORTS
        else [folder / "build" / "network", "--check" if name == "train" else file]
    )


def wrong_tensors(group: str) -> Iterator[tuple[str, Change]]:
    """Changes of an input <group>/x that no program may take."""
    name = f"{group}/x"

    def changed(value: Callable[[np.ndarray], np.ndarray]) -> Change:
        return with_value(name, value)

    for dtype in ("f8", "f2", "i8", "i4", "i2", "i1", "u1", "?"):
        yield f"type {dtype}", changed(operator.methodcaller("astype", dtype))
    yield "half of the batch", changed(lambda x: np.zeros((x.shape[0] + 1, *x.shape[1:]), "f4"))
    yield "an empty batch", changed(lambda x: x[:0])
    yield "a height of 0", changed(lambda x: x[:, :, :0])
    yield "another width", changed(lambda x: np.concatenate([x, x], axis=3))
    yield "a smaller width", changed(lambda x: x[..., 1:])
    yield "other channels", changed(lambda x: np.concatenate([x, x, x], axis=1))
    yield "a dimension less", changed(lambda x: x[0])
    yield "a dimension more", changed(lambda x: x[None])
    yield "the same bytes, flat", changed(lambda x: x.reshape(-1))
    yield "one number", changed(lambda x: x.reshape(-1)[:1])
    yield "a scalar", changed(lambda x: np.float32(0).reshape(()))
    yield "[0, 4]", changed(lambda x: np.zeros((0, 4), "f4"))
    yield "nine dimensions", changed(lambda x: np.zeros((1,) * 9, "f4"))
    yield "no tensor", lambda tensors: {key: value for key, value in tensors.items() if key != name}
    yield (
        "another name",
        lambda tensors: {
            ("other" if key == name else key): value for key, value in tensors.items()
        },
    )
    if group == "0":
        yield "one tensor more", lambda tensors: tensors | {"extra": np.zeros(3, "f4")}
        yield "a gap between entries", lambda tensors: tensors | {"99/x": tensors[name]}
        yield "no tensors at all", lambda tensors: {}


def wrong_references(reference: dict[str, np.ndarray]) -> Iterator[tuple[str, Change]]:
    """Changes of what else a stored reference holds."""
    for name in [key for key in reference if not key.startswith("input/")]:
        for what, value in (
            ("longer", lambda x: np.concatenate([x.reshape(-1)] * 9)),
            ("shorter", lambda x: x.reshape(-1)[:-1]),
            ("float32", lambda x: x.astype("f4")),
            ("empty", lambda x: x.reshape(-1)[:0]),
        ):
            yield f"{name} {what}", with_value(name, value)


def with_value(name: str, value: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda tensors: tensors | {name: np.ascontiguousarray(value(tensors[name]))}


def with_header(data: bytes, change: Callable[[dict], None]) -> bytes:
    """The file with another header before the same tensors."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def with_first(data: bytes, **fields: object) -> bytes:
    """The file with other fields of its first tensor."""
    return with_header(data, lambda header: header[sorted(header)[0]].update(fields))


def damaged_files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Files that are not sound, whatever they are for."""
    length = struct.unpack("<Q", data[:8])[0]
    for size in sorted(
        {
            0,
            1,
            7,
            8,
            9,
            8 + length // 2,
            8 + length - 1,
            8 + length,
            8 + length + 1,
            len(data) // 2,
            len(data) - 1,
        }
    ):
        yield f"cut to {size} bytes", data[:size]
    yield "a byte more", data + b"\0"
    for size in (0, 1, length - 1, length + 1, len(data), 2**31, 2**63, 2**64 - 1):
        yield f"a header of {size} bytes", struct.pack("<Q", size) + data[8:]
    for what, place in (
        ("outside", [0, 2**40]),
        ("far outside", [2**62, 2**62 + 4]),
        ("backwards", [8, 4]),
        ("negative", [-4, 4]),
        ("over another", [4, 8]),
        ("one number", [0]),
        ("text", "0"),
        ("a fraction", [0, 4.5]),
    ):
        yield (
            f"offsets {what}",
            with_first(data, data_offsets=place),
        )
    for shape in ([2**32, 2**32], [2**62, 4], [-1], [1.5], "4", [10**30], [[1]]):
        yield (
            f"shape {shape}",
            with_first(data, shape=shape),
        )
    for dtype in ("F33", "", "f32", 5, None):
        yield (
            f"type {dtype!r}",
            with_first(data, dtype=dtype),
        )
    yield "a header without end", struct.pack("<Q", 12) + b'{"a":{"dtype'
    yield "deep brackets", struct.pack("<Q", 100000) + b"[" * 100000


def mutated_files(data: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    """Sound files with up to eight other bytes in their headers."""
    length = struct.unpack("<Q", data[:8])[0]
    for seed in range(count):
        draw, changed = random.Random(seed), bytearray(data)
        for _ in range(draw.randint(1, 8)):
            changed[draw.randrange(8 + length)] = (
                draw.choice(b'{}[]",:0123456789\\x00\xff')
                if draw.random() < 0.8
                else draw.randrange(256)
            )
        yield f"mutation {seed}", bytes(changed)


class Tried:
    """Counts of one program, and what went wrong."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def file(self, what: str, words: list, must_refuse: bool = True) -> None:
        done = run(
            words,
            env=os.environ
            | {
                "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0:allocator_may_return_null=1"
            },
        )
        report = "AddressSanitizer" in done.stderr or done.returncode < 0 or done.returncode > 2
        verdict = "reports" if report else "taken" if done.returncode == 0 else "refused"
        self.counts[verdict] += 1
        messages = [line for line in done.stderr.splitlines() if line.strip()]
        if (
            report
            or (must_refuse and verdict == "taken")
            or (verdict == "refused" and not messages)
            or "Traceback" in done.stderr
        ):
            self.wrong.append(
                f"{self.name}: {what}: {verdict}, exit code {done.returncode}: {' | '.join(messages[-3:])[:400]}"
            )


def try_program(name: str, folder: Path, scratch: Path, mutations: int) -> Tried:
    tried = Tried(name)
    checks = name == "train"  # it has no other file of tensors than its batch
    own = folder / "reference.safetensors"
    right = dict(
        read_safetensors(
            own if checks else folder / "test" / "inputs.safetensors" if name in EXPORTS else own
        )
    )
    if not checks and name not in EXPORTS:
        right = {"0/x": right["input/x"]}
    file = own if checks else scratch / "inputs.safetensors"
    write_safetensors(file, right)
    words = command_of(name, folder, file)
    tried.file("the right file", words, must_refuse=False)
    if tried.counts["taken"] != 1:
        tried.wrong.append(
            f"{name}: the right file is refused, so that nothing was tried: {run(words).stderr.strip()[-400:]}"
        )
        return tried
    changes = [
        *wrong_tensors("input" if checks else "0"),
        *(wrong_references(right) if checks else []),
    ]
    for what, change in changes:
        write_safetensors(file, change(right))
        tried.file(what, words)
    write_safetensors(file, right)
    data = file.read_bytes()
    for what, damaged in damaged_files(data):
        file.write_bytes(damaged)
        tried.file(what, words)
    for what, damaged in mutated_files(data, mutations):
        file.write_bytes(damaged)
        tried.file(what, words, must_refuse=False)
    file.write_bytes(data)
    if not checks and own.exists():
        try_reference(tried, own, [folder / "build" / "network", "--check"])
    try_artefact(tried, name, folder, words)
    return tried


def try_reference(tried: Tried, own: Path, words: list) -> None:
    right, data = read_safetensors(own), own.read_bytes()
    for what, change in [*wrong_tensors("input"), *wrong_references(right)]:
        write_safetensors(own, change(right))
        tried.file(f"reference: {what}", words)
    own.write_bytes(data)


def try_artefact(tried: Tried, name: str, folder: Path, words: list) -> None:
    """Weights of other types and shapes, and files of the artefact that are cut short or
    missing."""
    weights = folder / "weights.safetensors"
    if weights.exists():
        right, data = read_safetensors(weights), weights.read_bytes()
        first = sorted(key for key in right if right[key].ndim == 4)[0]
        value = right[first]
        for what, other in (
            ("type of the same size", value.view("i4")),
            ("another type", value.astype("f8")),
            ("larger", np.concatenate([value] * 9)),
            ("shorter", value[:1]),
            ("empty", value[:0]),
            ("flat", value.reshape(-1)),
            ("missing", None),
        ):
            write_safetensors(
                weights,
                {key: one for key, one in (right | {first: other}).items() if one is not None},
            )
            tried.file(f"weights: {what}", words)
        for what, damaged in damaged_files(data):
            weights.write_bytes(damaged)
            tried.file(f"weights: {what}", words)
        weights.write_bytes(data)
    for piece in [
        folder / name
        for name in ("package.pt2", "script.pt", "model.xml", "model.bin", "model.onnx")
        if (folder / name).exists()
    ]:
        data = piece.read_bytes()
        for size in (0, 1, len(data) // 2, len(data) - 1):
            piece.write_bytes(data[:size])
            tried.file(f"{piece.name} cut to {size} bytes", words)
        piece.unlink()
        tried.file(f"{piece.name} missing", words)
        piece.write_bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", default=",".join(EXPORTS + GENERATED), help="which of them")
    parser.add_argument("--mutations", type=int, default=60, help="mutated files a program")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where programs are kept between calls (default: a temporary folder)",
    )
    chosen = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        base = chosen.folder or Path(temporary)
        base.mkdir(parents=True, exist_ok=True)
        for name in chosen.programs.split(","):
            folder = base / name
            if not (folder / "README.md").exists():
                shutil.rmtree(folder, ignore_errors=True)
                built_program(name, folder)
            tried = try_program(name, folder, Path(temporary), chosen.mutations)
            wrong += tried.wrong
            print(
                f"{name:12} {sum(tried.counts.values()):4} files: {tried.counts['refused']:4} refused, {tried.counts['taken']:3} taken, {tried.counts['reports']} reports; {len(tried.wrong)} not as they should be",
                flush=True,
            )
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
