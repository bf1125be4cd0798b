# SPDX-License-Identifier: Apache-2.0
"""Slurm as far as strata calls it: a folder of commands for PATH. sbatch runs the tasks of an array
one after the other, behind itself. What becomes of a task is said beforehand by a file `fate/N`
(used once): `crash`, `limit` (its time), `vanish` (its node is gone when its second point begins).

    FakeSlurm(folder)            makes the commands; .path is for PATH
    python fake_slurm.py FOLDER COMMAND ARGUMENT...
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = ("sbatch", "squeue", "sacct", "scancel", "sinfo")


class FakeSlurm:
    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir(parents=True)
        (folder / "fate").mkdir()
        for name in COMMANDS:
            (self.bin / name).write_text(
                f'#!/bin/sh\nexec "{sys.executable}" -S "{Path(__file__).resolve()}" "{folder}" {name} "$@"\n',
                encoding="utf-8",
            )
            (self.bin / name).chmod(0o755)

    @property
    def path(self) -> str:
        return f"{self.bin}:{os.environ['PATH']}"

    def fate(self, task: int, word: str) -> None:
        (self.folder / "fate" / str(task)).write_text(word, encoding="utf-8")

    def calls(self, command: str) -> list[list[str]]:
        log = self.folder / f"{command}.calls"
        return (
            [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()]
            if log.exists()
            else []
        )

    def refuse(self, words: str) -> None:
        (self.folder / "refuses").write_text(words, encoding="utf-8")

    def forget(self) -> None:
        """The controller knows of no ended job any more."""
        for state in self.folder.glob("jobs/*/*"):
            if state.read_text(encoding="utf-8").split("|")[0] not in ("PENDING", "RUNNING"):
                state.unlink()

    def wait(self, timeout: float = 240) -> None:
        end = time.monotonic() + timeout
        while any(
            state.read_text(encoding="utf-8").split("|")[0] in ("PENDING", "RUNNING", "")
            for state in self.folder.glob("jobs/*/*")
        ):
            assert time.monotonic() < end, "tasks did not end"
            time.sleep(0.1)


def numbers(text: str) -> list[int]:
    all_of_them: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        all_of_them += range(int(first), int(last or first) + 1)
    return all_of_them


def sbatch(folder: Path, words: list[str]) -> int:
    if (folder / "refuses").exists():
        print(f"sbatch: error: {(folder / 'refuses').read_text(encoding='utf-8')}", file=sys.stderr)
        return 1
    job = 101 + len(list(folder.glob("jobs/*")))
    options = dict(
        word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word
    )
    (folder / "jobs" / str(job)).mkdir(parents=True)
    for task in numbers(options["array"]):
        set_state(folder, job, task, "PENDING", "")
    subprocess.Popen(
        [
            sys.executable,
            "-S",
            __file__,
            str(folder),
            "run",
            str(job),
            options["array"],
            options["output"],
            words[-1],
        ],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    print(job)
    return 0


def set_state(folder: Path, job: int | str, task: int, state: str, node: str) -> None:
    # Written beside the jobs: whoever lists them must find whole states alone.
    written = folder / f"state-{job}-{task}"
    written.write_text(f"{state}|{node}", encoding="utf-8")
    written.replace(folder / "jobs" / str(job) / str(task))


def run_task(folder: Path, job: str, task: int, log: Path, script: Path) -> str:
    fate_file = folder / "fate" / str(task)
    fate = fate_file.read_text(encoding="utf-8") if fate_file.exists() else ""
    fate_file.unlink(missing_ok=True)
    with log.open("a", encoding="utf-8") as out:
        if fate == "crash":
            out.write("error: no such file on this node\n")
            return "FAILED"
        if fate == "limit":
            out.write(
                f"slurmstepd: error: *** JOB {job} ON n{task} CANCELLED AT 2026-11-25T10:00:00 DUE TO TIME LIMIT ***\n"
            )
            return "TIMEOUT"
        environment = os.environ | {
            "SLURM_ARRAY_TASK_ID": str(task),
            "SLURM_ARRAY_JOB_ID": job,
            "SLURMD_NODENAME": f"n{task}",
        }
        process = subprocess.Popen(
            ["/bin/sh", str(script)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        if fate == "vanish":
            while process.poll() is None and "point 2 of" not in log.read_text(
                encoding="utf-8", errors="replace"
            ):
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "NODE_FAIL"
        return "COMPLETED" if process.wait() == 0 else "FAILED"


def run(folder: Path, words: list[str]) -> int:
    job, array, output, script = words
    for task in numbers(array):
        set_state(folder, job, task, "RUNNING", f"n{task}")
        set_state(
            folder,
            job,
            task,
            run_task(folder, job, task, Path(output.replace("%a", str(task))), Path(script)),
            f"n{task}",
        )
    return 0


def squeue(folder: Path, words: list[str]) -> int:
    jobs = next(word.split("=", 1)[1] for word in words if word.startswith("--jobs=")).split(",")
    found = [
        (job, state) for job in jobs for state in sorted((folder / "jobs" / job).glob("[0-9]*"))
    ]
    if not found:
        print("slurm_load_jobs error: Invalid job id specified", file=sys.stderr)
        return 1
    for job, state in found:
        what, node = state.read_text(encoding="utf-8").split("|")
        print(f"{job}|{state.name}|{what}|{node}|None")
    return 0


def main() -> int:
    folder, command, words = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if command != "run":
        with (folder / f"{command}.calls").open("a", encoding="utf-8") as log:
            log.write("\t".join(words) + "\n")
    if command == "sacct":
        print("Slurm accounting storage is disabled", file=sys.stderr)
        return 1
    if command == "sinfo":
        print("2\n1")
        return 0
    if command == "scancel":
        return 0
    return {"sbatch": sbatch, "squeue": squeue, "run": run}[command](folder, words)


if __name__ == "__main__":
    sys.exit(main())
