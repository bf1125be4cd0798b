# SPDX-License-Identifier: Apache-2.0
"""Inputs of the user's own: tensors of a .safetensors or .npz file fill the ring, and files that do
not fit say which field, what was got and what is expected. Ranges of real numbers.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from captured import refused
from safetensors.torch import load_file, save_file
from specs import capture

from capture.case import Input
from capture.input_file import ring_from
from capture.inputs import make_ring

TWO = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)
    def forward(self, ids, mask):
        return self.table(ids) * mask[..., None]
def build():
    return Net(), {"ids": torch.zeros(2, 3, dtype=torch.int64), "mask": torch.ones(2, 3)}
def positional():
    return Net(), (torch.zeros(2, 3, dtype=torch.int64), torch.ones(2, 3))
def formless():
    return Net()
"""
IDS = np.arange(24, dtype=np.int64).reshape(8, 3) % 9
MASK = np.linspace(0.5, 2, 24, dtype=np.float32).reshape(8, 3)


@pytest.fixture
def two(tmp_path) -> Path:
    """A network of two named inputs, batch 2."""
    path = tmp_path / "two.py"
    path.write_text(TWO, encoding="utf-8")
    return path


@pytest.fixture
def tiny(tmp_path) -> Path:
    return Path(shutil.copy(Path(__file__).with_name("tiny.py"), tmp_path))


def captured(spec: dict, tmp_path: Path) -> tuple[dict, list[dict[str, np.ndarray]]]:
    info = capture(spec, tmp_path / "bundle", lambda _text: None)
    ring: list[dict[str, np.ndarray]] = [{} for _ in range(info["ring"])]
    for key, value in load_file(tmp_path / "bundle" / "inputs.safetensors").items():
        entry, name = key.split("/", 1)
        ring[int(entry)][name] = value.numpy()
    return info, ring


@pytest.mark.parametrize(
    "kind", ["safetensors", "safetensors in entries", "npz", "compressed npz", "npz by position"]
)
def test_the_batches_of_a_file_are_the_ring(kind, two, tmp_path):
    path = tmp_path / ("own.safetensors" if kind.startswith("safetensors") else "own.npz")
    if kind == "safetensors":
        save_file({"ids": torch.from_numpy(IDS), "mask": torch.from_numpy(MASK)}, path)
    elif kind == "safetensors in entries":
        tensors = {
            f"{i}/{name}": torch.from_numpy(values[2 * i : 2 * i + 2])
            for i in range(4)
            for name, values in (("ids", IDS), ("mask", MASK))
        }
        save_file(tensors, path)
    elif kind == "npz by position":
        np.savez(path, IDS, MASK)
    else:
        (np.savez_compressed if "compressed" in kind else np.savez)(path, mask=MASK, ids=IDS)
    info, ring = captured({"model": f"{two}:build", "input_file": str(path)}, tmp_path)
    for i, entry in enumerate(ring):
        assert np.array_equal(entry["ids"], IDS[2 * i : 2 * i + 2]) and np.array_equal(
            entry["mask"], MASK[2 * i : 2 * i + 2]
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert info["input_source"] == f"the user's file {path.name} (SHA-256 {digest}), its 4 batches"
    assert info["case"]["inputs_label"] == f"{path.name}:{digest}" and info["case"]["batch"] == 2


def test_positional_inputs_are_named_or_counted(two, tmp_path):
    np.savez(tmp_path / "a.npz", arg1=MASK, arg0=IDS)
    _, named = captured(
        {"model": f"{two}:positional", "input_file": str(tmp_path / "a.npz")}, tmp_path
    )
    shutil.rmtree(tmp_path / "bundle")
    np.savez(tmp_path / "b.npz", IDS, MASK)
    _, counted = captured(
        {"model": f"{two}:positional", "input_file": str(tmp_path / "b.npz")}, tmp_path
    )
    for one, other in zip(named, counted):
        assert np.array_equal(one["ids"], other["ids"]) and np.array_equal(
            one["mask"], other["mask"]
        )


def test_positional_inputs_have_the_names_that_forward_has_for_them(two, tmp_path):
    np.savez(tmp_path / "own.npz", mask=MASK, ids=IDS)
    info, ring = captured(
        {"model": f"{two}:positional", "input_file": str(tmp_path / "own.npz")}, tmp_path
    )
    assert [(i["name"], i["keyword"]) for i in info["inputs"]] == [("ids", False), ("mask", False)]
    assert np.array_equal(ring[0]["ids"], IDS[:2]) and np.array_equal(ring[0]["mask"], MASK[:2])
    np.savez(tmp_path / "own.npz", masks=MASK, ids=IDS)
    problem = refused(
        {"model": f"{two}:positional", "input_file": str(tmp_path / "own.npz")}, tmp_path
    )
    assert "holds no 'mask'; the network takes ids (int64 2x3), mask (float32 2x3)" in problem.what


@pytest.mark.parametrize("model", ["linear", "build"])
def test_one_array_for_one_input_needs_no_name(model, tiny, tmp_path):
    """Whether or not build() says what the network takes."""
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.savez(tmp_path / "own.npz", tokens=values)
    spec = {"model": f"{tiny}:{model}", "batch": 2, "input_file": str(tmp_path / "own.npz")}
    info, ring = captured(spec, tmp_path)
    assert [i["name"] for i in info["inputs"]] == ["x"]
    assert np.array_equal(ring[1]["x"], values[2:])


def test_a_network_that_says_no_inputs_takes_them_from_the_file(two, tmp_path):
    np.savez(tmp_path / "own.npz", ids=IDS, mask=MASK)
    info, ring = captured(
        {"model": f"{two}:formless", "batch": 4, "input_file": str(tmp_path / "own.npz")}, tmp_path
    )
    assert [(i["name"], i["dtype"], i["shape"], i["keyword"]) for i in info["inputs"]] == [
        ("ids", "int64", [4, 3], True),
        ("mask", "float32", [4, 3], True),
    ]
    assert np.array_equal(ring[1]["ids"], IDS[4:])


def rows(values: torch.Tensor) -> list[int]:
    return values[:, 0].int().tolist()


def of_rows(
    path: Path, batch: int, count: int, **more: np.ndarray
) -> list[dict[str, torch.Tensor]]:
    inputs = [
        Input("x", True, "float32", [batch, 2]),
        *(Input(k, True, "float32", [1, 2]) for k in more),
    ]
    return ring_from(path, inputs, count)[0]


@pytest.mark.parametrize(
    ("held", "batch", "expected"),
    [
        (12, 2, [[0, 1], [2, 3], [4, 5], [6, 7]]),  # more than the ring holds
        (5, 2, [[0, 1], [2, 3], [1, 2], [3, 0]]),  # the row after the last whole batch is left out
        (3, 3, [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]),
        (1, 1, [[0], [0], [0], [0]]),
    ],
)
def test_rows_fill_the_ring_and_come_again_a_row_later(held, batch, expected, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.arange(held, dtype=np.float32)[:, None].repeat(2, 1))
    assert [rows(entry["x"]) for entry in of_rows(tmp_path / "x.npz", batch, 4)] == expected


def test_an_input_of_one_batch_serves_for_all_and_rows_stay_together(tmp_path):
    x = np.arange(8, dtype=np.float32)[:, None].repeat(2, 1)
    np.savez(tmp_path / "x.npz", x=x, scale=np.full((1, 2), 7, np.float32))
    ring = of_rows(tmp_path / "x.npz", 2, 4, scale=x)
    assert [rows(entry["x"]) for entry in ring] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [rows(entry["scale"]) for entry in ring] == [[7]] * 4


def test_entries_behind_the_ring_are_of_its_kind_and_change_nothing_of_it(tiny):
    spec = {"seed": 3, "ring": 4, "input_file": None, "input_from": None, "synthetic": False}
    inputs = [Input("x", False, "float32", [2, 6])]
    ring, source = make_ring(spec, inputs)
    longer, same_source = make_ring(spec, inputs, further=6)
    assert len(ring) == 4 and len(longer) == 10 and source == same_source
    assert all(torch.equal(a["x"], b["x"]) for a, b in zip(ring, longer))


def test_equal_entries_are_said(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones((1, 2), np.float32))
    _, source = make_ring(
        {"ring": 4, "input_file": str(tmp_path / "x.npz")}, [Input("x", True, "float32", [1, 2])]
    )
    assert (
        "its one batch, repeated" in source
        and "all are equal, since the file holds too few rows" in source
    )


def test_open_sizes_take_rows_as_often_as_they_need(tiny, tmp_path):
    save_file({"arg0": torch.arange(24.0).reshape(4, 6)}, tmp_path / "x.safetensors")
    spec = {
        "model": f"{tiny}:linear",
        "input_file": str(tmp_path / "x.safetensors"),
        "dynamic": {"low": 1, "high": 8, "sizes": [1, 8]},
    }
    captured(spec, tmp_path)
    largest = load_file(tmp_path / "bundle" / "dynamic" / "sizes" / "8" / "inputs.safetensors")
    assert largest["0/x"][:, 0].tolist() == [0, 6, 12, 18] * 2


def test_fortran_and_big_endian_arrays_have_their_values(tmp_path):
    x = np.asfortranarray(np.arange(8, dtype=">f4").reshape(4, 2))
    np.savez(tmp_path / "x.npz", x=x)
    ring = of_rows(tmp_path / "x.npz", 4, 1)
    assert ring[0]["x"].tolist() == x.tolist() and ring[0]["x"].is_contiguous()


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"ids": IDS}, ["no 'mask'", "mask (float32 2x3)", "it holds ids (int64 8x3)"]),
        ({"ids": IDS, "mask": MASK, "labels": IDS}, ["'labels', which is no input"]),
        ({"ids": IDS.astype(np.int32), "mask": MASK}, ["'ids' is int32 8x3", "takes int64 2x3"]),
        (
            {"ids": IDS, "mask": MASK.astype(np.float64)},
            ["'mask' is float64 8x3", "takes float32 2x3"],
        ),
        (
            {"ids": IDS[:, :2], "mask": MASK},
            ["'ids' is int64 8x2", "takes int64 2x3 or several batches"],
        ),
        ({"ids": IDS[0], "mask": MASK}, ["'ids' is int64 3;", "takes int64 2x3"]),
        ({"ids": IDS[:1], "mask": MASK}, ["'ids' has 1 rows; a batch has 2"]),
        ({"ids": IDS[:0], "mask": MASK}, ["'ids' has 0 rows"]),
        ({"ids": IDS, "mask": MASK[:6]}, ["different numbers of batches (ids 4, mask 3)"]),
        ({"ids": IDS, "mask": np.array("ab")}, ["'mask' is str"]),
        ({"ids": IDS, "mask": MASK, "arr_0": IDS}, ["two tensors for 'ids'"]),
        ({"ids": IDS, "mask": MASK, "arr_7": IDS}, ["'arr_7', which is no input"]),
    ],
)
def test_tensors_that_do_not_fit_are_named_with_what_was_got_and_what_is_expected(
    tensors, words, two, tmp_path
):
    np.savez(tmp_path / "own.npz", **tensors)
    problem = refused({"model": f"{two}:build", "input_file": str(tmp_path / "own.npz")}, tmp_path)
    assert problem.code == "usage" and problem.hint
    for word in words:
        assert word in problem.what, problem.what


class Trap:
    def __reduce__(self):
        return print, ("executed",)


def damaged(name: str, folder: Path) -> Path:
    """A file of inputs with something wrong."""
    path = folder / name
    np.savez(folder / "good.npz", ids=IDS, mask=MASK)
    if name == "pickle.npz":
        np.savez(path, ids=np.array([Trap()], dtype=object), mask=MASK)
    elif name == "cut.npz":
        path.write_bytes((folder / "good.npz").read_bytes()[:300])
    elif name == "flipped.npz":
        whole = bytearray((folder / "good.npz").read_bytes())
        whole[whole.index(b"fortran_order")] ^= 0x40
        path.write_bytes(bytes(whole))
    elif name in ("claims.npz", "member.npz"):
        header = (
            b"{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000, 3), }".ljust(117)
            + b"\n"
        )
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(
                "ids.npy",
                b"\x93NUMPY\x01\x00\x76\x00" + header if name == "claims.npz" else b"text",
            )
    elif name == "bomb.npz":
        np.savez_compressed(path, ids=np.zeros((4_000_000, 3), np.int64), mask=MASK)
    elif name == "cut.safetensors":
        save_file({"ids": torch.from_numpy(IDS), "mask": torch.from_numpy(MASK)}, path)
        path.write_bytes(path.read_bytes()[:-8])
    elif name.startswith("junk"):
        path.write_bytes(b"no tensors\n" * 100)
    return path


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("none.npz", "no such file"),
        ("own.txt", "no such file"),
        ("junk.txt", "ends in '.txt'"),
        ("junk.npz", "no .npz file"),
        ("junk.safetensors", "no safetensors file"),
        ("cut.npz", "no .npz file"),
        ("cut.safetensors", "no safetensors file"),
        ("flipped.npz", "no .npz file"),
        ("claims.npz", "no .npz file"),
        ("member.npz", "is no array"),
        ("pickle.npz", "pickled objects, which strata does not run"),
        ("bomb.npz", "times as much; allowed are 20 times"),
    ],
)
def test_a_file_of_inputs_that_cannot_be_read_is_explained(name, what, two, tmp_path, capfd):
    problem = refused(
        {"model": f"{two}:build", "input_file": str(damaged(name, tmp_path))}, tmp_path
    )
    assert problem.code == "usage" and what in problem.what and problem.hint, problem.what
    assert "executed" not in capfd.readouterr().out


@pytest.mark.parametrize(
    "tensors",
    [
        {"0/arg0": torch.ones(2, 6), "2/arg0": torch.ones(2, 6)},
        {"0/arg0": torch.ones(2, 6), "1/arg0": torch.ones(3, 6)},
    ],
)
def test_entries_that_are_not_of_one_kind_are_refused(tensors, tiny, tmp_path):
    save_file(tensors, tmp_path / "own.safetensors")
    assert (
        "entries of 'arg0' are not 0, 1"
        in refused(
            {"model": f"{tiny}:linear", "input_file": str(tmp_path / "own.safetensors")}, tmp_path
        ).what
    )


def test_an_archive_may_unpack_further_where_that_is_allowed(two, tmp_path, monkeypatch):
    path = damaged("bomb.npz", tmp_path)
    monkeypatch.setenv("STRATA_MAX_EXPANSION", "1e6")
    assert (
        "different numbers of batches"
        in refused({"model": f"{two}:build", "input_file": str(path)}, tmp_path).what
    )


# ------------------------------------------------------------------------- ranges of real numbers


def drawn(low, high, dtype: str = "float32") -> tuple[torch.Tensor, str]:
    ring, source = make_ring(
        {"ring": 2, "seed": 3, "synthetic": False, "input_from": None, "input_file": None},
        [Input("x", True, dtype, [50, 20], low, high)],
    )
    return torch.stack([entry["x"] for entry in ring]), source


def test_a_mask_of_ones_is_a_constant_of_real_numbers():
    values, source = drawn(1.0, 1.0)
    assert (
        values.dtype == torch.float32 and bool((values == 1).all()) and "the constant 1.0" in source
    )


def test_a_range_of_real_numbers_is_evenly_drawn_within_it():
    values, source = drawn(-0.5, 2.5)
    assert (
        -0.5 <= float(values.min()) < -0.4
        and 2.4 < float(values.max()) <= 2.5
        and abs(float(values.mean()) - 1) < 0.1
    )
    assert source == "numbers -0.5 to 2.5, seeded 3" and not torch.equal(values[0], values[1])
    assert drawn(-1.7e308, 1.7e308, "float64")[0].isfinite().all()


@pytest.mark.parametrize(
    ("dtype", "low", "high", "what"),
    [
        ("float32", 2.0, 1.0, "range 2.0..1.0"),
        ("float32", 0.0, 1e39, "does not fit float32"),
        ("int64", 0.5, 2, "whole numbers"),
        ("uint8", 0, 256, "does not fit uint8"),
        ("float32", "a", 1.0, "not one of numbers"),
    ],
)
def test_a_range_that_is_none_or_does_not_fit_its_type_is_refused(
    dtype, low, high, what, tiny, tmp_path
):
    problem = refused(
        {
            "model": f"{tiny}:build",
            "inputs": [{"name": "", "dtype": dtype, "shape": [2, 6], "low": low, "high": high}],
        },
        tmp_path,
    )
    assert problem.code == "usage" and what in problem.what
