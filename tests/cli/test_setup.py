# SPDX-License-Identifier: Apache-2.0
"""The set-up steps, without downloads: packages, environments, builds, and the locks of what is
installed."""

from __future__ import annotations

import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

import pytest
from commands import ROOT, executable, installer_calls, run

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
    message = b""
    try:
        while part := os.read(ours, 65536):
            message += part
    except OSError:  # the end of a terminal
        pass
    os.close(ours)
    return subprocess.CompletedProcess(script, process.returncode, "", message.decode())


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
    assert installer_calls(tmp_path) == []


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 3), ("\n", 3)])
def test_at_a_terminal_sudo_is_used_only_after_a_yes(tmp_path, typed, code):
    result = packages_as_nobody(tmp_path, typed)
    assert result.returncode == code and "Run that now? [y/N]" in result.stderr
    assert any("apt-get" in line for line in installer_calls(tmp_path)) == (code == 0)


def test_without_a_terminal_sudo_is_used_where_a_variable_allows_it(tmp_path):
    assert packages_as_nobody(tmp_path, STRATA_SUDO="1").returncode == 0
    assert any("apt-get" in line and "install" in line for line in installer_calls(tmp_path))


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
        len(installer_calls(tmp_path)) == 1
        and "--no-deps --require-hashes" in installer_calls(tmp_path)[0]
        and str(tmp_path / ".venv/cudnn-frontend") in installer_calls(tmp_path)[0]
    )
    (tmp_path / "asked").unlink()
    shutil.rmtree(tmp_path / ".venv/cudnn-frontend")
    assert shell(
        tmp_path, "set_up_cudnn_frontend", **where | {"CUDA_HOME": "/nowhere"}
    ).returncode == 0 and not installer_calls(tmp_path)
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
    tests = shell(tmp_path, f"need_all_levels '{folder}'; echo went on")
    assert tests.returncode == 3 and "went on" not in tests.stdout, "tests of an older program"
    assert "fatal error: no such header" in tests.stderr
    (tmp_path / "levels/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\n"
    )
    assert shell(tmp_path, f"build_levels /usr/bin/python3 '{folder}' all").returncode == 0
    assert not (folder / "FAILED").exists()
    assert shell(tmp_path, f"need_all_levels '{folder}'").returncode == 0


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


def test_programs_without_pytorch_are_compiled_once_for_all_environments(tmp_path):
    for name, uses in (("static", "false"), ("libtorch", "true")):
        (tmp_path / "levels" / name).mkdir(parents=True)
        (tmp_path / "levels" / name / "level.json").write_text(
            f'{{"id": "{name}", "start": ["{{build}}/level_{name}"], "devices": ["cpu"], "environment": {uses}}}'
        )
    (tmp_path / "source").write_text("one")
    (tmp_path / "levels/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\nforeach(one static libtorch)\n"
        "add_custom_command(OUTPUT level_${one} DEPENDS ${CMAKE_SOURCE_DIR}/../source\n"
        "COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/../source level_${one}\n"
        "COMMAND ${CMAKE_COMMAND} -E touch level_${one}.built_with)\n"
        "add_custom_target(${one} ALL DEPENDS level_${one})\nendforeach()\n"
    )
    old, new = tmp_path / "build/env-old", tmp_path / "build/env-new"

    def build(folder: pathlib.Path) -> str:
        script = f"build_levels /usr/bin/python3 '{folder}' level_static level_libtorch"
        done = shell(tmp_path, script)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "for all environments" not in build(old)
    assert "for all environments: level_static" in build(new)
    for name in ("level_static", "level_static.built_with"):
        assert (new / name).samefile(old / name)
    assert not (new / "level_libtorch").samefile(old / "level_libtorch")
    (tmp_path / "source").write_text("two")
    build(new)
    assert (new / "level_static").read_text() == "two", "it follows the sources"
    shutil.rmtree(old)
    assert "for all environments" not in build(new), "whoever had them first is gone"
    assert (new / "level_static").read_text() == "two"


def test_programs_that_an_earlier_call_built_are_found_while_they_are_there(tmp_path):
    (tmp_path / "build/setup").mkdir(parents=True)
    assert shell(tmp_path, "built_for_levels").stdout == ""
    folder = tmp_path / "folder with" / "programs"
    (tmp_path / "build/setup/ready-levels-").write_text(f"STRATA_LEVEL_BUILD='{folder}'\n")
    assert shell(tmp_path, "built_for_levels").stdout == ""
    folder.mkdir(parents=True)
    assert shell(tmp_path, "built_for_levels").stdout == str(folder)


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
