# SPDX-License-Identifier: Apache-2.0
"""`strata export` with a fake level: what the folder holds, whose certificate, what is refused, and
that nothing half-written stays."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FAKE, MODEL, PROGRAM, ROOT
from running_program import small_disk
from shipping_level import OPTIONS, export, read, shipping_level


def left(strata) -> list[str]:
    """What lies in the folder where strata was started, but what the tests put there."""
    return sorted(
        p.name
        for p in strata.folder.iterdir()
        if p.name not in ("levels", "data")
        and not p.name.startswith("strata.db")
        and p.name not in ("logs", "reports")
    )


def test_an_interrupt_while_the_artefact_is_made_is_no_fault_of_the_level(strata):
    shipping_level(strata, prepare='echo \'{"progress": "at it"}\'; sleep 600\n')
    process = strata.start("export", MODEL, "--level", "shipped", "-o", "out", *OPTIONS)
    for line in process.stderr:
        if "shipped: at it" in line:
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted: nothing was written" in errors, errors
    assert "could not be made" not in errors and left(strata) == []


def test_an_export_holds_the_artefact_a_program_a_test_that_passes_and_the_certificate_of_the_newest_run(
    strata,
):
    strata.level("right", rank=1)
    shipping_level(strata)
    _, result = strata.compare("right", "shipped", restarts=1)
    done = export(strata)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr and result["run"]["id"] in done.stdout
    certificate, case = read(strata, "certificate.json"), read(strata, "case.json")
    (row,) = [row for row in result["cases"][0]["rows"] if row["level"] == "shipped"]
    assert (
        certificate["schema"],
        certificate["proven"],
        certificate["run"],
        certificate["same_files"],
    ) == ("strata.certificate/1", True, result["run"]["id"], True)
    assert certificate["proof"] == row["proof"] and certificate["proof"]["verdict"] == "equal"
    assert certificate["files"] == {
        "net.bin": hashlib.sha256((strata.folder / "out" / "net.bin").read_bytes()).hexdigest()
    }
    assert (case["id"], case["threads"], case["versions"]["numpy"] != "") == (
        result["cases"][0]["id"],
        1,
        True,
    )
    checked = subprocess.run(
        [sys.executable, "check.py", sys.executable, "serve.py"],
        cwd=strata.folder / "out",
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "equal work on 4 inputs" in checked.stdout
    readme = (strata.folder / "out" / "README.md").read_text(encoding="utf-8")
    assert result["run"]["id"] in readme and "check.py" in readme and "@" not in readme
    assert "it drops NaN: " in readme, "the level answers with numbers to every input"
    assert left(strata) == ["out"]


def test_what_is_exported_may_be_read_by_whom_the_umask_lets_read(strata):
    shipping_level(
        strata, prepare='echo 1.0 > "$4/net.bin"; chmod 600 "$4/net.bin"; echo \'{"ok":true}\'\n'
    )
    before = os.umask(0o027)
    try:
        assert export(strata).returncode == 0
    finally:
        os.umask(before)
    assert (strata.folder / "out" / "net.bin").stat().st_mode & 0o777 == 0o640


def test_the_test_of_an_export_finds_an_artefact_that_was_changed(strata):
    shipping_level(strata)
    assert export(strata).returncode == 0
    # above the bound of a float32 network, below what a person sees
    (strata.folder / "out" / "net.bin").write_text("1.00002", encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "check.py", sys.executable, "serve.py"],
        cwd=strata.folder / "out",
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 1 and "0/output is off by 2e-05" in checked.stdout


def test_without_a_run_the_folder_is_written_with_a_warning_and_the_command_that_proves_it(strata):
    strata.level("eager", rank=1)
    shipping_level(strata)
    done = export(strata)
    assert done.returncode == 0 and "warning: nothing is proven" in done.stderr
    certificate = read(strata, "certificate.json")
    assert certificate["proven"] is False and "proof" not in certificate
    words = shlex.split(certificate["prove_with"])
    proof = strata.run(
        *words[1:],
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--store",
        str(strata.store),
        STRATA_LEVEL_PATH=str(strata.levels),
    )
    assert "shipped" in proof.stdout, proof.stderr
    assert export(strata, "--force").returncode == 0
    assert read(strata, "certificate.json")["proven"] is True


def test_a_newest_run_that_found_the_level_unequal_proves_nothing(strata):
    strata.level("right", rank=1)
    (strata.folder / "data").mkdir()
    # not in the level's folder, whose files name its artefact
    script = strata.folder / "data" / "script.json"
    shipping_level(strata, json_fields={"start": [sys.executable, str(FAKE), str(script)]})
    about = json.loads((strata.levels / "shipped" / "script.json").read_text(encoding="utf-8"))
    script.write_text(json.dumps(about), encoding="utf-8")
    strata.compare("right", "shipped", restarts=1)
    assert export(strata).returncode == 0 and read(strata, "certificate.json")["proven"] is True
    script.write_text(json.dumps(about | {"outputs": {"scale": 1.01}}), encoding="utf-8")
    strata.compare("right", "shipped", restarts=1)
    done = export(strata, "--force")
    assert done.returncode == 0 and "unequal" in done.stderr
    assert read(strata, "certificate.json")["proven"] is False


def test_a_certificate_says_when_the_artefact_was_made_again_after_the_run(strata):
    strata.level("right", rank=1)
    shipping_level(strata)
    strata.compare("right", "shipped", restarts=1)
    assert export(strata).returncode == 0
    program = (
        Path(strata.environment["STRATA_CACHE"])
        / "artefacts"
        / artefact_of(strata)
        / "prepared.json"
    )
    # as if it had been removed and made once more
    os.utime(program, (program.stat().st_mtime + 3600, program.stat().st_mtime + 3600))
    done = export(strata, "--force")
    assert done.returncode == 0 and "made again" in done.stderr
    assert read(strata, "certificate.json")["same_files"] is False


def artefact_of(strata) -> str:
    """The name of the artefact's folder that the newest run measured."""
    with sqlite3.connect(strata.store) as store:
        (info,) = store.execute(
            "SELECT info FROM level_rows WHERE level='shipped' ORDER BY row_id DESC LIMIT 1"
        ).fetchone()
    return json.loads(info)["artefact"]


def test_the_first_screen_ends_with_the_command_that_takes_the_winner_away(strata):
    strata.level(
        "slow", rank=1, samples={"median_ns": 2_000_000, "jitter": 0.01, "seed": 1, "restart": 0.0}
    )
    shipping_level(strata, rank=2)
    _, result = strata.compare("slow", "shipped", restarts=3)
    assert result["cases"][0]["headline"]["level"] == "shipped"
    command = result["cases"][0]["next_command"]
    assert (
        command.startswith("./strata export ")
        and "--level shipped -o tiny_mlp-build-shipped" in command
    )
    done = strata.run(*shlex.split(command)[1:])
    assert done.returncode == 0, done.stderr
    assert read(strata, "certificate.json", "tiny_mlp-build-shipped")["run"] == result["run"]["id"]
    assert command in strata.run("show", "last", "--store", str(strata.store)).stdout


def test_a_winner_without_an_artefact_is_no_reason_to_export(strata):
    strata.level(
        "slow", rank=1, samples={"median_ns": 2_000_000, "jitter": 0.01, "seed": 1, "restart": 0.0}
    )
    strata.level("fast", rank=2)
    _, result = strata.compare("slow", "fast", restarts=3)
    assert result["cases"][0]["headline"]["level"] == "fast"
    assert result["cases"][0]["next_command"].startswith("./strata report ")


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ("shiped", ["unknown level 'shiped'", "did you mean 'shipped'"]),
        (
            "eager",
            ["level eager", "no artefact", "Python module itself", "--level torchscript", "aoti"],
        ),
        ("compile", ["level compile", "no artefact", "--level aoti (Python and guards removed"]),
        (
            "libtorch",
            [
                "level libtorch",
                "./strata generate ",
                "-o tiny_mlp-build-libtorch --target libtorch",
            ],
        ),
        ("static", ["level static", "./strata generate ", "-o tiny_mlp-build-static"]),
        (
            "static@measured",
            [
                "level static@measured",
                "./strata generate ",
                "-o tiny_mlp-build-static --threads 1 --tune",
            ],
        ),
        ("null_cpp", ["it runs no network"]),
        ("bare", ["holds no export/export.json"]),
    ],
)
def test_a_level_that_cannot_be_exported_is_refused_with_what_to_take_instead(strata, level, words):
    shipping_level(strata)
    strata.level("bare", json_fields={"prepare": ["/bin/true"]})
    done = export(strata, level=level)
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert left(strata) == []


def test_the_command_that_is_named_for_a_level_that_is_a_program_writes_it(strata):
    done = export(strata, level="static")
    command = next(line for line in done.stderr.splitlines() if "./strata generate " in line).split(
        "./strata ", 1
    )[1]
    exported = strata.run(*shlex.split(command))
    assert exported.returncode == 0, exported.stderr
    assert (strata.folder / "tiny_mlp-build-static" / "CMakeLists.txt").exists()


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("nowhere/out", ["does not exist", "mkdir -p"]),
        ("file", ["is not a folder"]),
        ("mine", ["not empty", "did not make it", "--force"]),
        ("/proc/out", ["/proc"]),
        ("/", ["not a folder that can be made"]),
    ],
)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_place_that_cannot_be_used_is_refused_before_anything_is_done(strata, to, words, force):
    shipping_level(strata)
    (strata.folder / "file").write_text("mine", encoding="utf-8")
    (strata.folder / "mine").mkdir()
    (strata.folder / "mine" / "note").write_text("mine", encoding="utf-8")
    done = export(strata, *force, to=to, timeout=20)
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert (
        left(strata) == ["file", "mine"]
        and (strata.folder / "mine" / "note").read_text(encoding="utf-8") == "mine"
    )


def test_an_earlier_export_is_replaced_only_when_asked(strata):
    shipping_level(strata)
    (strata.folder / "out").mkdir()  # an empty folder may be filled
    assert export(strata).returncode == 0
    (strata.folder / "out" / "old").write_text("old", encoding="utf-8")
    again = export(strata)
    assert (
        again.returncode == 2 and "an earlier export" in again.stderr and "--force" in again.stderr
    )
    assert (strata.folder / "out" / "old").exists()
    assert export(strata, "--force").returncode == 0
    assert not (strata.folder / "out" / "old").exists() and left(strata) == ["out"]


@pytest.mark.parametrize(
    ("prepare", "code", "words"),
    [
        (
            'echo \'{"ok":false,"code":"unsupported","what":"no such operation: foo","hint":"use bar"}\'; exit 1\n',
            3,
            ["level shipped is unsupported here", "foo", "use bar"],
        ),
        ("echo it broke >&2; exit 7\n", 1, ["could not be made", "it broke"]),
        ("echo '{\"ok\":true}'\n", 1, ["cannot copy", "net.bin"]),
    ],
)
def test_a_level_whose_artefact_cannot_be_had_leaves_nothing(strata, prepare, code, words):
    shipping_level(strata, prepare=prepare)
    done = export(strata)
    assert done.returncode == code, done.stderr
    for word in words:
        assert word in done.stderr
    assert left(strata) == []


def test_a_level_that_is_unavailable_here_is_refused(strata):
    shipping_level(
        strata, json_fields={"needs": ["no_such_module"], "start": ["{tools_python}", "x"]}
    )
    done = export(strata)
    assert (done.returncode, left(strata)) == (3, []) and "no_such_module" in done.stderr


def test_a_recipe_that_lacks_a_field_is_named(strata):
    shipping_level(strata)
    (strata.levels / "shipped" / "export" / "export.json").write_text("{}", encoding="utf-8")
    done = export(strata)
    assert (
        (done.returncode, left(strata)) == (1, [])
        and "export.json" in done.stderr
        and "what" in done.stderr
    )


def test_a_full_disk_leaves_nothing_half_written(strata):
    shipping_level(
        strata, prepare='head -c 3000000 /dev/zero > "$4/net.bin"; echo \'{"ok":true}\'\n'
    )
    disk = strata.folder / "disk"
    disk.mkdir()
    script = '"$@"; code=$?; ls -A "$0"; exit $code'
    words = [
        *small_disk(disk, 1000),
        "sh",
        "-c",
        script,
        str(disk),
        str(PROGRAM),
        "export",
        MODEL,
        "--level",
        "shipped",
        "-o",
        str(disk / "out"),
        *OPTIONS,
    ]
    done = subprocess.run(
        words,
        env=strata.environment,
        cwd=strata.folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (
        done.returncode == 1 and "no space left" in done.stderr and str(disk / "out") in done.stderr
    )
    assert done.stdout == ""


def test_wrong_options_are_refused_as_in_compare(strata):
    shipping_level(strata)
    for more, word in (
        (("--batch", "0"), "--batch 0"),
        (("--input", "1xfoo"), "'foo'"),
        (("--weights", "/nowhere.safetensors"), "no such file"),
        (("--levl", "x"), "did you mean '--level'"),
    ):
        done = export(strata, *more)
        assert done.returncode == 2 and word in done.stderr, done.stderr
    done = strata.run("export", MODEL, "--level", "shipped")
    assert done.returncode == 2 and "--output" in done.stderr
    assert left(strata) == []


def test_every_shipped_recipe_names_files_that_are_there():
    recipes = sorted(ROOT.glob("levels/*/export/export.json"))
    assert [path.parent.parent.name for path in recipes] == [
        "aoti",
        "onnxruntime",
        "openvino",
        "torchscript",
    ]
    for path in recipes:
        recipe = json.loads(path.read_text(encoding="utf-8"))
        for source in recipe.get("files", {}).values():
            assert Path(source.replace("{root}", str(ROOT))).is_file(), source


def test_a_program_that_serves_prints_no_control_characters_of_tensor_names(tmp_path):
    (tmp_path / "case.hpp").write_text(
        '#pragma once\n#include "fields.hpp"\n'
        'inline const Fields kInputs{{"x", "F32", {Extent{1, 1}}}}, kOutputs{{"y\\033[2J", "F32", {Extent{1, 1}}}};\n'
        "inline const std::vector<ArtefactFile> kFiles;\n"
    )
    (tmp_path / "main.cpp").write_text(
        '#include "serve.hpp"\nint main(int argc, char** argv) {\n'
        "  return serve(argc, argv, [](const std::string&) -> Network {\n"
        '    return [](const RawTensors& in, int i) { return std::vector{input_of(in, i, "x")}; };\n'
        "  });\n}\n"
    )
    folders = [f"-I{ROOT / 'runtime' / name}" for name in ("serve", "template", "kit")]
    built = subprocess.run(
        ["g++", "-std=c++20", f"-I{tmp_path}", *folders, "main.cpp", "-o", "serve"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    for name in ("x", "x\x1b]0;owned\x07"):
        head = json.dumps({f"0/{name}": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})
        body = len(head).to_bytes(8, "little") + head.encode() + bytes(4)
        (tmp_path / "in.safetensors").write_bytes(body)
        done = subprocess.run(
            ["./serve", ".", "in.safetensors"], cwd=tmp_path, capture_output=True, text=True
        )
        assert (done.returncode == 0) == (name == "x"), done.stderr
        printed = done.stdout + done.stderr
        assert printed and not {c for c in printed if ord(c) < 32} - {"\n"}, printed
