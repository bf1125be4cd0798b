# SPDX-License-Identifier: Apache-2.0
"""assemble.py OUT BUILD STEPS DATA...: lays the pack for a machine without a network as the folder
OUT. BUILD holds the programs of the levels, built for the PyTorch that the target has; STEPS is the
file that says what OUT/run does; DATA are folders of data sets. Needs patchelf.

    OUT/run       what is started there        OUT/bin    programs, which find their libraries by
    OUT/steps.py  what it does                            OUT/lib and OUT/target, a link that run
    OUT/tree      strata's own files                      makes to the target's Python packages
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEVELS = ("aoti", "cudnn", "libtorch", "null_cpp", "static", "torchscript")
PROGRAMS = ("strata_generate", "strata_generate_libtorch", "kernels_on_device", "cudnn_plans")
ARCHIVES = ("static/libstrata_kit_cuda.a", "cudnn/libstrata_kernels.a")
# of the tracked files; tests for those that run on a device
TREE = (
    "bench/gpu",
    "examples",
    "levels",
    "models",
    "pyproject.toml",
    "runtime",
    "sdk/python",
    "src/capture",
    "src/evaluation",
    "suites",
    "tests/levels",
    "tests/preloaded",
    "tests/pytest.ini",
)
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
# of the target: its loader, C and C++ library, compiler's and NVIDIA's libraries, PyTorch's
FROM_TARGET = re.compile(
    r"(ld-linux-x86-64|lib(c|m|dl|rt|util|pthread|gcc_s|stdc\+\+|gomp|cud[a-z]*|cupti|cublas[A-Za-z]*"
    r"|cufft|curand|cusolver|cusparse[A-Za-z]*|cufile|nv[-a-zA-Z_]*|nccl|torch[a-z_]*|c10[a-z_]*|shm))"
    r"(-[0-9a-f]+)?\.so"
)
NEWEST_GLIBC = (2, 35)
NVIDIA_LIBRARIES = (
    "cu13/lib/libcudart.so.13",
    "cudnn/lib/libcudnn.so.9",
    "cu13/lib/libcublasLt.so.13",
    "cu13/lib/libnvrtc.so.13",
)
FOLDERS_OF_TARGET = (
    "torch/lib",
    "nvidia/cu13/lib",
    "nvidia/cudnn/lib",
    "nvidia/nccl/lib",
    "nvidia/cusparselt/lib",
    "nvidia/nvshmem/lib",
)


def output_of(*words: str | Path) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def needed(program: Path) -> list[str]:
    return re.findall(r"NEEDED.*\[(.+)\]", output_of("readelf", "-d", program))


def own_libraries(program: Path) -> dict[str, Path]:
    """What the program needs, by itself or by another library, that the target need not have."""
    found = {}
    for name, path in re.findall(r"(\S+) => (/\S+)", output_of("ldd", program)):
        if not FROM_TARGET.match(name):
            found[name] = Path(path)
    return found


def check_glibc(program: Path) -> None:
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", output_of("objdump", "-T", program))
    newest = max((int(major), int(minor)) for major, minor in versions)
    if newest > NEWEST_GLIBC:
        raise SystemExit(f"{program} needs glibc {newest[0]}.{newest[1]}, the pack promises 2.35")


def lay_program(program: Path, out: Path) -> dict[str, Path]:
    """The program in OUT/bin, stripped, with its search path; returns the libraries it brings."""
    check_glibc(program)
    there = out / "bin" / program.name
    if program != there:
        shutil.copy2(program, there)
    places = ["$ORIGIN/../lib", *(f"$ORIGIN/../target/{folder}" for folder in FOLDERS_OF_TARGET)]
    # DT_RPATH: libraries that the target's libraries need in turn are found by it, too
    subprocess.run(["strip", there], check=True)
    subprocess.run(
        ["patchelf", "--force-rpath", "--set-rpath", ":".join(places), there], check=True
    )
    return own_libraries(program)


def lay_kit(out: Path, build: Path) -> None:
    """The kit of generated programs as one library: the target's compiler compiles only what calls
    it, and shares no inline function with it. (Archives of GCC 12 linked by GCC 13 gave programs
    that crashed in their first convolution.)"""
    wheels = Path(
        re.findall(
            r"cuda_linked=.*\|(/.*)/cu13/lib/libcudart",
            (build / "strata_generate.built_with").read_text(),
        )[0]
    )
    library = out / "bin" / "libstrata_kit_cuda.so"
    subprocess.run(
        [
            *("g++", "-shared", "-o", library, "-Wl,--whole-archive"),
            *(build / archive for archive in ARCHIVES),
            *("-Wl,--no-whole-archive", "-fopenmp", "-Wl,-Bsymbolic"),
            *(wheels / name for name in NVIDIA_LIBRARIES),
            "-ldl",
        ],
        check=True,
    )
    lay_program(library, out)


def lay_tree(out: Path) -> None:
    listed = output_of(
        "git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "--", *TREE
    )
    for name in listed.splitlines():
        source = ROOT / name
        if not source.is_file():
            continue
        (out / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, out / "tree" / name)


def lay_packages(out: Path) -> None:
    """What the target's Python need not have: of a page's figures the script, and pytest, for tests
    alone."""
    packages = next(ROOT.glob(".venv/lib/python3*/site-packages"))
    script = packages / "plotly" / "package_data" / "plotly.min.js"
    (out / "overlay" / "plotly" / "package_data").mkdir(parents=True)
    shutil.copy2(script, out / "overlay" / "plotly" / "package_data")
    for name in TEST_PACKAGES:
        no_caches = shutil.ignore_patterns("__pycache__")
        shutil.copytree(packages / name, out / "test-packages" / name, ignore=no_caches)
    shutil.copy2(packages / "py.py", out / "test-packages")
    for lexer in (out / "test-packages" / "pygments" / "lexers").iterdir():
        if lexer.name not in LEXERS:
            lexer.unlink()


def assemble(out: Path, build: Path, steps: Path, data: list[Path]) -> None:
    shutil.rmtree(out, ignore_errors=True)
    for folder in ("bin", "lib", "data"):
        (out / folder).mkdir(parents=True)
    libraries: dict[str, Path] = {}
    for program in [
        ROOT / "build" / "release" / "strata",
        *(build / f"level_{level}" for level in LEVELS),
        *(build / program for program in PROGRAMS),
    ]:
        libraries |= lay_program(program, out)
    for name, path in libraries.items():
        shutil.copy2(path.resolve(), out / "lib" / name)
        check_glibc(out / "lib" / name)
        subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", out / "lib" / name], check=True)
    lay_kit(out, build)
    lay_tree(out)
    lay_packages(out)
    for place in data:
        shutil.copytree(place, out / "data" / place.name)
    shutil.copy2(Path(__file__).parent / "run.py", out / "run")
    (out / "run").chmod(0o755)
    shutil.copy2(steps, out / "steps.py")
    commit = output_of("git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=10").strip()
    (out / "commit").write_text(commit + "\n")


def main() -> None:
    out, build, steps, *data = (Path(word).resolve() for word in sys.argv[1:])
    assemble(out, build, steps, data)
    bytes_of = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {bytes_of / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
