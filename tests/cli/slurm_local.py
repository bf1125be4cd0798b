# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of several nodes on loopback, of this machine's slurmctld, slurmd and munged: with
ports, keys and folders of its own, ended by process id."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue")
CONF = """ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/spool-%n
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SlurmdTimeout=6
KillWait=2
{nodes}PartitionName=local Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str:
    """Why there can be none here; empty: there can."""
    missing = [name for name in PROGRAMS if not find(name)]
    if missing:
        return f"no Slurm here: {', '.join(missing)} is not installed"
    return "" if os.geteuid() == 0 else "no Slurm here: its daemons need root"


def find(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class LocalSlurm:
    def __init__(self, nodes: int) -> None:
        # short: a socket's path has 107 characters
        self.folder = Path(tempfile.mkdtemp(prefix="strata-slurm-"))
        self.daemons: list[subprocess.Popen] = []
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        host, (port, *ports) = socket.gethostname().split(".")[0], free_ports(nodes + 1)
        lines = ""
        for name, own in zip(self.names, ports, strict=True):
            (self.folder / f"spool-{name}").mkdir()
            lines += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={own} CPUs=1 RealMemory=1000\n"
        (self.folder / "state").mkdir()
        self.conf = self.folder / "slurm.conf"
        self.conf.write_text(
            CONF.format(
                host=host, port=port, folder=self.folder, nodes=lines, names=",".join(self.names)
            ),
            encoding="utf-8",
        )
        self.environment = {"SLURM_CONF": str(self.conf)}

    def __enter__(self) -> LocalSlurm:
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self._start(
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={self.folder}/munge.socket",
            f"--pid-file={self.folder}/munge.pid",
            f"--log-file={self.folder}/munge.log",
            f"--seed-file={self.folder}/munge.seed",
        )
        self._wait((self.folder / "munge.socket").exists, "munged made no socket")
        self._start("slurmctld", "-D", "-f", str(self.conf))
        for name in self.names:
            self._start("slurmd", "-D", "-f", str(self.conf), "-N", name)
        self._wait(
            lambda: self.states() == dict.fromkeys(self.names, "idle"), "the nodes did not come up"
        )

    def _start(self, name: str, *words: str) -> None:
        program = find(name)
        assert program
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons.append(
                subprocess.Popen(
                    [program, *words],
                    env=os.environ | self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            )

    def _wait(self, ready, what: str, timeout: float = 60) -> None:
        end = time.monotonic() + timeout
        while not ready():
            logs = "\n".join(
                f"{path}: {path.read_text(errors='replace')[-1500:]}"
                for path in (*self.folder.glob("*.out"), *self.folder.glob("*.log"))
            )
            assert time.monotonic() < end, f"{what}\n{logs}"
            time.sleep(0.2)

    def states(self) -> dict[str, str]:
        """Nodes by name: idle, allocated, down*."""
        done = subprocess.run(
            ["sinfo", "--noheader", "--Node", "--format=%N %T"],
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return dict(line.split() for line in done.stdout.splitlines())

    def processes(self, **variables: str) -> list[int]:
        """Whose environment has all of these."""
        required, found = {f"{name}={value}".encode() for name, value in variables.items()}, []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if required <= set(path.read_bytes().split(b"\0")):
                    found.append(int(path.parent.name))
        return found

    def kill_node(self, name: str) -> None:
        """As if its machine had gone: the daemon, the jobs' keepers and the jobs."""
        own = self.names.index(name) + 2  # after munged and slurmctld
        children = self._below(self.daemons[own].pid) + self._keepers(name)
        for pid in [
            self.daemons[own].pid,
            *children,
            *self.processes(SLURM_CONF=str(self.conf), SLURMD_NODENAME=name),
        ]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.daemons[own].wait()

    def _keepers(self, name: str) -> list[int]:
        """slurmstepd leaves its daemon's process tree; it is known by its children."""
        parents = set()
        for pid in self.processes(SLURM_CONF=str(self.conf), SLURMD_NODENAME=name):
            with contextlib.suppress(OSError, IndexError):
                parent = int(
                    Path(f"/proc/{pid}/stat")
                    .read_text(encoding="utf-8")
                    .rsplit(")", 1)[1]
                    .split()[1]
                )
                if (
                    Path(f"/proc/{parent}/comm")
                    .read_text(encoding="utf-8")
                    .startswith("slurmstepd")
                ):
                    parents.add(parent)
        return sorted(parents)

    def _below(self, pid: int) -> list[int]:
        with contextlib.suppress(OSError):
            children = [
                int(word)
                for word in Path(f"/proc/{pid}/task/{pid}/children")
                .read_text(encoding="utf-8")
                .split()
            ]
            return [one for child in children for one in (child, *self._below(child))]
        return []

    def __exit__(self, *_) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            daemon.kill()
        for name in self.names:  # what a job of a killed node left
            for pid in [
                *self._keepers(name),
                *self.processes(SLURM_CONF=str(self.conf), SLURMD_NODENAME=name),
            ]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
