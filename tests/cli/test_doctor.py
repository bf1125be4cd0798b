# SPDX-License-Identifier: Apache-2.0
"""strata doctor."""

from __future__ import annotations

import json
import re


def test_doctor_gives_every_limit_a_reason_and_every_missing_thing_a_remedy(strata):
    done = strata.run("doctor", "--format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["schema"] == "strata.doctor/1"
    assert result["machine"]["cores"] >= 1
    checks = {(check["group"], check["name"]): check for check in result["checks"]}
    for group, name in [
        ("machine", "cores"),
        ("machine", "caches"),
        ("machine", "instruction sets"),
        ("machine", "governor"),
        ("machine", "SMT"),
        ("machine", "steal"),
        ("machine", "other load"),
        ("machine", "memory"),
        ("machine", "GPU"),
        ("software", "PyTorch"),
        ("levels", "eager"),
        ("levels", "libtorch"),
        ("set-up", "disk"),
        ("set-up", "still to do"),
    ]:
        assert (group, name) in checks
    for check in result["checks"]:
        assert check["standing"] in ("ok", "limited", "missing")
        assert check["found"] if check["standing"] == "ok" else check["reason"], check
        assert check["remedy"] or check["standing"] != "missing", check


def test_doctor_says_which_level_is_unavailable_and_why(strata):
    strata.level(
        "lonely", json_fields={"needs": ["no_such_module"], "start": ["{tools_python}", "x"]}
    )
    strata.level("broken_build", json_fields={"start": ["{build}/level_broken"]})
    build = strata.folder / "build"
    build.mkdir()
    (build / "FAILED").write_text("torch.h: no such file\n")
    strata.level("left_out", json_fields={"start": ["{build}/level_left_out"]})
    (build / "level_left_out.missing").write_text("the library is not in /there\ninstall it\n")
    done = strata.run("doctor", STRATA_LEVEL_BUILD=str(build))
    assert done.returncode == 0, done.stderr
    assert re.search(r"lonely +missing +Python module no_such_module is missing", done.stdout)
    assert (
        re.search(r"left_out +missing +the library is not in /there", done.stdout)
        and "install it" in done.stdout
    )
    assert re.search(
        r"broken_build +missing +it could not be compiled: torch.h: no such file", done.stdout
    )


def test_doctor_works_without_any_environment(strata, tmp_path):
    done = strata.run(
        "doctor",
        STRATA_PYTHON=str(tmp_path / "nothing/python"),
        STRATA_TOOLS_PYTHON=str(tmp_path / "nothing/python"),
    )
    assert done.returncode == 0, done.stderr
    assert "is not set up" in done.stdout


def test_doctor_refuses_an_unknown_format(strata):
    assert strata.run("doctor", "--format", "jsno").returncode == 2
