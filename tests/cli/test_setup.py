# SPDX-License-Identifier: Apache-2.0
"""The launchers and the set-up steps. What needs no real environment runs in a tree of fakes:
nothing is downloaded or compiled here."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import pty
import re
import shutil
import statistics
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command, cwd=None, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("STRATA_")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


def executable(path: pathlib.Path, text: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def tree(tmp_path):
    """A strata whose program prints its arguments and environment, and whose set-up only writes
    down that it was asked."""
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
        """#!/usr/bin/env bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
printf '%s|' "$@" >>"$root/asked"; echo >>"$root/asked"
mkdir -p "$root/build/setup" "$root/build/release" "$root/build/env-x"
printf '#!/bin/sh\\nfor a; do echo "argument:$a"; done; env | grep ^STRATA_; printf "%%s" "$STRATA_ENVIRONMENTS"\\n' >"$root/build/release/strata"
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


def asked(root: pathlib.Path) -> list[str]:
    return (root / "asked").read_text().splitlines() if (root / "asked").exists() else []


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
    assert asked(tree) == ["levels||"]


@pytest.mark.parametrize(
    "file",
    [
        "src/cli/main.cpp",
        "runtime/kit/direct.cpp",
        "CMakeLists.txt",
        "requirements/base.txt",
        "levels/libtorch/CMakeLists.txt",
        "setup/launch.sh",
    ],
)
def test_sets_up_again_when_a_source_is_newer(tree, file):
    run([tree / "strata", "compare", "x"])
    touch_later(tree / file)
    run([tree / "strata", "compare", "x"])
    assert len(asked(tree)) == 2


def test_sets_up_again_when_a_source_was_deleted(tree):
    run([tree / "strata", "--version"])
    (tree / "src/cli/main.cpp").unlink()
    touch_later(tree / "src/cli")
    run([tree / "strata", "--version"])
    assert len(asked(tree)) == 2


def test_does_not_set_up_again_for_python_sources_or_their_caches(tree):
    run([tree / "strata", "compare", "x"])
    (tree / "src/capture/__pycache__").mkdir()
    touch_later(tree / "src/capture/__pycache__")
    touch_later(tree / "src/capture")
    touch_later(tree / "src/capture/case.py")
    touch_later(tree / "levels/eager/level.py")
    run([tree / "strata", "compare", "x"])
    assert len(asked(tree)) == 1


@pytest.mark.parametrize("folder", [".venv/lib", "build/env-x"])
def test_sets_up_again_when_pytorch_or_the_level_binaries_are_gone(tree, folder):
    run([tree / "strata", "compare", "x"])
    shutil.rmtree(tree / folder)
    run([tree / "strata", "compare", "x"])
    assert len(asked(tree)) == 2


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
    ],
)
def test_what_only_reads_does_not_ask_for_pytorch(tree, arguments):
    run([tree / "strata", *arguments])
    assert asked(tree) == ["program||"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "resnet50"],
        ["graph", "resnet50"],
        ["generate", "resnet50", "-o", "x"],
        ["export", "resnet50"],
        ["level", "check", "x"],
        ["level", "install", "x"],
        ["doctor", "--calibrate"],
        ["run", "x"],
    ],
)
def test_what_measures_asks_for_the_levels(tree, arguments):
    run([tree / "strata", *arguments])
    assert asked(tree) == ["levels||"]


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
            json.dumps({"id": name, "devices": devices, "start": start, "prepare": prepare})
        )
    return tree


@pytest.mark.parametrize(
    "arguments, programs",
    [
        (["compare", "x", "--levels", "eager"], ""),
        (["compare", "x", "--levels=onednn@contiguous,eager"], "level_onednn"),
        (["compare", "x"], "level_libtorch|strata_generate_libtorch|level_onednn"),
        # whose levels are known when its file is read
        (
            ["run", "x"],
            "level_libtorch|strata_generate_libtorch|level_onednn",
        ),
        (
            ["compare", "x", "--device", "cuda"],
            "level_cudnn|level_libtorch|strata_generate_libtorch|strata_for_cuda",
        ),
        (["compare", "x", "--levels", "cudnn"], ""),  # has no processor
        (["compare", "x", "--levels", "no_such_level,["], ""),
        (["level", "check", "cudnn"], "level_cudnn"),
        (
            ["export", "x", "--level", "libtorch", "-o", "y"],
            "level_libtorch|strata_generate_libtorch",
        ),
        (["graph", "x"], ""),
        (["generate", "x", "-o", "y"], ""),
        (["doctor", "--calibrate"], ""),
    ],
)
def test_only_the_programs_of_the_levels_that_a_call_runs_are_built(
    tree_with_levels, arguments, programs
):
    assert run([tree_with_levels / "strata", *arguments]).returncode == 0
    assert asked(tree_with_levels) == [f"levels||{programs}|" if programs else "levels||"]


@pytest.mark.parametrize(
    ("suite", "code"), [("mnist-epoch", 0), ("digits", 1), ("no such suite", 1)]
)
def test_a_suite_that_names_cuda_is_found_out_from_its_file(suite, code):
    assert (
        run(
            ["bash", "-c", f"root={ROOT}; source {ROOT}/setup/launch.sh; names_cuda run '{suite}'"]
        ).returncode
        == code
    )


def test_a_level_that_an_earlier_call_did_without_is_built_when_a_call_runs_it(tree_with_levels):
    for levels in ("eager,onednn", "onednn", "eager", "onednn,libtorch"):
        assert (
            run([tree_with_levels / "strata", "compare", "x", "--levels", levels]).returncode == 0
        )
    assert asked(tree_with_levels) == [
        "levels||level_onednn|",
        "levels||level_onednn|level_libtorch|strata_generate_libtorch|",
    ]


def test_the_users_python_is_found_in_any_place_and_form(tree, tmp_path):
    python = executable(tmp_path / "my env/bin/python", "#!/bin/sh\n")
    calls = [
        ([tree / "strata", "compare", "x", "--python", python], {}),
        ([tree / "strata", "--python=" + str(python), "compare", "x"], {}),
        ([tree / "strata", "compare", "x"], {"STRATA_PYTHON": str(python)}),
        ([tree / "strata", "compare", "--python", tmp_path / "my env"], {}),
        ([tree / "strata", "compare", "--python", "my env/bin/python"], {}),
    ]
    for call, environment in calls:
        assert f"STRATA_PYTHON={python}" in run(call, cwd=tmp_path, **environment).stdout
    assert asked(tree) == [f"levels|{python}|"]  # the second to fifth call found it done


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
        assert sorted(asked(tree)) == [
            f"levels|{old}|level_libtorch|strata_generate_libtorch|level_onednn|",
            f"levels|{new}|level_libtorch|strata_generate_libtorch|",
        ]
        assert f"STRATA_PYTHON={old}\n" in result.stdout and "STRATA_NAMED_BY" not in result.stdout
        assert (
            f"old\t{old}\t{tree}/build/env-x\t\n" in result.stdout
            and f"new\t{new}\t{tree}/build/env-x\t\n" in result.stdout
        )


def test_strata_s_own_python_is_one_of_several(tree, two):
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
    assert asked(tree) == [f"levels|{two[1]}|", "levels||"]


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
    assert asked(tree) == ["program||"]


def test_stratas_own_python_named_by_hand_is_its_own(tree):
    run([tree / "strata", "compare", "x", "--python", tree / ".venv/bin/python"])
    assert asked(tree) == ["levels||"]


def test_a_failed_set_up_ends_the_call_with_its_exit_code(tree):
    executable(tree / "setup/setup.sh", "#!/bin/sh\nexit 3\n")
    assert run([tree / "strata", "compare", "x"]).returncode == 3


# The steps, each sourced alone into a shell with a root of its own.


def shell(root: pathlib.Path, script: str, **environment):
    for name in ("setup", "requirements"):
        if not (root / name).exists():
            shutil.copytree(ROOT / name, root / name)
    return run(
        [
            "bash",
            "-c",
            f"set -euo pipefail; root='{root}'; for f in common packages python build; do source \"$root/setup/$f.sh\"; done; {script}",
        ],
        **environment,
    )


def test_a_failing_step_names_itself_shows_its_log_and_what_to_do(tmp_path):
    result = shell(
        tmp_path,
        "step compiler 'compiling' bash -c 'echo first; echo the reason; exit 7' || fail_with_log compiler 'it broke' 'fix it'",
    )
    assert result.returncode == 3
    for expected in (
        "set-up step 'compiler' failed: it broke",
        "| the reason",
        "what to do: fix it",
        "build/setup/compiler.log",
        "goes on from there",
    ):
        assert expected in result.stderr
    assert result.stdout == ""


def test_a_step_without_network_says_so(tmp_path):
    result = shell(
        tmp_path,
        "make_venv",
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_RETRIES="0",
        PIP_FIND_LINKS="",
        PIP_CONFIG_FILE="/dev/null",
    )
    assert result.returncode == 3
    assert "package index could not be reached" in result.stderr


def test_too_little_disk_is_said_before_anything_is_downloaded(tmp_path):
    result = shell(tmp_path, 'need_disk python "$root" 99999999')
    assert result.returncode == 3
    assert re.search(r"needs 99999999 MB .* where \d+ MB are free", result.stderr)


def packages_as_nobody(tmp_path, terminal: str | None = None, **environment):
    """set_up_packages without root, on a system that lacks all but one package and has a sudo that
    notes what it is asked; `terminal`: what a person types."""
    fakes = tmp_path / "bin"
    executable(fakes / "dpkg-query", "#!/bin/sh\necho 'installed libfmt-dev'\n")
    executable(fakes / "sudo", f"#!/bin/sh\necho \"$@\" >>'{tmp_path}/asked'\n")
    (tmp_path / "asked").touch()
    (tmp_path / "asked").chmod(0o666)
    (tmp_path / "build/setup").mkdir(parents=True)
    (tmp_path / "build/setup").chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != pathlib.Path("/tmp"):
            folder.chmod(0o755)
    as_nobody = ["setpriv", "--reuid=65534", "--clear-groups"] if os.getuid() == 0 else []
    for name in ("setup", "requirements"):
        shutil.copytree(ROOT / name, tmp_path / name)
    script = f"root='{tmp_path}'; source $root/setup/common.sh; source $root/setup/packages.sh; set_up_packages program"
    environment["PATH"] = f"{fakes}:{os.environ['PATH']}"
    if terminal is None:
        return run([*as_nobody, "bash", "-c", script], **environment)
    ours, theirs = pty.openpty()
    os.write(ours, terminal.encode())
    clean = {k: v for k, v in os.environ.items() if not k.startswith("STRATA_")} | environment
    with subprocess.Popen(
        [*as_nobody, "bash", "-c", script],
        env=clean,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        process.wait(60)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # the end of a terminal
        pass
    os.close(ours)
    return subprocess.CompletedProcess(script, process.returncode, "", said.decode())


def test_missing_packages_without_root_are_one_command_to_run_and_nothing_runs_as_root(tmp_path):
    result = packages_as_nobody(tmp_path)
    assert result.returncode == 3
    command = [line for line in result.stderr.splitlines() if "apt-get install" in line]
    assert len(command) == 1 and command[0].strip().startswith("sudo apt-get install -y ")
    assert (
        "nlohmann-json3-dev" in command[0]
        and "libfmt-dev" not in command[0]
        and "chromium" not in command[0]
    )
    assert asked(tmp_path) == []


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 3), ("\n", 3)])
def test_at_a_terminal_sudo_is_used_only_after_a_yes(tmp_path, typed, code):
    result = packages_as_nobody(tmp_path, typed)
    assert result.returncode == code and "Run that now? [y/N]" in result.stderr
    assert any("apt-get" in line for line in asked(tmp_path)) == (code == 0)


def test_without_a_terminal_sudo_is_used_where_a_variable_allows_it(tmp_path):
    assert packages_as_nobody(tmp_path, STRATA_SUDO="1").returncode == 0
    assert any("apt-get" in line and "install" in line for line in asked(tmp_path))


def fake_environment(folder: pathlib.Path, torch: str) -> pathlib.Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next((folder / "lib").glob("python3*/site-packages"))
    if torch:
        (site / f"torch-{torch}.dist-info").mkdir()
        (site / f"torch-{torch}.dist-info/METADATA").write_text(
            f"Metadata-Version: 2.1\nName: torch\nVersion: {torch}\n"
        )
    return folder / "bin/python"


@pytest.mark.parametrize(
    "torch, says",
    [("", "has no PyTorch"), ("2.10.1+cpu", "has PyTorch 2.10.1+cpu; 2.11 or newer is needed")],
)
def test_a_python_without_a_usable_pytorch_is_refused_before_any_download(tmp_path, torch, says):
    python = fake_environment(tmp_path / "env", torch)
    result = shell(tmp_path, f"describe_python '{python}'")
    assert result.returncode == 3
    assert says in result.stderr and str(python) in result.stderr and "what to do:" in result.stderr


def test_a_python_with_a_new_pytorch_is_taken_and_what_it_lacks_is_known(tmp_path):
    python = fake_environment(tmp_path / "env", "2.11.0+cu130")
    result = shell(
        tmp_path,
        f"describe_python '{python}'; echo \"$torch_version|$overlay_missing|$has_torchvision|$torch_witness\"",
    )
    assert result.returncode == 0, result.stderr
    version, missing, torchvision, witness = result.stdout.strip().split("|")
    assert (version, missing, torchvision) == (
        "2.11.0+cu130",
        "numpy safetensors onnx onnxscript onnxruntime",
        "0",
    )
    assert pathlib.Path(witness).is_dir()


@pytest.mark.parametrize(
    "path, says",
    [
        ("/does/not/exist", "there is no /does/not/exist"),
        ("/bin/true", "is not a working Python 3"),
        ("/etc/passwd", "cannot be run"),
        ("/tmp", "cannot be run"),
    ],
)
def test_what_is_no_python_is_refused_with_its_path(tmp_path, path, says):
    result = shell(tmp_path, f"describe_python {path}")
    assert result.returncode == 3
    assert says in result.stderr


def test_cudnns_headers_are_installed_once_without_dependencies_where_there_is_nvcc(tmp_path):
    cuda = executable(tmp_path / "cuda/bin/nvcc", "#!/bin/sh\n").parents[1]
    executable(tmp_path / ".venv/bin/python", "#!/bin/sh\n")
    executable(
        tmp_path / ".venv/bin/uv",
        f"#!/bin/sh\n[ \"$1\" = cache ] && echo '{tmp_path}' && exit\necho \"$@\" >>'{tmp_path}/asked'\n",
    )
    where = {"PATH": "/usr/bin:/bin", "CUDA_HOME": str(cuda)}
    for _ in range(2):
        result = shell(tmp_path, "set_up_cudnn_frontend", **where)
        assert result.returncode == 0, result.stderr
    assert (
        len(asked(tmp_path)) == 1
        and "--no-deps --require-hashes" in asked(tmp_path)[0]
        and str(tmp_path / ".venv/cudnn-frontend") in asked(tmp_path)[0]
    )
    (tmp_path / "asked").unlink()
    shutil.rmtree(tmp_path / ".venv/cudnn-frontend")
    assert shell(
        tmp_path, "set_up_cudnn_frontend", **where | {"CUDA_HOME": "/nowhere"}
    ).returncode == 0 and not asked(tmp_path)
    executable(
        tmp_path / ".venv/bin/uv",
        f"#!/bin/sh\n[ \"$1\" = cache ] && echo '{tmp_path}' && exit\nexit 1\n",
    )
    # the other levels need none of it
    result = shell(tmp_path, "set_up_cudnn_frontend; echo went on", **where)
    assert (
        result.returncode == 0
        and "went on" in result.stdout
        and "the level cudnn is unavailable" in result.stderr
    )


def test_a_level_that_does_not_compile_blocks_nothing_and_leaves_the_reason(tmp_path):
    (tmp_path / "levels").mkdir()
    (tmp_path / "levels/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\n"
        "add_custom_target(good ALL COMMAND ${CMAKE_COMMAND} -E touch good_built)\n"
        "add_custom_target(bad ALL COMMAND echo 'fatal error: no such header' COMMAND false)\n"
    )
    folder = tmp_path / "build/env-1"
    result = shell(tmp_path, f"build_levels /usr/bin/python3 '{folder}' all; echo went on")
    assert result.returncode == 0 and "went on" in result.stdout, result.stderr
    assert "unavailable" in result.stderr
    assert (folder / "good_built").exists()
    assert "fatal error: no such header" in (folder / "FAILED").read_text()
    (tmp_path / "levels/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\n"
    )
    assert shell(tmp_path, f"build_levels /usr/bin/python3 '{folder}' all").returncode == 0
    assert not (folder / "FAILED").exists()


def test_programs_that_the_build_left_out_are_no_targets_and_none_at_all_costs_nothing(tmp_path):
    (tmp_path / "levels").mkdir()
    (tmp_path / "levels/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\nforeach(one a b)\n"
        "add_custom_target(level_${one} ALL COMMAND ${CMAKE_COMMAND} -E touch built_${one})\nendforeach()\n"
    )
    folder = tmp_path / "build/env-1"
    assert shell(tmp_path, f"build_levels /usr/bin/python3 '{folder}'").returncode == 0
    assert folder.is_dir() and not (folder / "build.ninja").exists()
    result = shell(
        tmp_path, f"build_levels /usr/bin/python3 '{folder}' level_b level_left_out level_b"
    )
    assert result.returncode == 0, result.stderr
    assert (
        (folder / "built_b").exists()
        and not (folder / "built_a").exists()
        and not (folder / "FAILED").exists()
    )


def test_a_level_that_was_left_out_is_built_once_its_library_is_there(tmp_path):
    (tmp_path / "levels").mkdir()
    (tmp_path / "levels/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\nif(EXISTS ${CMAKE_SOURCE_DIR}/library)\n"
        "file(REMOVE ${CMAKE_BINARY_DIR}/level_x.missing)\nadd_custom_target(x ALL COMMAND ${CMAKE_COMMAND} -E touch level_x)\n"
        'else()\nfile(WRITE ${CMAKE_BINARY_DIR}/level_x.missing "no library")\nendif()\n'
    )
    folder = tmp_path / "build/env-1"
    build = f"build_levels /usr/bin/python3 '{folder}' all"
    assert shell(tmp_path, build).returncode == 0
    assert (folder / "level_x.missing").exists() and not (folder / "FAILED").exists()
    (tmp_path / "levels/library").touch()
    assert shell(tmp_path, build).returncode == 0
    assert (folder / "level_x").exists()


def test_a_build_folder_of_another_place_is_made_anew(tmp_path):
    (tmp_path / "build/x").mkdir(parents=True)
    (tmp_path / "build/x/CMakeCache.txt").write_text(
        "CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else\n"
    )
    assert shell(tmp_path, f"drop_foreign_build '{tmp_path}/build/x' '{tmp_path}'").returncode == 0
    assert not (tmp_path / "build/x").exists()


# The locks.


def pins(name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in (ROOT / f"requirements/{name}.txt").read_text().splitlines():
        if match := re.match(r"([\w.-]+)==([\w.+!]+)", line):
            found.setdefault(match[1], set()).add(match[2])
    return found


@pytest.mark.parametrize("name", ["uv", "base", "torch", "test", "overlay", "compat", "cuda"])
def test_every_requirement_is_pinned_and_hashed_and_names_no_host(name):
    text = (ROOT / f"requirements/{name}.txt").read_text()
    assert "://" not in text and "index-url" not in text
    assert not re.search(r";\s*(and|or)\b|\b(and|or)\s*\\\n", text)  # halves of markers
    entries = re.split(r"\n(?=\S)", re.sub(r"\A(#.*\n)+", "", text.strip()))
    assert entries and all(
        "==" in entry.splitlines()[0] and "--hash=sha256:" in entry for entry in entries
    )
    assert re.search(
        rf"^{name} [1-9]\d* [1-9]\d*$", (ROOT / "requirements/sizes").read_text(), re.MULTILINE
    )


def test_the_sets_of_one_environment_agree_on_every_version():
    together = [pins(name) for name in ("base", "torch", "test")]
    for first in together:
        for second in together:
            for package in first.keys() & second.keys():
                assert first[package] == second[package], package


# ./test itself.


def load_runner():
    if str(ROOT / "setup") not in sys.path:
        sys.path.insert(0, str(ROOT / "setup"))
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "setup/run_tests.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_tests"] = module
    spec.loader.exec_module(module)
    return module


def run_tests(tmp_path, body: str, *options: str):
    runner = tmp_path / "setup/run_tests.py"
    runner.parent.mkdir(exist_ok=True)
    for name in ("run_tests.py", "skips.py"):
        shutil.copy(ROOT / "setup" / name, runner.parent)
    (tmp_path / "tests/cli").mkdir(parents=True, exist_ok=True)
    (tmp_path / "tests/cli/test_x.py").write_text(body)
    return run(
        [sys.executable, runner, "--set-up-seconds", "5", *options, "cli"],
        PYTHONDONTWRITEBYTECODE="1",
    )


def test_closes_with_the_counts_and_names_what_was_skipped(tmp_path):
    result = run_tests(
        tmp_path,
        "import pytest\ndef test_a(): pass\ndef test_b(): assert False\ndef test_c(): pytest.skip('no file system can be mounted here without rights')\n",
    )
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "1 passed, 1 failed, 1 skipped"
    assert "no file system" in result.stdout and "set-up took 5 s" in result.stdout


def test_a_test_that_is_skipped_although_this_machine_can_run_it_is_a_failure(tmp_path):
    result = run_tests(
        tmp_path,
        "import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip('the level static is not built')\n",
    )
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"
    assert (
        "test_b was skipped, and nothing here says that it cannot run: the level static is not built"
        in result.stdout.replace("Skipped: ", "")
    )


def test_every_reason_to_skip_is_looked_up_on_the_machine(monkeypatch):
    load_runner()
    import skips

    monkeypatch.setattr(skips, "has_cuda_device", lambda: True)
    assert not skips.may_skip("there is no CUDA driver")
    monkeypatch.setattr(skips, "has_cuda_device", lambda: False)
    assert skips.may_skip("there is no CUDA driver")
    monkeypatch.setattr(skips, "has_level_environments", lambda: True)
    assert not skips.may_skip("the environment of ncnn is not installed")
    monkeypatch.setattr(skips, "has_level_environments", lambda: False)
    assert skips.may_skip("the environment of ncnn is not installed")
    monkeypatch.setattr(skips, "processor_has", lambda *_: True)
    assert not skips.may_skip(
        "this processor has no AVX-512, without which static has no bfloat16 (asked of /proc/cpuinfo)"
    ) and not skips.may_skip("for no reason that is known")


def test_a_run_that_was_stopped_goes_on_until_a_source_changes(tmp_path):
    passes, fails = "def test_a(): pass\n", "def test_a(): assert False\n"
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("build\n.pytest_cache\n")
    assert run_tests(tmp_path, fails, "--resume").returncode == 1
    # what failed is not finished
    assert "by an earlier run" not in run_tests(tmp_path, fails, "--resume").stdout
    assert "by an earlier run" not in run_tests(tmp_path, passes, "--resume").stdout
    again = run_tests(tmp_path, passes, "--resume")
    assert (
        "by an earlier run of the same sources" in again.stdout
        and again.stdout.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"
    )
    assert run_tests(tmp_path, fails, "--resume").returncode == 1


def test_a_broken_test_file_is_a_failure(tmp_path):
    result = run_tests(tmp_path, "import there_is_no_such_module\n")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_fails_when_no_test_ran(tmp_path):
    result = run_tests(tmp_path, "")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "0 passed, 0 failed, 0 skipped"


def test_a_runner_that_dies_without_a_report_is_a_failure(tmp_path):
    result = run_tests(tmp_path, "import os\ndef test_a(): os.kill(os.getpid(), 9)\n")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_counts_a_cpp_test_program_by_its_report(tmp_path):
    module = load_runner()
    report = (
        '{"testsuites":[{"testsuite":[{"status":"RUN","result":"COMPLETED"},{"status":"RUN","result":"COMPLETED","failures":[{}]},'
        '{"status":"RUN","result":"SKIPPED"},{"status":"NOTRUN","result":"SUPPRESSED"}]}]}'
    )
    # its tests lie in the first shard
    program = executable(
        tmp_path / "p",
        f"#!/bin/sh\n[ $GTEST_SHARD_INDEX = 0 ] || exit 0\nfor a; do case $a in --gtest_output=json:*) echo '{report}' >\"${{a#--gtest_output=json:}}\";; esac; done; exit 1\n",
    )
    module.ROOT = tmp_path
    assert str(module.Gtest(program, tmp_path).counts()) == "1 passed, 1 failed, 1 skipped"
    silent = executable(tmp_path / "q", "#!/bin/sh\nexit 139\n")
    assert str(module.Gtest(silent, tmp_path).counts()) == "0 passed, 1 failed, 0 skipped"


def test_an_unknown_part_is_refused():
    result = run([ROOT / "test", "unti"])
    assert (
        result.returncode == 2
        and "fast, style, unit, cli, levels, report, all and compat" in result.stderr
    )


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


# strata doctor.


def test_doctor_gives_every_limit_a_reason_and_every_missing_thing_a_remedy(strata):
    done = strata.run("doctor", "--format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["schema"] == "strata.doctor/1"
    assert result["machine"]["cores"] >= 1
    checks = {(check["group"], check["name"]): check for check in result["checks"]}
    for group, name in [
        ("machine", "cores"),
        ("machine", "caches"),
        ("machine", "instruction sets"),
        ("machine", "governor"),
        ("machine", "SMT"),
        ("machine", "steal"),
        ("machine", "other load"),
        ("machine", "memory"),
        ("machine", "GPU"),
        ("software", "PyTorch"),
        ("levels", "eager"),
        ("levels", "libtorch"),
        ("set-up", "disk"),
        ("set-up", "still to do"),
    ]:
        assert (group, name) in checks
    for check in result["checks"]:
        assert check["standing"] in ("ok", "limited", "missing")
        assert check["found"] if check["standing"] == "ok" else check["reason"], check
        assert check["remedy"] or check["standing"] != "missing", check


def test_doctor_says_which_level_is_unavailable_and_why(strata):
    strata.level(
        "lonely", json_fields={"needs": ["no_such_module"], "start": ["{tools_python}", "x"]}
    )
    strata.level("broken_build", json_fields={"start": ["{build}/level_broken"]})
    build = strata.folder / "build"
    build.mkdir()
    (build / "FAILED").write_text("torch.h: no such file\n")
    strata.level("left_out", json_fields={"start": ["{build}/level_left_out"]})
    (build / "level_left_out.missing").write_text("the library is not in /there\ninstall it\n")
    done = strata.run("doctor", STRATA_LEVEL_BUILD=str(build))
    assert done.returncode == 0, done.stderr
    assert re.search(r"lonely +missing +Python module no_such_module is missing", done.stdout)
    assert (
        re.search(r"left_out +missing +the library is not in /there", done.stdout)
        and "install it" in done.stdout
    )
    assert re.search(
        r"broken_build +missing +it could not be compiled: torch.h: no such file", done.stdout
    )


def test_doctor_works_without_any_environment(strata, tmp_path):
    done = strata.run(
        "doctor",
        STRATA_PYTHON=str(tmp_path / "nothing/python"),
        STRATA_TOOLS_PYTHON=str(tmp_path / "nothing/python"),
    )
    assert done.returncode == 0, done.stderr
    assert "is not set up" in done.stdout


def test_doctor_refuses_an_unknown_format(strata):
    assert strata.run("doctor", "--format", "jsno").returncode == 2
