# SPDX-License-Identifier: Apache-2.0
"""assemble.py OUT: the pack that `strata pack --device cuda` makes, with what a first run on a GPU
takes beside it, as the folder OUT. make has built the programs, and says in STRATA_... where.

    OUT/run_steps.py  what is started there      OUT/test-packages  pytest
    OUT/steps.py   what it does               OUT/tree/tests     the tests that run on a device
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from stratabench.pack.__main__ import bytes_of, size  # noqa: E402
from stratabench.pack.facts import Refused, numbers  # noqa: E402
from stratabench.pack.lay import Level, Order, copy, lay  # noqa: E402

LEVELS = ("aoti", "compile", "cudnn", "eager", "libtorch", "null_cpp", "static", "torchscript")
CHECKS = ("kernels_on_device", "cudnn_plans")
TREE = ("bench/gpu", "pyproject.toml", "tests/levels", "tests/preloaded", "tests/pytest.ini")
TEST_PACKAGES = (
    "pytest",
    "_pytest",
    "pluggy",
    "pygments",
    "iniconfig",
    "packaging",
    "execnet",
    "xdist",
)
LEXERS = ("__init__.py", "_mapping.py", "diff.py", "python.py")  # of pygments, for pytest
NEWEST_GLIBC = "2.35"  # of the machine that it is for


def level(name: str) -> Level:
    folder, build = ROOT / "levels" / name, "{build}/"
    about = json.loads((folder / "level.json").read_text())
    words = [*about["start"], *about.get("prepare", ())]
    programs = [word.removeprefix(build) for word in words if word.startswith(build)]
    return Level(name, folder, tuple(about["needs"]), tuple(programs))


def order(out: Path) -> Order:
    return Order(
        output=out,
        device="cuda",
        target={},
        named=True,
        levels=tuple(map(level, LEVELS)),
        driver=ROOT / "build/release/strata",
        root=ROOT,
        python=os.environ["STRATA_PYTHON"],
        level_build=Path(os.environ["STRATA_LEVEL_BUILD"]),
        overlay=os.environ.get("STRATA_OVERLAY", ""),
    )


def lay_tests(out: Path) -> None:
    for name in TREE:
        copy(ROOT / name, out / "tree" / name)
    packages = next(ROOT.glob(".venv/lib/python3*/site-packages"))
    for name in (*TEST_PACKAGES, "py.py"):
        copy(packages / name, out / "test-packages" / name)
    for lexer in (out / "test-packages/pygments/lexers").iterdir():
        if lexer.name not in LEXERS:
            lexer.unlink()


def main() -> None:
    out = Path(sys.argv[1]).resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    try:
        pack = lay(out, order(out), CHECKS)
    except Refused as refused:
        sys.exit(str(refused))
    if numbers(pack.glibc) > numbers(NEWEST_GLIBC):
        sys.exit(f"{out} needs glibc {pack.glibc}, the machine that it is for has {NEWEST_GLIBC}")
    lay_tests(out)
    for name in ("run_steps.py", "steps.py"):
        shutil.copy2(ROOT / "bench/gpu" / name, out)
    (out / "run_steps.py").chmod(0o755)
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    commit = subprocess.run(describe, check=True, capture_output=True, text=True).stdout
    (out / "commit").write_text(commit)
    print(f"{out}: {size(bytes_of(out))}")


if __name__ == "__main__":
    main()
