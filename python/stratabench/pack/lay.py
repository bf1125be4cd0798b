# SPDX-License-Identifier: Apache-2.0
"""Lays a pack as a folder:

run        what is typed on the other side        lib        libraries that programs need
pack.json  what it was made for                   fallback   the compiler's, where they lack
bin        the driver, the levels' programs       overlay    Python modules, where they lack
tree       strata's own files                     python     what `run` is made of
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from stratabench.launcher import interpreter
from stratabench.pack import elf
from stratabench.pack.facts import (
    Facts,
    Refused,
    facts_of,
    instructions,
    machine,
    numbers,
    public,
)

PACKAGE = Path(__file__).resolve().parents[1]
# of strata's own tree, beside the folders of the levels
TREE = (
    *("LICENSE", "examples", "models", "runtime", "sdk/python", "suites"),
    *("src/capture", "src/evaluation", "src/graph/recorded"),
)
MODULES = ("numpy", "safetensors")  # that the overlay holds
# whose code PyTorch's compiler writes and compiles there
COMPILED_BY_PYTORCH = ("aoti", "compile")


@dataclass(frozen=True)
class Level:
    id: str
    folder: Path
    needs: tuple[str, ...]  # Python modules
    programs: tuple[str, ...]  # the first is the one that is started


@dataclass(frozen=True)
class Order:
    """What the driver asks for (src/engine/pack.hpp)."""

    output: Path
    device: str
    target: dict[str, str]  # versions of torch and python that are expected
    named: bool  # whether somebody named the levels
    levels: tuple[Level, ...]
    driver: Path
    root: Path
    python: str
    level_build: Path
    overlay: str

    @classmethod
    def of(cls, told: dict[str, Any]) -> Order:
        request, place = told["request"], told["installation"]
        levels = tuple(
            Level(each["id"], Path(each["folder"]), tuple(each["needs"]), tuple(each["programs"]))
            for each in told["levels"]
        )
        return cls(
            output=Path(request["output"]),
            device=request.get("device", "cpu"),
            target=request.get("for", {}),
            named="levels" in request,
            levels=levels,
            driver=Path(place["driver"]),
            root=Path(place["root"]),
            python=interpreter(place["python"]),
            level_build=Path(place["level_build"]),
            overlay=place["overlay"],
        )

    @property
    def modules(self) -> list[str]:
        needs = {need for level in self.levels for need in level.needs}
        return sorted((needs | set(MODULES)) - {"torch"})


@dataclass
class Pack:
    """What has been laid in `folder`."""

    folder: Path
    levels: list[Level]
    left_out: dict[str, str]
    facts: Facts
    libraries: dict[str, Path] = field(default_factory=dict)
    programs: dict[str, dict[str, bool]] = field(default_factory=dict)
    native: bool = False  # code compiled for this machine's processor is in it
    modules: dict[str, dict[str, Any]] = field(default_factory=dict)
    glibc: str = ""


def check_target(order: Order, facts: Facts) -> None:
    """Whether the interpreter is of the versions that --for names: of "2.11.0" any "+cu130"."""
    for name, wanted in order.target.items():
        got = facts.torch if name == "torch" else facts.python
        parts = wanted.split(".")
        fits = (
            got == wanted or public(got) == wanted
            if name == "torch"
            else got.split(".")[: len(parts)] == parts
        )
        if not fits:
            raise Refused(
                f"--for: {facts.path} has {name} {got or '(none)'}, not {wanted}",
                "--python PATH with that version, or another --for",
            )


def built_with(program: Path) -> dict[str, str]:
    """What a program that compiles on the target asks for, as levels/CMakeLists.txt wrote it."""
    file = program.with_name(program.name + ".built_with")
    lines = file.read_text().splitlines() if file.exists() else []
    return dict(line.split("=", 1) for line in lines if "=" in line)


def why_not_built(order: Order, level: Level) -> str:
    """Empty: it is."""
    for name in level.programs:
        program = order.level_build / name
        if not program.exists():
            about = order.level_build / f"{level.programs[0]}.missing"
            reason = about.read_text().splitlines()[0] if about.exists() else ""
            return reason or f"its program {name} is not in {order.level_build}"
        if order.device == "cuda" and (reason := built_with(program).get("cuda_missing", "")):
            return reason
    return ""


def levels_to_pack(order: Order) -> tuple[list[Level], dict[str, str]]:
    """Those that are built, and why the others are not. One that was named has to be."""
    whys = {level.id: why_not_built(order, level) for level in order.levels}
    left_out = {name: why for name, why in whys.items() if why}
    if left_out and order.named:
        name, why = next(iter(left_out.items()))
        raise Refused(f"--levels: {name} is not built here: {why}", f"leave {name} out")
    return [level for level in order.levels if level.id not in left_out], left_out


def folders_of_target(facts: Facts) -> list[str]:
    """Folders of libraries in the target's packages, as far as this interpreter has the same."""
    packages = Path(facts.packages)
    nvidia = sorted(packages.glob("nvidia/*/lib")) if facts.packages else []
    return ["torch/lib", *(str(folder.relative_to(packages)) for folder in nvidia)]


def lay_programs(pack: Pack, programs: dict[str, Path]) -> None:
    folders = folders_of_target(pack.facts)
    for name, program in programs.items():
        pack.libraries |= elf.lay_program(program, pack.folder / "bin" / name, folders)
        pack.programs[name] = {"torch": elf.links_torch(program)}


def lay_kit(pack: Pack, name: str, words: list[str]) -> list[str]:
    """What generated programs are linked with, as one library: the target's compiler compiles only
    what calls it, and shares no inline function with it. (Archives of GCC 12 linked by GCC 13 gave
    programs that crashed in their first convolution.) Gives the words for the target."""
    archives = [word for word in words if word.endswith(".a")]
    libraries = [word for word in words if ".so" in word]
    kit = pack.folder / "bin" / f"lib{name}.so"
    command: list[str | Path] = ["g++", "-shared", "-o", kit, "-Wl,--whole-archive", *archives]
    command += ["-Wl,--no-whole-archive", "-fopenmp", "-Wl,-Bsymbolic", *libraries, "-ldl"]
    # lay_program looks for them by it, and then takes it away
    command += [f"-Wl,-rpath,{Path(library).parent}" for library in libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(
            f"g++ could not link {kit.name}: {done.stderr.strip()[-500:]}", "is there space?", 1
        )
    lay_programs(pack, {kit.name: kit})
    brought = {elf.name_of(Path(library)): Path(library) for library in libraries}
    brought = {name: path for name, path in brought.items() if not elf.FROM_TARGET.match(name)}
    pack.libraries |= brought
    return [f"{{bin}}/{kit.name}", *(f"{{lib}}/{name}" for name in brought)]


def lay_built_with(pack: Pack, order: Order, name: str) -> None:
    """What the program asks for, with places of the target: target.py fills them in."""
    values = built_with(order.level_build / name)
    if not values:
        return
    meant = {"runtime": "{root}/runtime", "compiler": "{compiler}", "torch": "{packages}/torch"}
    values |= {key: value for key, value in meant.items() if key in values}
    for device in ("cpu", "cuda"):
        key = f"{device}_linked"
        words = values.get(key, "").split("|")
        if key not in values:
            continue
        if device == order.device and words != [""]:
            values[key] = "|".join(lay_kit(pack, f"{name}_{device}", words))
            pack.native |= device == "cpu"
        else:
            values[key] = ""
            if device == "cuda":
                values["cuda_missing"] = "this pack was made with --device cpu"
                values["cuda_advice"] = "make one with --device cuda"
    text = "".join(f"{key}={value}\n" for key, value in values.items())
    (pack.folder / "bin" / f"{name}.built_with").write_text(text)


def lay_libraries(pack: Pack) -> None:
    for name, path in pack.libraries.items():
        folder = "fallback" if elf.OF_COMPILER.match(name) else "lib"
        elf.lay_library(path, pack.folder / folder / name)
    for file in (*(pack.folder / "bin").iterdir(), *(pack.folder / "lib").iterdir()):
        pack.glibc = max(pack.glibc, elf.newest_glibc(file), key=numbers)


def copy(source: Path, there: Path, *without: str) -> None:
    there.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, there, ignore=shutil.ignore_patterns("__pycache__", ".*", *without))
    else:
        shutil.copy2(source, there)


def lay_tree(pack: Pack, order: Order) -> None:
    for name in TREE:
        if not (order.root / name).exists():
            raise Refused(
                f"strata's own files lack {order.root / name}",
                "install strata again, or git restore",
            )
        copy(order.root / name, pack.folder / "tree" / name)
    for level in pack.levels:
        copy(level.folder, pack.folder / "tree/levels" / level.id)
    for name in ("__init__.py", "launcher.py", "shipped.py", "kit.py", "pack"):
        copy(PACKAGE / name, pack.folder / "python/stratabench" / name)
    shutil.copy2(PACKAGE / "pack/run", pack.folder / "run")
    (pack.folder / "run").chmod(0o755)


def lay_overlay(pack: Pack, order: Order) -> None:
    """The script of a page's figures, and the modules with what they were installed with: of the
    interpreter, of strata's overlay for it, else of what makes the pack."""
    overlay = pack.folder / "overlay"
    own_minor = ".".join(map(str, sys.version_info[:2]))
    places = [(folder, pack.facts.minor) for folder in search_path(order)]
    places += [(Path(entry), own_minor) for entry in sys.path if entry]
    script = "plotly/package_data/plotly.min.js"
    for folder, _ in places:
        if (folder / script).exists() and not (overlay / script).exists():
            copy(folder / script, overlay / script)
            pack.modules["plotly"] = {"entries": ["plotly"], "python": ""}
    for name in MODULES:
        for folder, minor in places:
            found = next(iter(Distribution.discover(name=name, path=[str(folder)])), None)
            if found is None or name in pack.modules:
                continue
            files = [str(file) for file in found.files or ()]
            entries = sorted({file.split("/")[0] for file in files} - {".."})
            for entry in entries:
                copy(folder / entry, overlay / entry, "tests")
            is_for_one = any(".cpython-" in file for file in files)
            pack.modules[name] = {"entries": entries, "python": minor if is_for_one else ""}


def search_path(order: Order) -> list[Path]:
    ask = "import sys; print(*filter(None, sys.path), sep='\\n')"
    told = subprocess.run([order.python, "-c", ask], capture_output=True, text=True).stdout
    return [Path(folder) for folder in (*told.splitlines(), order.overlay) if folder]


def compiles_there(pack: Pack) -> list[str]:
    """The levels that need a C++ compiler on the target."""
    return [
        level.id
        for level in pack.levels
        if level.id in COMPILED_BY_PYTORCH
        or any((pack.folder / "bin" / f"{name}.built_with").exists() for name in level.programs)
    ]


def describe(pack: Pack, order: Order) -> dict[str, Any]:
    """pack.json."""
    about: dict[str, Any] = {
        "version": 1,
        "machine": machine(),
        "device": order.device,
        "glibc": pack.glibc,
        "python": pack.facts.python,
        "torch": pack.facts.torch,
        "cuda": pack.facts.cuda,
        "levels": {
            level.id: {"programs": level.programs, "needs": level.needs} for level in pack.levels
        },
        "programs": pack.programs,
        "compile_there": compiles_there(pack),
        "instructions": instructions() if pack.native else [],
        "modules": pack.modules,
    }
    files = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for file in sorted((pack.folder / "bin").iterdir()):
        files.update(file.read_bytes())
    return about | {"id": files.hexdigest()[:16]}


def lay(folder: Path, order: Order, more_programs: tuple[str, ...] = ()) -> Pack:
    """The whole pack in the folder, which is empty. `more_programs`: of level_build, beside the
    levels' own."""
    facts = facts_of(order.python, order.modules)
    if not facts.torch:
        raise Refused(
            f"{order.python} has no PyTorch, for which a pack is made", "--python PATH, one with it"
        )
    check_target(order, facts)
    levels, left_out = levels_to_pack(order)
    pack = Pack(folder, levels, left_out, facts)
    for name in ("bin", "lib", "fallback", "overlay"):
        (folder / name).mkdir(parents=True)
    names = dict.fromkeys((*(n for level in levels for n in level.programs), *more_programs))
    lay_programs(
        pack, {"strata": order.driver} | {name: order.level_build / name for name in names}
    )
    for name in names:
        lay_built_with(pack, order, name)
    lay_libraries(pack)
    lay_tree(pack, order)
    lay_overlay(pack, order)
    (folder / "pack.json").write_text(json.dumps(describe(pack, order), indent=1) + "\n")
    return pack
