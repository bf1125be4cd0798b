#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_steps.py [--minutes N] [--out DIR] [--only STEPS] [--device cpu --rehearse]: does the steps
of this pack on this machine and writes what came of them to DIR (default: results, beside this
file): a file of results, a page, the logs, strata's store. Started again it goes on after the last
command that had ended. Nothing is fetched, nothing outside this folder and DIR is changed.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.util
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PACK = Path(__file__).resolve().parent
sys.path.insert(0, str(PACK / "python"))

from stratabench.pack.facts import Refused  # noqa: E402
from stratabench.pack.target import Contents, Environment  # noqa: E402

WORK = PACK / "work"
LONGEST_LOG = 12 << 20  # of all logs together, as they are written


def load_steps() -> Any:
    spec = importlib.util.spec_from_file_location("steps", PACK / "steps.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["steps"] = module
    spec.loader.exec_module(module)
    return module


def versions_of(python: str) -> dict[str, str]:
    """Of what results depend on, and the name of the device."""
    ask = (
        "import importlib.metadata as m, json, torch, platform\n"
        "v = {'python': platform.python_version(), 'torch': torch.__version__}\n"
        "for n in ('numpy', 'safetensors', 'onnx', 'onnxruntime', 'torchvision'):\n"
        "    try: v[n] = m.version(n)\n"
        "    except m.PackageNotFoundError: v[n] = ''\n"
        "v['cuda'] = torch.version.cuda or ''\n"
        "v['device'] = torch.cuda.get_device_name(0) if torch.cuda.is_available() else ''\n"
        "print(json.dumps(v))"
    )
    answer = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    if answer.returncode != 0:
        raise SystemExit(f"{python} has no PyTorch that works: {answer.stderr.strip()[-300:]}")
    return json.loads(answer.stdout.strip().splitlines()[-1])


def own_folders() -> dict[str, str]:
    """Variables by which whatever the steps start writes here alone, and nothing of a person's
    settings is read."""
    for folder in ("cache", "data", "kept", "home", "tmp", "inductor", "triton"):
        (WORK / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    own = {
        "STRATA_CACHE": WORK / "cache",
        "STRATA_DATA": PACK / "data",
        "XDG_DATA_HOME": WORK / "data",
        "XDG_CACHE_HOME": WORK / "home" / ".cache",
        "HOME": WORK / "home",
        "TMPDIR": WORK / "tmp",
        "TORCHINDUCTOR_CACHE_DIR": WORK / "inductor",
        "TRITON_CACHE_DIR": WORK / "triton",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return {name: str(value) for name, value in own.items()}


def programs_for(python: str) -> tuple[Path, Environment]:
    """The driver, and the levels' programs for this interpreter, as `run` makes them ready."""
    try:
        contents = Contents(PACK)
        contents.check_machine()
        return contents.driver(), Environment(contents, "", python)
    except Refused as refused:
        raise SystemExit(str(refused)) from None


def variables(driver: Path, environment: Environment) -> dict[str, str]:
    return os.environ | {
        "STRATA_ROOT": str(PACK / "tree"),
        "STRATA_PYTHON": environment.python,
        "STRATA_TOOLS_PYTHON": environment.python,
        "STRATA_LEVEL_BUILD": str(environment.folder),
        "STRATA_OVERLAY": environment.overlay,
        "STRATA_PROGRAM": str(driver),
        "STRATA_PACK": str(PACK),
    }


class Results:
    """What commands gave, written whenever one has ended."""

    def __init__(self, out: Path) -> None:
        self.out = out
        out.mkdir(parents=True, exist_ok=True)
        self.path = out / "results.json"
        self.all: dict[str, Any] = {"commands": {}}
        with contextlib.suppress(OSError, ValueError):
            self.all = json.loads(self.path.read_text())
        self.logs = WORK / "logs.txt"

    def ended(self, name: str) -> bool:
        return self.all["commands"].get(name, {}).get("ended", False)

    def add(self, name: str, entry: dict[str, Any], log: str) -> None:
        self.all["commands"][name] = entry
        whole = json.dumps(self.all, indent=1)
        self.path.with_suffix(".part").write_text(whole)
        self.path.with_suffix(".part").rename(self.path)
        size = self.logs.stat().st_size if self.logs.exists() else 0
        with self.logs.open("a") as file:
            file.write(f"==== {name}\n{log[: max(0, LONGEST_LOG - size)]}\n")
        self.keep(self.logs, "logs.txt.gz")
        for path in (WORK / "kept").iterdir():
            shutil.copy2(path, self.out)
        store = WORK / "data" / "strata" / "strata.db"
        if store.exists():
            self.keep(store, "strata.db.gz")
        self.write_page()

    def keep(self, path: Path, name: str) -> None:
        with gzip.open(self.out / (name + ".part"), "wb", 6) as file:
            file.write(path.read_bytes())
        (self.out / (name + ".part")).rename(self.out / name)

    def write_page(self) -> None:
        lines = [f"# {self.all.get('title', 'Results')}", ""]
        versions = self.all.get("versions", {})
        lines += [", ".join(f"{name} {value}" for name, value in versions.items() if value), ""]
        lines += [f"- differs: {line}" for line in self.all.get("differences", [])]
        lines += ["", "| command | state | s |", "|---|---|---:|"]
        for name, entry in self.all["commands"].items():
            lines.append(f"| {name} | {entry['state']} | {entry['seconds']:.0f} |")
        for name, entry in self.all["commands"].items():
            if entry.get("page"):
                lines += ["", f"## {name}", "", f"`{entry['command']}`", "", entry["page"]]
        (self.out / "results.md").write_text("\n".join(lines) + "\n")


def run_bounded(
    words: list[str], limit_s: float, env: dict[str, str], out: Path, log: Path
) -> tuple[int | None, float]:
    """Exit status (None: it was ended by the limit) and seconds; its process group goes with it."""
    begin = time.monotonic()
    with out.open("wb") as stdout, log.open("wb") as stderr:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=env,
            start_new_session=True,
        )
        status: int | None = None
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            # strata ends its levels, and stores what was measured, at SIGTERM
            for number, grace_s in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(grace_s)
                    break
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return status, time.monotonic() - begin


def run_command(command: Any, step: Any, left_s: float, results: Results, env: dict) -> None:
    limit_s = min(command.limit_s, left_s)
    out, log = WORK / "stdout", WORK / "stderr"
    words = [str(word) for word in command.words]
    print(f"  {command.name} (at most {limit_s:.0f} s)", flush=True)
    try:
        status, seconds = run_bounded(words, limit_s, env | command.environment, out, log)
    except OSError as error:  # a tool that this machine lacks
        entry = {"step": step.number, "command": " ".join(words), "status": None, "seconds": 0.0}
        results.add(command.name, entry | {"ended": True, "state": f"skipped: {error}"}, "")
        print(f"    skipped: {error}", flush=True)
        return
    text, said = (path.read_text(errors="replace") for path in (out, log))
    entry = {
        "step": step.number,
        "command": " ".join(words).replace(str(PACK) + "/", ""),
        "status": status,
        "seconds": round(seconds, 1),
        # a limit of the whole run is no end: another run tries it again
        "ended": status is not None or limit_s >= command.limit_s,
        "state": "out of time"
        if status is None
        else command.states.get(status, f"failed ({status})"),
        "page": text if command.page and len(text) < 60_000 else "",
    }
    with contextlib.suppress(ValueError):
        entry["result"] = json.loads(text)
        entry["page"] = ""
    if not command.page and "result" not in entry:
        entry["output"] = text[-4000:]
    if status != 0:
        entry["end_of_log"] = said[-1500:]
    results.add(command.name, entry, said + ("" if "result" in entry else text))
    print(f"    {entry['state']}, {seconds:.0f} s", flush=True)
    if entry["state"].startswith("failed"):
        print(
            "    | " + (said.strip() or text.strip())[-700:].replace("\n", "\n    | "), flush=True
        )


def chosen(plan: list, only: str, commands: str) -> list:
    """The steps, and of these the commands, that were asked for; none named: all."""
    wanted = {int(word) for word in only.split(",") if word} or {s.number for s in plan}
    if unknown := wanted - {step.number for step in plan}:
        raise SystemExit(f"--only: there is no step {min(unknown)}; steps: 1 to {len(plan)}")
    plan = [step for step in plan if step.number in wanted]
    names = [name for name in commands.split(";") if name]
    known = [command.name for step in plan for command in step.commands]
    for name in names:
        if name not in known:
            raise SystemExit(f"--commands: there is no '{name}'; there are: {'; '.join(known)}")
    for step in plan if names else []:
        step.commands = [command for command in step.commands if command.name in names]
    return plan


def print_plan(plan: list, with_commands: bool) -> None:
    for step in plan:
        total = sum(command.limit_s for command in step.commands)
        print(f"step {step.number}: {step.title} (at most {total / 60:.1f} min)")
        for command in step.commands if with_commands else []:
            print(
                f"  {command.limit_s:4.0f} s  {command.name}: {' '.join(map(str, command.words))}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="of the whole run")
    parser.add_argument("--out", type=Path, default=PACK / "results")
    parser.add_argument("--only", default="", help="steps, as 1,2,3")
    parser.add_argument("--commands", default="", help="only these, by name, as 'device;doctor'")
    parser.add_argument("--python", default=shutil.which("python3"), help="with the PyTorch")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--rehearse", action="store_true", help="every step, small and short")
    parser.add_argument("--list", action="store_true", help="print the commands and their limits")
    options = parser.parse_args()
    begin = time.monotonic()
    steps = load_steps()
    WORK.mkdir(exist_ok=True, mode=0o700)
    os.environ |= own_folders()
    driver, programs = PACK / "bin/strata", PACK / "bin"
    if not options.list:
        versions = versions_of(options.python)
        driver, environment = programs_for(options.python)
        programs = environment.folder
    plan = steps.steps(PACK, driver, programs, options.python, options.device, options.rehearse)
    plan = chosen(plan, options.only, options.commands)
    print_plan(plan, options.list)
    if options.list:
        return 0
    results = Results(options.out.resolve())
    results.all |= {
        "title": steps.TITLE,
        "commit": (PACK / "commit").read_text().strip(),
        "machine": {"processors": os.cpu_count(), "system": platform.platform()},
        "versions": versions,
        "differences": environment.differences(),
    }
    if options.device == "cuda" and not versions["device"]:
        results.all["differences"].append("PyTorch sees no CUDA device")
    for line in results.all["differences"]:
        print(f"differs: {line}")
    env = variables(driver, environment)
    for step in plan:
        print(f"step {step.number}: {step.title}", flush=True)
        for command in step.commands:
            if results.ended(command.name):
                print(f"  {command.name}: done earlier")
                continue
            left_s = options.minutes * 60 - (time.monotonic() - begin) - 10
            if left_s < 5:
                print(f"  {command.name}: no time is left")
                continue
            run_command(command, step, left_s, results, env)
    bad = [
        n
        for n, e in results.all["commands"].items()
        if not e["state"].startswith(("done", "skipped"))
    ]
    print(f"{len(results.all['commands']) - len(bad)} commands done, {len(bad)} not: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
