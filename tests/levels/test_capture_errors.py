# SPDX-License-Identifier: Apache-2.0
"""What a capture says when something is wrong: a code, what and where, what to do; nothing
half-made is left."""

from __future__ import annotations

import json
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from captured import refused
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from specs import capture, whole  # noqa: E402

from capture import bundle, images  # noqa: E402
from capture.errors import Problem, from_exception  # noqa: E402
from strata_sdk.models import build_model, flatten_outputs  # noqa: E402

SHAPE = [{"name": "", "dtype": "float32", "shape": [2, 6]}]


@pytest.fixture
def tiny(tmp_path) -> Path:
    """A copy, which a test may change."""
    return Path(shutil.copy(Path(__file__).with_name("tiny.py"), tmp_path))


def run_cli(spec: dict, tmp_path: Path, **limits) -> tuple[int, list[dict], Path]:
    path, out = tmp_path / "spec.json", tmp_path / "made" / "bundle"
    path.write_text(json.dumps(whole(spec)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "capture", "--spec", str(path), "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'sdk' / 'python'}"},
        **limits,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], out


@pytest.mark.parametrize(
    ("model", "what", "hint"),
    [
        ("resnet5", "no model is called 'resnet5'", "resnet50"),
        ("mnist_convnt", "no model is called 'mnist_convnt'", "mnist_convnet"),
        ("mobilenet_v3_smal", "no model is called", "mobilenet_v3_small"),
        ("{tiny}:biuld", "has no function 'biuld'", "build"),
        ("{tiny}:raises", r"RuntimeError: no such checkpoint \(.*tiny.py:24\)", "module"),
        ("{tiny}:number", "returned an object of type int", "torch.nn.Module"),
        ("{tiny}:klass", "returned the class Net", "return Net"),
        ("{tiny}:stopped", "SystemExit: 3", ""),
        ("{folder}/tinny.py:build", "does not exist", "tiny.py"),
        ("{tiny}", "names no function", ":build"),
    ],
)
def test_a_model_that_cannot_be_built_is_explained(model, what, hint, tiny, tmp_path):
    problem = refused(
        {"model": model.format(tiny=tiny, folder=tiny.parent), "inputs": SHAPE}, tmp_path
    )
    assert problem.code == "usage" and re.search(what, problem.what) and hint in problem.hint


def test_a_file_with_a_syntax_error_names_the_line(tmp_path):
    (tmp_path / "bad.py").write_text("x = 1\ndef build(:\n", encoding="utf-8")
    problem = refused({"model": f"{tmp_path}/bad.py:build"}, tmp_path)
    assert problem.code == "usage" and "SyntaxError" in problem.what and "bad.py:2" in problem.what


@pytest.mark.parametrize(
    ("extra", "what"),
    [
        ({}, "inputs of tiny:build are not known"),
        (
            {"inputs": [{"name": "", "dtype": "float32", "shape": [2, 5]}]},
            "does not run on its inputs .*2x5.*tiny.py:15",
        ),
        (
            {"inputs": [{"name": "y", "dtype": "float32", "shape": [2, 6]}]},
            "unexpected keyword argument 'y'",
        ),
        ({"inputs": [{"name": "", "dtype": "int64", "shape": [2, 6]}]}, "needs a range"),
        (
            {"inputs": [{"name": "", "dtype": "floot32", "shape": [2, 6]}]},
            "type 'floot32' is unknown",
        ),
        ({"inputs": SHAPE, "batch": 3}, "batch 3 contradicts"),
        ({"inputs": SHAPE * 2}, "takes|positional"),
    ],
)
def test_a_case_that_cannot_be_run_is_explained(extra, what, tiny, tmp_path):
    problem = refused({"model": f"{tiny}:build"} | extra, tmp_path)
    assert re.search(what, problem.what) and problem.code in ("usage", "unsupported")


def test_a_spec_that_lacks_a_field_is_no_case(tmp_path):
    with pytest.raises(Problem, match="no field 'mode'"):
        bundle.capture({"model": "resnet18"}, tmp_path / "bundle", lambda _text: None)


def test_a_result_without_tensors_is_unsupported(tiny, tmp_path):
    assert refused({"model": f"{tiny}:nothing", "inputs": SHAPE}, tmp_path).code == "unsupported"


def test_example_inputs_of_a_wrong_type_are_refused(tiny, tmp_path):
    assert "type str" in refused({"model": f"{tiny}:odd"}, tmp_path).what


def test_a_constant_ring_is_captured_and_said(tmp_path):
    (tmp_path / "ids.py").write_text(
        "from torch import nn\ndef build():\n    return nn.Sequential(nn.Embedding(9, 4))\n",
        encoding="utf-8",
    )
    spec = {
        "model": f"{tmp_path}/ids.py:build",
        "inputs": [{"name": "", "dtype": "int64", "shape": [1, 4], "low": 3, "high": 3}],
    }
    assert "all are equal" in capture(spec, tmp_path / "bundle", lambda _text: None)["input_source"]


class Trap:
    def __reduce__(self):
        return (print, ("executed",))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("missing.safetensors", "lacks 1 tensor .first: fc.bias."),
        ("extra.safetensors", "has 1 that the model has not"),
        ("shape.pt", r"fc.weight has shape \[3, 5\]"),
        ("junk.safetensors", "not a readable safetensors"),
        ("junk.pt", "cannot be read"),
        ("cut.pth", "cannot be read"),
        ("evil.pt", "does not run such files"),
        ("list.pt", "no name-to-tensor mapping"),
        ("script.pt", "is a TorchScript program, not a file of weights"),
        ("exported.pt", "is an exported program"),
        ("none.pt", "does not exist"),
        ("weights.bin", "ends in '.bin'"),
    ],
)
def test_a_weights_file_that_does_not_serve_is_explained(name, what, tiny, tmp_path, capfd):
    weight, bias = torch.zeros(3, 6), torch.zeros(3)
    path = tmp_path / name
    if name == "missing.safetensors":
        save_file({"fc.weight": weight}, path)
    elif name == "extra.safetensors":
        save_file({"fc.weight": weight, "fc.bias": bias, "fc.scale": bias.clone()}, path)
    elif name == "shape.pt":
        torch.save({"fc.weight": torch.zeros(3, 5), "fc.bias": bias}, path)
    elif name == "evil.pt":
        with path.open("wb") as file:
            pickle.dump({"fc.weight": Trap()}, file, protocol=2)
    elif name == "list.pt":
        torch.save([1, 2], path)
    elif name == "script.pt":
        torch.jit.script(torch.nn.Linear(6, 3)).save(path)
    elif name == "exported.pt":
        torch.export.save(
            torch.export.export(torch.nn.Linear(6, 3), (torch.zeros(2, 6),)),
            path.with_suffix(".pt2"),
        )
        path.with_suffix(".pt2").rename(path)
    elif name == "cut.pth":
        torch.save({"fc.weight": weight, "fc.bias": bias}, path)
        path.write_bytes(path.read_bytes()[:300])
    elif name != "none.pt":
        path.write_bytes(b"\x07junk" * 50)
    problem = refused({"model": f"{tiny}:build", "inputs": SHAPE, "weights": str(path)}, tmp_path)
    assert problem.code == "usage" and re.search(what, problem.what), problem.what
    assert "weights_only" not in problem.what + problem.hint
    assert name in problem.what and "executed" not in capfd.readouterr().out


def test_the_users_weights_are_the_timed_ones(tiny, tmp_path):
    state = {"module.fc.weight": torch.randn(3, 6), "module.fc.bias": torch.randn(3)}
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "w.pth")
    info = capture(
        {"model": f"{tiny}:build", "inputs": SHAPE, "weights": str(tmp_path / "w.pth")},
        tmp_path / "b",
        lambda _text: None,
    )
    from safetensors.torch import load_file

    assert torch.equal(
        load_file(tmp_path / "b" / "weights" / "timed.safetensors")["fc.weight"],
        state["module.fc.weight"],
    )
    assert "w.pth" in info["weight_source"]


def test_a_model_that_cannot_run_in_float64_gets_the_envelope_as_reference(tiny, tmp_path):
    info = capture({"model": f"{tiny}:only32"}, tmp_path / "b", lambda _text: None)
    assert info["reference"] == "float32_envelope" and "tiny.py" in info["reference_note"]


def test_images_that_cannot_be_used_are_named(tmp_path):
    spec = {
        "model": "resnet18",
        "inputs": [{"name": "", "dtype": "float32", "shape": [1, 3, 32, 32]}],
        "input_from": str(tmp_path / "pictures"),
    }
    (tmp_path / "pictures").mkdir()
    assert "holds no JPEG or PNG" in refused(spec, tmp_path).what
    (tmp_path / "pictures" / "a.png").write_bytes(b"not a picture")
    problem = refused(spec, tmp_path)
    assert problem.code == "usage" and "a.png" in problem.what
    from PIL import Image

    Image.radial_gradient("L").convert("RGB").save(tmp_path / "pictures" / "a.png")
    whole = (tmp_path / "pictures" / "a.png").read_bytes()
    (tmp_path / "pictures" / "b.PNG").write_bytes(whole[: len(whole) // 2])
    assert "b.PNG" in refused(spec, tmp_path).what


def test_a_picture_is_told_by_its_content_and_starts_no_program(tmp_path, monkeypatch):
    spec = {
        "model": "resnet18",
        "inputs": [{"name": "", "dtype": "float32", "shape": [1, 3, 32, 32]}],
        "input_from": str(tmp_path / "pictures"),
    }
    (tmp_path / "pictures").mkdir()
    (tmp_path / "bin").mkdir()
    # what Pillow reads PostScript with
    (tmp_path / "bin" / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "bin" / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "pictures" / "a.png").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 64\n%%EndComments\nshowpage\n%%EOF\n"
    )
    assert "a.png" in refused(spec, tmp_path).what
    assert not (tmp_path / "started").exists()


def test_a_picture_of_more_pixels_than_allowed_is_refused_before_it_is_unpacked(
    tmp_path, monkeypatch
):
    from PIL import Image

    spec = {
        "model": "resnet18",
        "inputs": [{"name": "", "dtype": "float32", "shape": [1, 3, 32, 32]}],
        "input_from": str(tmp_path / "pictures"),
    }
    (tmp_path / "pictures").mkdir()
    Image.new("1", (20000, 6000)).save(tmp_path / "pictures" / "a.png", optimize=True)  # some 15 kB
    problem = refused(spec, tmp_path)
    assert (
        problem.code == "usage"
        and "120 million; allowed are 100 million" in problem.what
        and "--max-megapixels" in problem.hint
    )
    (tmp_path / "pictures" / "a.png").unlink()
    Image.radial_gradient("L").save(tmp_path / "pictures" / "a.png")  # 256 x 256
    monkeypatch.setenv("STRATA_MAX_MEGAPIXELS", "0.065")
    assert "allowed are 0.065 million" in refused(spec, tmp_path).what
    monkeypatch.setenv("STRATA_MAX_MEGAPIXELS", "0.066")
    images.images(spec["input_from"], 2, 2, [1, 3, 32, 32], torch.Generator().manual_seed(0))


def test_weights_that_unpack_out_of_proportion_are_refused(tiny, tmp_path):
    torch.save({"w": torch.zeros(20_000_000)}, tmp_path / "plain.pt")
    with (
        zipfile.ZipFile(tmp_path / "plain.pt") as old,
        zipfile.ZipFile(tmp_path / "w.pt", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    problem = refused(
        {"model": f"{tiny}:build", "inputs": SHAPE, "weights": str(tmp_path / "w.pt")}, tmp_path
    )
    assert problem.code == "usage" and "times as much" in problem.what


def test_images_of_a_folder_that_no_input_takes_are_refused(tiny, tmp_path):
    assert (
        "no input is a batch of images"
        in refused(
            {"model": f"{tiny}:build", "inputs": SHAPE, "input_from": str(tmp_path)}, tmp_path
        ).what
    )


def test_standard_output_holds_only_json_and_ends_with_ok(tiny, tmp_path):
    code, lines, out = run_cli({"model": f"{tiny}:build", "inputs": SHAPE}, tmp_path)
    assert (
        code == 0
        and lines[-1] == {"ok": True}
        and all("progress" in line for line in lines[:-1])
        and (out / "bundle.json").exists()
    )


def test_a_failure_is_one_json_line_and_exit_code_1(tiny, tmp_path):
    code, lines, out = run_cli({"model": f"{tiny}:raises", "inputs": SHAPE}, tmp_path)
    assert (
        code == 1
        and lines[-1]["ok"] is False
        and {"code", "what", "hint"} < set(lines[-1])
        and not out.exists()
    )


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path):
    def small_files_only() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))

    code, lines, out = run_cli({"model": "mnist_convnet"}, tmp_path, preexec_fn=small_files_only)
    assert (
        code == 1
        and lines[-1]["code"] == "failed"
        and "cannot write the bundle" in lines[-1]["what"]
        and "space" in lines[-1]["hint"]
    ), lines[-1]
    assert not out.exists() and not list(out.parent.iterdir())


def test_a_full_disk_is_recognised_from_every_library():
    import errno

    for error in (
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError(
            "[enforce fail at inline_container.cc] PytorchStreamWriter failed writing file data/0"
        ),
    ):
        assert "no space left" in from_exception(error, Path("/tmp/x/y")).what


def test_left_overs_of_a_killed_capture_are_removed(tiny, tmp_path):
    stale = tmp_path / ".b.partial-999999999"
    stale.mkdir()
    capture({"model": f"{tiny}:build", "inputs": SHAPE}, tmp_path / "b", lambda _text: None)
    assert not stale.exists() and (tmp_path / "b" / "bundle.json").exists()


def test_a_capture_leaves_the_bundle_that_another_one_of_the_same_case_finished_first(
    tiny, tmp_path
):
    out, spec, files = tmp_path / "made" / "bundle", {"model": f"{tiny}:build", "inputs": SHAPE}, []

    def other_one(text: str) -> None:
        if text.startswith("counting operations"):
            assert run_cli(spec, tmp_path)[0] == 0
            files.append((out / "bundle.json").stat().st_ino)

    info = capture(spec, out, other_one)
    assert files == [(out / "bundle.json").stat().st_ino] and info == json.loads(
        (out / "bundle.json").read_text(encoding="utf-8")
    )
    assert [p.name for p in out.parent.iterdir()] == ["bundle"]


def test_a_capture_replaces_the_bundle_that_was_there_before_it(tiny, tmp_path):
    out = tmp_path / "b"
    out.mkdir()
    (out / "half").write_text("what a crash left", encoding="utf-8")
    capture({"model": f"{tiny}:build", "inputs": SHAPE}, out, lambda _text: None)
    assert (out / "bundle.json").exists() and not (out / "half").exists()


def test_outputs_get_the_names_of_their_containers():
    from collections import namedtuple
    from dataclasses import dataclass

    @dataclass
    class Both:
        scores: torch.Tensor
        extra: dict

    t = torch.zeros(1)
    assert list(flatten_outputs(t)) == ["output"]
    assert list(flatten_outputs((t, None, [t, t]))) == ["output0", "output2.0", "output2.1"]
    assert list(flatten_outputs({"a": t, "b": {"c": (t, 3)}})) == ["a", "b.c.0"]
    assert list(flatten_outputs(Both(t, {"x": t}))) == ["scores", "extra.x"]
    assert list(flatten_outputs(namedtuple("Pair", "left right")(t, t))) == ["left", "right"]


def test_the_same_seed_builds_the_same_weights():
    a, b, c = (build_model("mnist_convnet", s).module.state_dict()["fc1.weight"] for s in (1, 1, 2))
    assert torch.equal(a, b) and not torch.equal(a, c)


def test_a_python_without_scikit_learn_gets_its_photographs_from_stratas_own_environment(
    monkeypatch,
):
    from capture import images

    monkeypatch.setattr(images.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setenv("STRATA_TOOLS_PYTHON", os.environ.get("STRATA_TOOLS_PYTHON", sys.executable))
    assert (images._package_folder("sklearn") / "datasets" / "images" / "china.jpg").is_file()
    monkeypatch.setenv("STRATA_TOOLS_PYTHON", "/nowhere/bin/python")
    with pytest.raises(Problem, match="which this Python cannot import"):
        images._package_folder("sklearn")


HANDED_OVER = """
import torch
from torch import nn

class OneDict(nn.Module):
    def forward(self, batch):
        return batch["ids"] * batch["mask"]

class ByName(nn.Module):
    def forward(self, *, ids):
        return ids * 2

class Both(nn.Module):
    def forward(self, ids, *, mask):
        return ids * mask

def as_keywords():
    return OneDict(), {"ids": torch.ones(2, 3), "mask": torch.ones(2, 3)}

def as_dict():
    return OneDict(), ({"ids": torch.ones(2, 3)},)

def by_place():
    return ByName(), torch.ones(2, 3)

def both():
    return Both(), ((torch.ones(2, 3),), {"mask": torch.ones(2, 3)})

def lazy():
    return nn.Sequential(nn.LazyLinear(3)), torch.ones(2, 3)

def half():
    return nn.Linear(3, 2).half().eval(), torch.ones(2, 3, dtype=torch.float16)
"""


@pytest.fixture
def handed_over(tmp_path):
    path = tmp_path / "handed_over.py"
    path.write_text(HANDED_OVER, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("function", "what", "hint"),
    [
        ("as_keywords", "unexpected keyword argument", "if 'batch' is a dictionary, strata hands"),
        ("as_dict", "is of type dict, not a tensor", "takes them one by one"),
        (
            "by_place",
            "does not run on its inputs",
            "forward takes ids by name: return (module, {'i",
        ),
        ("lazy", "1 modules of .* have no shape yet .the first: 0.", "call the network once"),
    ],
)
def test_how_a_network_takes_its_inputs_is_advised(function, what, hint, handed_over, tmp_path):
    problem = refused({"model": f"{handed_over}:{function}"}, tmp_path)
    assert re.search(what, problem.what) and hint in problem.hint, (problem.what, problem.hint)


def test_inputs_by_place_and_by_name_come_as_tuple_and_dictionary(handed_over, tmp_path):
    capture({"model": f"{handed_over}:both"}, tmp_path / "bundle", lambda _text: None)
    inputs = json.loads((tmp_path / "bundle" / "bundle.json").read_text())["inputs"]
    assert [(i["name"], i["keyword"]) for i in inputs] == [("ids", False), ("mask", True)]


def test_a_network_of_other_types_than_float32_is_said_to_be(handed_over):
    note = build_model(f"{handed_over}:half").note
    assert note == "2 of its 2 parameters are float16, which fp32 leaves as they are"
