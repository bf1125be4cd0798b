# SPDX-License-Identifier: Apache-2.0
"""A pack as its user has it: made of what is built here, then run where there is no network, no
clone and no cache. A minute."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build/release/strata"))
LEVELS = ("eager", "onednn", "static")
# of the clone all but .venv, which has the PyTorch, is hidden
HIDDEN = ("build", "levels", "python", "runtime", "sdk", "src")
WITHOUT = """
for folder in "${@:2:$1}"; do mount -t tmpfs none "$folder"; done
shift "$(($1 + 1))"
exec "$@"
"""


def apart(*command: str | Path, folder: Path, hidden: tuple[Path, ...] = (), **how):
    """In namespaces of its own, without an interface that is up, with a home that is empty."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    words = ["unshare", *user, "--net", "--mount", "bash", "-ec", WITHOUT, "_", str(len(hidden))]
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR")
    variables = {name: os.environ[name] for name in kept if name in os.environ}
    return subprocess.run(
        [*words, *hidden, *command],
        env=variables | {"HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        **how,
    )


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Path:
    """The pack, unpacked from its tar."""
    folder = tmp_path_factory.mktemp("pack")
    done = subprocess.run(
        [PROGRAM, "pack", "-o", folder / "there.tar", "--levels", ",".join(LEVELS)],
        env=os.environ | {"STRATA_ROOT": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "MiB" in done.stdout and "a C++ compiler, for static" in done.stdout
    shutil.unpack_archive(folder / "there.tar", folder)
    return folder / "there"


def test_a_pack_compares_levels_where_there_is_neither_a_network_nor_the_clone(packed, tmp_path):
    if shutil.which("unshare") is None or apart("true", folder=tmp_path).returncode != 0:
        pytest.skip("no network can be taken away here")
    python = os.environ.get("STRATA_PYTHON", sys.executable)
    done = apart(
        *("env", f"STRATA_PYTHON={python}", packed / "run", "compare"),
        *(f"{packed}/tree/examples/tiny_mlp.py:build", "--levels", ",".join(LEVELS)),
        *("--preset", "quick", "--budget", "1s", "--restarts", "1", "--format", "json"),
        folder=tmp_path,
        hidden=tuple(ROOT / name for name in HIDDEN),
    )
    assert done.stdout, done.stderr
    rows = json.loads(done.stdout)["cases"][0]["rows"]
    states = {row["level"]: (row["state"], row["reason"]) for row in rows}
    assert states == dict.fromkeys(LEVELS, ("measured", "")), (states, done.stderr)
    assert "left out" not in done.stderr, done.stderr
    assert str(ROOT / "build") not in done.stderr + done.stdout
