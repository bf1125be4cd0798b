# SPDX-License-Identifier: Apache-2.0
"""The launcher ./strata: when it sets up, and what. It runs in a tree of fakes: nothing is
downloaded or compiled here."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

import pytest
from commands import ROOT, executable, installer_calls, run


@pytest.fixture
def tree(tmp_path):
    """A strata whose program prints its arguments and environment, but says what a call needs as
    the built one does, and whose set-up only writes down that it was asked."""
    root = tmp_path / "with space"
    (root / "setup").mkdir(parents=True)
    shutil.copy(ROOT / "strata", root)
    shutil.copy(ROOT / "setup/launch.sh", root / "setup")
    for file in (
        "src/cli/main.cpp",
        "src/capture/case.py",
        "runtime/kit/direct.cpp",
        "levels/eager/level.py",
        "levels/libtorch/CMakeLists.txt",
        "sdk/cpp/CMakeLists.txt",
        "requirements/base.txt",
        "cmake/StrataTorch.cmake",
        "CMakeLists.txt",
        "CMakePresets.json",
        ".venv/lib/torch-2.15.0.dist-info/METADATA",
    ):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("")
    executable(root / ".venv/bin/python", "#!/bin/sh\n")
    executable(
        root / "setup/setup.sh",
        f"""#!/usr/bin/env bash
built='{ROOT}/build/release/strata'
"""
        """root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
printf '%s|' "$@" >>"$root/asked"; echo >>"$root/asked"
mkdir -p "$root/build/setup" "$root/build/release" "$root/build/env-x"
printf '#!/bin/sh\\n[ "$1" != --needs ] || exec "'"$built"'" "$@"\\nfor a; do echo "argument:$a"; done; env | grep ^STRATA_; printf "%%s" "$STRATA_ENVIRONMENTS"\\n' >"$root/build/release/strata"
chmod +x "$root/build/release/strata"
ready="$root/build/setup/ready-$1-${2//\\//%}"
printf 'STRATA_PYTHON=%q\\nSTRATA_TOOLS_PYTHON=%q\\nSTRATA_LEVEL_BUILD=%q\\nSTRATA_OVERLAY=\\ntorch_witness=%q\\nbuilt_programs=%q\\n' \\
  "${2:-$root/.venv/bin/python}" "$root/.venv/bin/python" "$root/build/env-x" "$root/.venv/lib/torch-2.15.0.dist-info" "${*:3}" >"$ready"
""",
    )
    # everything is older than the first set-up, whatever the resolution of the file system's clock
    for path in root.rglob("*"):
        os.utime(path, (time.time() - 100, time.time() - 100))
    return root


def calls_for_levels(tree: pathlib.Path) -> list[str]:
    """What was set up besides the program, which the first call of all gets ready before."""
    first, *others = installer_calls(tree)
    assert first == "program||"
    return others


def touch_later(path: pathlib.Path) -> None:
    path.touch()
    os.utime(path, (time.time() + 100, time.time() + 100))


def test_hands_arguments_on_unchanged_from_a_path_with_spaces(tree, tmp_path):
    result = run([tree / "strata", "show", "a b", "", "*"], cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[:4] == [
        "argument:show",
        "argument:a b",
        "argument:",
        "argument:*",
    ]
    assert f"STRATA_ROOT={tree}" in result.stdout


def test_sets_up_once_and_not_again_while_nothing_changes(tree):
    for _ in range(3):
        assert run([tree / "strata", "compare", "resnet50"]).returncode == 0
    assert calls_for_levels(tree) == ["levels||"]


@pytest.mark.parametrize(
    "file, again",
    [
        ("src/cli/main.cpp", ["program||", "levels||"]),
        ("runtime/kit/direct.cpp", ["program||", "levels||"]),
        ("CMakeLists.txt", ["program||", "levels||"]),
        ("requirements/base.txt", ["levels||"]),
        ("levels/libtorch/CMakeLists.txt", ["levels||"]),
        ("setup/launch.sh", ["program||", "levels||"]),
    ],
)
def test_sets_up_again_what_a_newer_source_is_part_of(tree, file, again):
    run([tree / "strata", "compare", "x"])
    touch_later(tree / file)
    run([tree / "strata", "compare", "x"])
    assert installer_calls(tree) == ["program||", "levels||", *again]


def test_sets_up_again_when_a_source_was_deleted(tree):
    run([tree / "strata", "--version"])
    (tree / "src/cli/main.cpp").unlink()
    touch_later(tree / "src/cli")
    run([tree / "strata", "--version"])
    assert len(installer_calls(tree)) == 2


def test_does_not_set_up_again_for_python_sources_or_their_caches(tree):
    run([tree / "strata", "compare", "x"])
    (tree / "src/capture/__pycache__").mkdir()
    touch_later(tree / "src/capture/__pycache__")
    touch_later(tree / "src/capture")
    touch_later(tree / "src/capture/case.py")
    touch_later(tree / "levels/eager/level.py")
    run([tree / "strata", "compare", "x"])
    assert calls_for_levels(tree) == ["levels||"]


@pytest.mark.parametrize("folder", [".venv/lib", "build/env-x"])
def test_sets_up_again_when_pytorch_or_the_level_binaries_are_gone(tree, folder):
    run([tree / "strata", "compare", "x"])
    shutil.rmtree(tree / folder)
    run([tree / "strata", "compare", "x"])
    assert calls_for_levels(tree) == ["levels||", "levels||"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor"],
        ["list", "levels"],
        ["show", "1"],
        ["report"],
        ["--help"],
        ["compare", "--help"],
        ["--version"],
        [],
        ["level", "new", "x"],
        ["export-data", "1"],
        ["compare", "x", "--levels", ""],
        ["compare", "x", "--levels="],
        # what the program refuses
        ["compare", "x", "--levels", "no_such_level,["],
        ["compare", "x", "--no-such-option"],
        ["export", "x"],
        ["run", "no such suite"],
    ],
)
def test_what_only_reads_does_not_ask_for_pytorch(tree, arguments):
    run([tree / "strata", *arguments])
    assert installer_calls(tree) == ["program||"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "resnet50"],
        ["graph", "resnet50"],
        ["generate", "resnet50", "-o", "x"],
        ["export", "resnet50", "--level", "eager", "-o", "x"],
        ["pack", "-o", "x"],
        ["level", "check", "x"],
        ["level", "install", "x"],
        ["doctor", "--calibrate"],
        ["run", "SUITE"],
        ["engine"],
    ],
)
def test_what_measures_asks_for_the_levels(tree, arguments):
    (tree / "levels/eager/level.json").write_text(json.dumps(level_json("eager", ["{python}"])))
    words = [word.replace("SUITE", suite_of(tree)) for word in arguments]
    run([tree / "strata", *words])
    assert calls_for_levels(tree) == ["levels||"]


def suite_of(tree: pathlib.Path, device: str = "cpu") -> str:
    """A suite of one comparison of eager and onednn, as far as they are there."""
    levels = [
        name for name in ("eager", "onednn") if (tree / "levels" / name / "level.json").exists()
    ]
    suite = tree / "small.toml"
    suite.write_text(
        f'title = "small"\n[[entry]]\nverb = "compare"\nmodel = "x"\ndevice = "{device}"\nlevels = {json.dumps(levels)}\n'
    )
    return str(suite)


def level_json(name: str, start: list[str], **more) -> dict:
    return {
        "id": name,
        "title": name,
        "rank": 1,
        "language": "c++",
        "api": 2,
        "devices": ["cpu"],
        "modes": ["infer"],
        "precisions": ["fp32"],
        "start": start,
        "environment": True,
        "needs": [],
        "peer": False,
        "harness": False,
        "default": "as it is",
        "variants": {"contiguous": {"title": "in another layout"}},
    } | more


LEVELS = {
    "eager": (["{python}"], [], ["cpu", "cuda"]),
    "libtorch": (["{build}/level_libtorch"], ["{build}/strata_generate_libtorch"], ["cpu", "cuda"]),
    "onednn": (["{build}/level_onednn"], [], ["cpu"]),
    "cudnn": (["{build}/level_cudnn"], [], ["cuda"]),
}


@pytest.fixture
def tree_with_levels(tree):
    for name, (start, prepare, devices) in LEVELS.items():
        (tree / "levels" / name).mkdir(exist_ok=True)
        (tree / "levels" / name / "level.json").write_text(
            json.dumps(level_json(name, start, devices=devices, prepare=prepare))
        )
    return tree


@pytest.mark.parametrize(
    "arguments, programs",
    [
        (["compare", "x", "--levels", "eager"], ""),
        (["compare", "x", "--levels=onednn@contiguous,eager"], "level_onednn"),
        (["compare", "x"], "level_libtorch|strata_generate_libtorch|level_onednn"),
        (["run", "SUITE"], "level_onednn"),
        (
            ["compare", "x", "--device", "cuda"],
            "level_cudnn|level_libtorch|strata_generate_libtorch|strata_for_cuda",
        ),
        (["engine"], "level_libtorch|strata_generate_libtorch|level_onednn"),
        (["level", "check", "cudnn"], "level_cudnn"),
        (
            ["export", "x", "--level", "libtorch", "-o", "y"],
            "level_libtorch|strata_generate_libtorch",
        ),
        (["pack", "-o", "y", "--levels", "onednn@contiguous"], "level_onednn"),
        (["pack", "-o", "y"], "level_libtorch|strata_generate_libtorch|level_onednn"),
        (["graph", "x"], ""),
        (["generate", "x", "-o", "y"], ""),
        (["doctor", "--calibrate"], ""),
    ],
)
def test_only_the_programs_of_the_levels_that_a_call_runs_are_built(
    tree_with_levels, arguments, programs
):
    words = [word.replace("SUITE", suite_of(tree_with_levels)) for word in arguments]
    assert run([tree_with_levels / "strata", *words]).returncode == 0
    (call,) = calls_for_levels(tree_with_levels)
    assert call.startswith("levels||")
    assert sorted(call.removeprefix("levels||").split("|")) == sorted(
        f"{programs}|".split("|")
    ) or (call == "levels||" and not programs)


@pytest.mark.skipif(pathlib.Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_entries_of_a_suite_for_a_device_that_is_not_there_need_nothing(tree_with_levels):
    run([tree_with_levels / "strata", "run", suite_of(tree_with_levels, "cuda")])
    assert calls_for_levels(tree_with_levels) == ["levels||"]


def test_a_level_that_an_earlier_call_did_without_is_built_when_a_call_runs_it(tree_with_levels):
    for levels in ("eager,onednn", "onednn", "eager", "onednn,libtorch"):
        assert (
            run([tree_with_levels / "strata", "compare", "x", "--levels", levels]).returncode == 0
        )
    assert calls_for_levels(tree_with_levels) == [
        "levels||level_onednn|",
        "levels||level_libtorch|strata_generate_libtorch|level_onednn|",
    ]


def test_the_users_python_is_found_in_any_place_and_form(tree, tmp_path):
    python = executable(tmp_path / "my env/bin/python", "#!/bin/sh\n")
    calls = [
        ([tree / "strata", "compare", "x", "--python", python], {}),
        ([tree / "strata", "compare", "--python=" + str(python), "x"], {}),
        ([tree / "strata", "compare", "x"], {"STRATA_PYTHON": str(python)}),
        ([tree / "strata", "compare", "x", "--python", tmp_path / "my env"], {}),
        ([tree / "strata", "compare", "x", "--python", "my env/bin/python"], {}),
    ]
    for call, environment in calls:
        assert f"STRATA_PYTHON={python}" in run(call, cwd=tmp_path, **environment).stdout
    assert calls_for_levels(tree) == [f"levels|{python}|"]  # the second to fifth call found it done


@pytest.fixture
def two(tmp_path):
    return [
        executable(tmp_path / name / "bin/python", "#!/bin/sh\necho 42\n")
        for name in ("my old", "new")
    ]


def test_every_environment_is_set_up_with_the_programs_that_use_its_pytorch_and_handed_on(
    tree_with_levels, tmp_path, two
):
    tree, (old, new) = tree_with_levels, two
    onednn = tree / "levels/onednn/level.json"
    onednn.write_text(json.dumps(json.loads(onednn.read_text()) | {"environment": False}))
    call = [
        tree / "strata",
        "compare",
        "x",
        "--levels",
        "libtorch,onednn",
        "--env",
        f"old={tmp_path / 'my old'}",
        f"--env=new={new}",
    ]
    for _ in range(2):  # the second finds all of it done
        result = run(call, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert sorted(calls_for_levels(tree)) == [
            f"levels|{old}|level_libtorch|strata_generate_libtorch|level_onednn|",
            f"levels|{new}|level_libtorch|strata_generate_libtorch|",
        ]
        assert f"STRATA_PYTHON={old}\n" in result.stdout and "STRATA_NAMED_BY" not in result.stdout
        assert (
            f"old\t{old}\t{tree}/build/env-x\t\n" in result.stdout
            and f"new\t{new}\t{tree}/build/env-x\t\n" in result.stdout
        )


def test_strata_s_own_python_is_one_of_several(tree_with_levels, two):
    tree = tree_with_levels
    run(
        [
            tree / "strata",
            "compare",
            "x",
            "--levels",
            "eager",
            "--env",
            f"own={tree}/.venv",
            "--env",
            f"new={two[1]}",
        ]
    )
    assert calls_for_levels(tree) == [f"levels|{two[1]}|", "levels||"]


@pytest.mark.parametrize(
    "words",
    [
        ["--env", "new"],
        ["--env", "New=NEW"],
        ["--env", "new=/no/such/python"],
        ["--env=new=/bin/true"],
        ["--env", "new=NEW", "--python", "OLD"],
        ["--env="],
        ["--env", "new=NEW", "--env", "new=OLD"],
        ["--env", "a=NEW", "--env", "b=NEW"],
    ],
)
def test_environments_that_the_program_refuses_are_not_set_up(tree, two, words):
    words = [word.replace("NEW", str(two[1])).replace("OLD", str(two[0])) for word in words]
    run([tree / "strata", "compare", "x", *words])
    assert installer_calls(tree) == ["program||"]


def test_stratas_own_python_named_by_hand_is_its_own(tree):
    run([tree / "strata", "compare", "x", "--python", tree / ".venv/bin/python"])
    assert calls_for_levels(tree) == ["levels||"]


def test_a_failed_set_up_ends_the_call_with_its_exit_code(tree):
    executable(tree / "setup/setup.sh", "#!/bin/sh\nexit 3\n")
    assert run([tree / "strata", "compare", "x"]).returncode == 3


@pytest.mark.skipif(not (ROOT / "build/release/strata").exists(), reason="the program is not built")
def test_a_second_start_costs_less_than_a_fifth_of_a_second():
    def seconds(command):
        times = []
        for _ in range(7):
            begin = time.perf_counter()
            assert run(command).returncode == 0
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    assert run([ROOT / "strata", "--version"]).returncode == 0
    assert (
        seconds([ROOT / "strata", "--version"])
        - seconds([ROOT / "build/release/strata", "--version"])
        < 0.2
    )


@pytest.mark.skipif(not (ROOT / "build/release/strata").exists(), reason="the program is not built")
def test_two_set_ups_at_once_wait_for_each_other():
    command = ["bash", str(ROOT / "setup/setup.sh"), "program"]
    both = [
        subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        for _ in range(2)
    ]
    assert [process.communicate(timeout=120) and process.returncode for process in both] == [0, 0]
