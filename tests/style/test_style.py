# SPDX-License-Identifier: Apache-2.0
"""The form of all sources, by the programs that requirements/test.in pins and Debian's shellcheck:
pyproject.toml,
.clang-format and .editorconfig say what is wanted. What fails says which command fixes it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
NOT_OURS = {".git", ".venv", ".cache", ".pytest_cache", "build", "__pycache__"}  # .gitignore
CPP = {".cpp", ".hpp", ".h", ".cu"}
TEXT = CPP | {
    ".py",
    ".sh",
    ".md",
    ".json",
    ".toml",
    ".txt",
    ".in",
    ".yaml",
    ".cmake",
    ".js",
    ".css",
    ".def",
    ".ini",
}


def sources() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - NOT_OURS)
        yield from (Path(folder, name) for name in sorted(names))


def starts_a_shell(file: Path) -> bool:
    with file.open("rb") as opened:
        return re.match(rb"#!\S*/(env )?(ba)?sh\s", opened.readline(80)) is not None


def passes(command: list[str | Path], fix: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{(done.stdout + done.stderr)[-4000:]}\nwhat to do: {fix}"


def test_functions_in_python_have_at_most_sixty_lines():
    """Not those of tests and benchmarks."""
    too_long = []
    for folder in ("levels", "models", "sdk", "setup", "src", "tools"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    if lines > 60:
                        too_long.append(f"{file.relative_to(ROOT)}:{node.lineno} {lines} lines")
    assert not too_long


def test_python_passes_ruff():
    passes(
        [PROGRAMS / "ruff", "check", "--output-format", "concise"],
        ".venv/bin/ruff check --fix, then by hand what is left",
    )


def test_python_is_formatted():
    passes([PROGRAMS / "ruff", "format", "--check"], ".venv/bin/ruff format")


def test_python_of_the_sdk_the_capture_set_up_and_benchmarks_has_right_types():
    passes([PROGRAMS / "mypy", "--no-error-summary"], "fix what it says; .venv/bin/mypy repeats it")


@pytest.mark.parametrize(
    "folders", [["src"], ["runtime", "sdk", "levels", "bench"], ["tests"]], ids=" ".join
)
def test_cpp_is_formatted(folders):
    files = [
        file
        for file in sources()
        if file.suffix in CPP and file.relative_to(ROOT).parts[0] in folders
    ]
    assert files
    passes(
        [PROGRAMS / "clang-format", "--dry-run", "-Werror", "--ferror-limit=1", *files],
        f"git ls-files {' '.join(folders)} | grep -E '\\.(cpp|hpp|h|cu)$' | xargs .venv/bin/clang-format -i",
    )


def test_no_cpp_lies_where_its_form_is_not_checked():
    assert {file.relative_to(ROOT).parts[0] for file in sources() if file.suffix in CPP} == {
        "bench",
        "levels",
        "runtime",
        "sdk",
        "src",
        "tests",
    }


def test_shell_scripts_pass_shellcheck():
    if shutil.which("shellcheck") is None:
        pytest.skip("the program shellcheck is missing")
    scripts = [file for file in sources() if file.suffix in ("", ".sh") and starts_a_shell(file)]
    sourced = [file for file in sources() if file.suffix == ".sh" and file not in scripts]
    assert {"strata", "test", "setup/setup.sh", "tests/fuzz/run"} <= {
        str(file.relative_to(ROOT)) for file in scripts
    }
    fix = "fix what it says, or say above the line why it does not hold there"
    passes(["shellcheck", "-x", *scripts], fix)
    # variables that another of them, or the script, sets or reads
    passes(["shellcheck", "-x", "-s", "bash", "-e", "SC2034,SC2154", *sourced], fix)


@pytest.mark.parametrize("language", ["python", "c++"])
def test_a_new_level_is_written_in_this_form(language, tmp_path):
    name = "level_with_the_longest_name_that_is_good"
    built = [
        ROOT / "build/release/strata",
        "level",
        "new",
        name,
        "--language",
        language,
        "--into",
        tmp_path,
    ]
    subprocess.run(
        built,
        env=os.environ | {"STRATA_ROOT": str(ROOT)},
        check=True,
        capture_output=True,
        timeout=60,
    )
    *prose, command = (tmp_path / name / "README.md").read_text("utf-8").splitlines()
    assert [line for line in prose if len(line) > 100] == [] and "level check" in command
    if language == "python":
        config = ["--config", ROOT / "pyproject.toml"]
        passes(
            [PROGRAMS / "ruff", "check", *config, tmp_path / name],
            "fix src/level/skeleton.cpp",
        )
        passes(
            [PROGRAMS / "ruff", "format", "--check", *config, tmp_path / name],
            "fix src/level/skeleton.cpp",
        )
    else:
        form = f"--style=file:{ROOT / '.clang-format'}"
        passes(
            [
                PROGRAMS / "clang-format",
                "--dry-run",
                "-Werror",
                form,
                tmp_path / name / f"level_{name}.cpp",
            ],
            "fix src/level/skeleton.cpp",
        )


def test_texts_end_with_a_newline_and_have_no_space_at_the_end_of_a_line():
    wrong = []
    for file in sources():
        if file.suffix in TEXT and ROOT / "tests/fuzz/corpus" not in file.parents:
            text = file.read_bytes()
            if text and (not text.endswith(b"\n") or re.search(rb"[ \t\r]\n", text)):
                wrong.append(str(file.relative_to(ROOT)))
    assert not wrong
