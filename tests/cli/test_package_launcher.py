# SPDX-License-Identifier: Apache-2.0
"""The command of the Python package: what it asks, what it compiles, and how it becomes the
driver. In a package of fakes: nothing is compiled here."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

import pytest
from commands import executable
from fake_package import DRIVER, TOOL, Package, of


@pytest.fixture
def package(tmp_path):
    return Package(tmp_path)


def test_what_needs_nothing_is_the_drivers_at_once(package):
    package.needs(set_up=False)
    words, variables, said = package.call("show", "a b", "", "*")
    assert words == ["show", "a b", "", "*"] and said == "" and package.asked() == []
    assert variables["STRATA_ROOT"] == str(package.folder / "tree")
    assert variables["STRATA_PYTHON"] == variables["STRATA_TOOLS_PYTHON"] == sys.executable
    assert variables["STRATA_COMMAND"] == "strata" and "STRATA_ENVIRONMENTS" not in variables


def test_programs_that_are_missing_are_compiled_once(package):
    package.needs(of("level_a"))
    _, variables, said = package.call("compare", "x")
    folder = variables["STRATA_LEVEL_BUILD"]
    assert "compiling, once" in said and (Path(folder) / "level_a").exists()
    configured, _, built = package.asked()
    assert f"-B {folder}" in configured and f"-DSTRATA_PYTHON={sys.executable}" in configured
    assert f"-DSTRATA_LIBRARIES={package.folder / 'libraries'}" in configured
    assert built.endswith(" level_a")
    assert package.call("compare", "x")[2] == "" and package.asked() == []
    package.needs(of("level_a", "level_b"))
    package.call("compare", "x")
    assert package.asked()[-1].endswith(" level_b")


def test_another_driver_has_programs_of_its_own(package):
    package.needs(of("level_a"))
    first = package.call("compare", "x")[1]["STRATA_LEVEL_BUILD"]
    executable(package.folder / "bin/strata", DRIVER + "# newer\n")
    assert package.call("compare", "x")[1]["STRATA_LEVEL_BUILD"] != first


def test_without_a_compiler_each_level_says_so_and_the_call_goes_on(package):
    (package.tools / "c++").unlink()
    package.needs(of("level_a"))
    words, variables, _ = package.call("compare", "x")
    assert words == ["compare", "x"] and package.asked() == []
    reason, advice = (
        (Path(variables["STRATA_LEVEL_BUILD"]) / "level_a.missing").read_text().splitlines()
    )
    assert "no C++ compiler" in reason and "g++" in advice
    # and is made when there is one
    executable(package.tools / "c++", TOOL)
    package.call("compare", "x")
    assert package.asked()[-1].endswith(" level_a")


def test_in_a_folder_that_others_may_write_to_nothing_is_compiled_or_run(package):
    package.cache.mkdir()
    package.cache.chmod(0o777)
    package.needs(of("level_a"))
    assert package.call("compare", "x")[2] == "" and package.asked() == []


def test_a_program_that_does_not_compile_is_told_with_the_compilers_words(package):
    package.needs(of("level_a", "level_broken"))
    words, variables, said = package.call("compare", "x")
    folder = Path(variables["STRATA_LEVEL_BUILD"])
    assert words == ["compare", "x"] and "no such thing" in said
    assert "no such thing" in (folder / "FAILED").read_text() and (folder / "level_a").exists()


def test_each_of_several_environments_has_its_own(package, tmp_path):
    other = executable(tmp_path / "other/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    package.needs(
        of("level_a", name="mine", python=sys.executable),
        of("level_b", name="other", python=str(tmp_path / "other")),
    )
    _, variables, _ = package.call("compare", "x")
    lines = [line.split("\t") for line in variables["STRATA_ENVIRONMENTS"].splitlines()]
    assert [line[:2] for line in lines] == [["mine", sys.executable], ["other", str(other)]]
    assert variables["STRATA_LEVEL_BUILD"] == lines[0][2] != lines[1][2]
    assert (Path(lines[1][2]) / "level_b").exists()


@pytest.mark.parametrize("how", ["folder", "name", "variable"])
def test_another_interpreter_is_named_in_any_form(package, tmp_path, how):
    other = executable(tmp_path / "other/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    more = {"PATH": f"{package.tools}{os.pathsep}{other.parent}"} if how == "name" else {}
    if how == "variable":
        more = {"STRATA_PYTHON": str(other)}
    named = {"folder": str(tmp_path / "other"), "name": "python", "variable": ""}[how]
    package.needs(of(python=named))
    assert package.call("compare", "x", **more)[1]["STRATA_PYTHON"] == str(other)


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        ("\x7fELF of another machine", "bin/strata cannot be started: Exec format error"),
        (
            "#!/bin/sh\necho 'libc.so.6: version `GLIBC_2.99 not found' >&2\nexit 1\n",
            "bin/strata does not run here: libc.so.6: version `GLIBC_2.99 not found",
        ),
        ("#!/bin/sh\nkill -ILL $$\n", "bin/strata does not run here: it ended with -4"),
    ],
)
def test_a_driver_that_does_not_run_here_is_told_with_the_loaders_words(package, driver, words):
    executable(package.folder / "bin/strata", driver)
    said = package.refused(3, "compare", "x")
    assert words in said and "try: install the package again, for this machine" in said


def test_a_second_call_waits_for_the_programs_that_a_first_one_makes_and_says_so(package):
    package.needs(of("level_a"))
    folder = Path(package.call("compare", "x")[1]["STRATA_LEVEL_BUILD"])
    with open(folder / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = package.start("compare", "x")
        assert f"another strata makes programs in {folder}; waiting" in second.stderr.readline()
        assert second.poll() is None
    second.communicate()
    assert second.returncode == 0


def test_on_a_file_system_without_locks_the_call_goes_on_and_says_so(package):
    package.before_each_call(
        "import errno, fcntl, os\n"
        "def flock(file, how): raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))\n"
        "fcntl.flock = flock\n"
    )
    package.needs(of("level_a"))
    words, variables, said = package.call("compare", "x")
    folder = Path(variables["STRATA_LEVEL_BUILD"])
    assert f"files in {folder} cannot be locked (No locks available)" in said
    assert "one strata at a time" in said and "STRATA_CACHE" in said
    assert words == ["compare", "x"] and (folder / "level_a").exists()


FULL = """
import errno, os, pathlib, shutil
def full(self, *rest): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
"""


def test_a_disk_that_is_full_is_told_with_the_folder_and_what_to_do(package):
    package.before_each_call(f"{FULL}pathlib.Path.write_bytes = full\n")
    executable(package.folder / "programs/level_a", "#!/bin/sh")
    package.needs(of("level_a"))
    said = package.refused(1, "compare", "x")
    assert f"cannot write the levels' programs to {package.cache}" in said
    assert "No space left on device\n  try: free some space, or set STRATA_CACHE" in said


def test_what_a_full_disk_kept_from_being_compiled_is_compiled_by_the_next_call(package):
    package.before_each_call(
        f"{FULL}used = shutil.disk_usage('/')._replace(free=0)\n"
        "shutil.disk_usage = lambda folder: used\n"
    )
    executable(package.tools / "cmake", "#!/bin/sh\nexit 1\n")
    package.needs(of("level_a"))
    assert "No space left on device" in package.refused(1, "compare", "x")
    package.before_each_call("")
    executable(package.tools / "cmake", TOOL)
    folder = Path(package.call("compare", "x")[1]["STRATA_LEVEL_BUILD"])
    assert (folder / "level_a").exists() and not (folder / "FAILED").exists()


def test_build_tools_that_cannot_be_started_are_told_as_the_levels_reason(package):
    (package.tools / "cmake").unlink()
    package.needs(of("level_a"))
    _, variables, said = package.call("compare", "x")
    reason = (Path(variables["STRATA_LEVEL_BUILD"]) / "FAILED").read_text()
    assert "cannot start cmake: No such file or directory" in reason and reason in said


@pytest.mark.parametrize("place", ["no home", "a file", "under a file"])
def test_where_no_cache_can_be_made_the_driver_says_why(package, tmp_path, place):
    (tmp_path / "file").touch()
    there = {"no home": "", "a file": tmp_path / "file", "under a file": tmp_path / "file/cache"}
    if place == "no home":
        package.before_each_call("import os.path\nos.path.expanduser = lambda path: path\n")
    package.needs(of("level_a"))
    words, _, said = package.call("compare", "x", STRATA_CACHE=str(there[place]))
    assert words == ["compare", "x"] and said == "" and package.asked() == []


@pytest.fixture
def two_pytorch(tmp_path):
    """Folders for PYTHONPATH, each with a PyTorch of the same version."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        (folder / "torch").mkdir(parents=True)
        (folder / "torch/__init__.py").touch()
        (folder / "torch/version.py").write_text("__version__ = '2.15.0'\n")
    return folders


def test_a_pytorch_of_the_same_version_elsewhere_has_programs_of_its_own(package, two_pytorch):
    package.needs(of("level_a"))
    builds = [
        package.call("compare", "x", PYTHONPATH=f"{package.folder.parent}:{folder}")[1]
        for folder in two_pytorch
    ]
    assert builds[0]["STRATA_LEVEL_BUILD"] != builds[1]["STRATA_LEVEL_BUILD"]


def test_which_of_two_pytorch_is_measured_is_said_by_what_measures(package, two_pytorch):
    first, second = two_pytorch
    path = f"{package.folder.parent}:{first}:{second}:{first}"
    package.needs(of("level_a"))
    said = package.call("compare", "x", PYTHONPATH=path)[2]
    assert f"several PyTorch: 2.15.0 is measured, and not 2.15.0 in {second}" in said
    assert said.count("several PyTorch") == 1 and f"in {first}" not in said
    package.needs(of(), set_up=False)
    assert package.call("show", "last", PYTHONPATH=path)[2] == ""
