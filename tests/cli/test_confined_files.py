# SPDX-License-Identifier: Apache-2.0
"""What runs a model file is confined: the level here tries to write elsewhere. And whatever runs
has a private folder for temporary files, and variables that ask libraries not to report on it.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

import pytest
from conftest import FAKE, MODEL, ROOT, rows_of

MEASURED = os.environ.get("STRATA_PYTHON") or sys.executable
# what a worker of this level does before it becomes the fake worker; $0 is the level's folder
ATTEMPT = 'stat -c "%a %n" "$TMPDIR" >"$0/written"; touch "$TMPDIR/own" || exit 9; exec "$@"'


def landlock() -> int:
    return ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1)


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "net.pt"
    code = f"import torch; torch.jit.script(torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU())).save({str(path)!r})"
    subprocess.run([MEASURED, "-W", "ignore", "-c", code], check=True, timeout=120)
    return path


def attempt(strata, act: str = ATTEMPT) -> None:
    strata.level("attempt")
    folder = strata.levels / "attempt"
    about = json.loads((folder / "level.json").read_text())
    about["start"] = [
        "/bin/sh",
        "-c",
        act,
        "{level}",
        sys.executable,
        str(FAKE),
        "{level}/script.json",
    ]
    (folder / "level.json").write_text(json.dumps(about))


def compare(strata, model: str, *more: str):
    return strata.run(
        "compare",
        model,
        "--levels",
        "attempt",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--threads",
        "1",
        "--store",
        str(strata.store),
        "--format",
        "json",
        *more,
    )


@pytest.mark.skipif(landlock() < 1, reason="this kernel has no Landlock")
def test_a_worker_of_a_model_file_writes_into_its_own_folders_only(strata, script):
    attempt(strata)
    done = compare(strata, str(script), "--input", "4x16")
    row = rows_of(json.loads(done.stdout))["attempt"]
    # it may write into its own
    assert row["state"] == "measured" or "exited with code 9" not in row["reason"], row["reason"]
    assert not (strata.levels / "attempt" / "written").exists()


def test_a_worker_of_the_users_own_module_writes_where_the_user_may(strata):
    attempt(strata)
    compare(strata, MODEL)
    assert (strata.levels / "attempt" / "written").exists()


def test_strata_says_before_a_model_file_runs_what_it_could_do(strata, script):
    attempt(strata)
    message = compare(strata, str(script), "--input", "4x16").stderr
    assert "net.pt is a program" in message and "use only files whose origin you trust" in message
    assert ("is confined" in message) == (landlock() >= 1)
    assert "is a program" not in compare(strata, MODEL).stderr


def test_temporary_files_lie_in_a_private_folder_that_is_gone_afterwards(strata, cache):
    attempt(strata)
    compare(strata, MODEL)
    mode, place = (strata.levels / "attempt" / "written").read_text().split(" ", 1)
    assert mode == "700" and place.startswith(f"{cache}/tmp/") and not os.path.exists(place.strip())


def test_doctor_says_whether_model_files_are_confined(strata):
    done = strata.run("doctor", "--format", "json")
    assert "model files" in done.stdout and "checked" in done.stdout, ROOT


@pytest.mark.parametrize(("own", "expected"), [({}, "1"), ({"DO_NOT_TRACK": "0"}, "0")])
def test_a_worker_has_variables_that_ask_for_no_telemetry_and_those_that_the_user_set(
    strata, own, expected
):
    attempt(strata, 'printenv ORT_DISABLE_TELEMETRY DO_NOT_TRACK >"$0/written"; exec "$@"')
    strata.environment = {
        name: value
        for name, value in strata.environment.items()
        if name not in ("ORT_DISABLE_TELEMETRY", "DO_NOT_TRACK")
    } | own
    compare(strata, MODEL)
    written = (strata.levels / "attempt" / "written").read_text().split()
    assert written == ["1", expected]
