# SPDX-License-Identifier: Apache-2.0
"""`strata diff RUN RUN`: what got slower between two stored runs of the same cases, with an exit
code for CI."""

from __future__ import annotations

import json

SLOWER = {"samples": {"median_ns": 1_500_000, "jitter": 0.01, "seed": 2, "restart": 0.0}}


def compare(strata, name: str, *levels: str, more: tuple[str, ...] = ()) -> None:
    done, _ = strata.compare(*levels, restarts=3, budget="2s", more=("--name", name, *more))
    assert done.returncode in (0, 1), done.stderr


def script(strata, name: str, **changes) -> None:
    path = strata.levels / name / "script.json"
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8"
    )


def diff(strata, *words: str):
    return strata.run("diff", *words, "--store", str(strata.store))


def test_a_level_that_got_slower_is_named_with_its_interval_and_ends_with_4(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    compare(strata, "before", "one", "two")
    compare(strata, "same", "one", "two")
    script(strata, "two", **SLOWER)
    compare(strata, "after", "one", "two")
    done = diff(strata, "before", "after")
    assert done.returncode == 4, done.stderr
    assert "1 of 2 levels slower (1 by more than 5%)" in done.stdout and "Unpaired:" in done.stdout
    assert diff(strata, "before", "after", "--fail-above", "70%").returncode == 0
    result = json.loads(diff(strata, "before", "after", "--format", "json").stdout)
    by_level = {one["level"]: one for one in result["levels"]}
    assert by_level["two"]["verdict"] == "slower" and by_level["one"]["verdict"] != "slower"
    assert (
        0.6 < by_level["two"]["ratio"]["low"] <= 1 / 1.5 <= by_level["two"]["ratio"]["high"] < 0.75
    )
    assert by_level["one"]["speedup_change"] is None  # the reference
    assert 0.6 < by_level["two"]["speedup_change"]["value"] < 0.75
    back = json.loads(diff(strata, "after", "before", "--format", "json").stdout)
    assert (back["slower"], back["faster"]) == (0, 1)
    assert diff(strata, "before", "same").returncode == 0
    reaches = 1 / by_level["two"]["ratio"]["low"] - 1  # with an end of its interval alone
    done = diff(strata, "before", "after", "--fail-above", f"{100 * reaches - 0.1:.4f}%")
    assert done.returncode == 5 and "1 may be slower by more than" in done.stdout, done.stdout
    done = diff(strata, "before", "after", "--fail-above", "nan")
    assert done.returncode == 2 and "--fail-above nan: allowed: a share as 1%" in done.stderr


def test_a_level_that_has_no_number_any_more_ends_with_1(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    compare(strata, "before", "one", "two")
    script(strata, "two", ops={"load": {"signal": 11}})
    compare(strata, "after", "one", "two")
    compare(strata, "fewer", "one")
    result = json.loads(diff(strata, "before", "after", "--format", "json").stdout)
    lost = next(one for one in result["levels"] if one["level"] == "two")
    assert (
        lost["after_ms"] is None
        and lost["verdict"] not in ("measured", "", "same")
        and lost["reason"]
    )
    assert diff(strata, "before", "after").returncode == 1
    done = diff(strata, "before", "fewer")
    assert done.returncode == 1 and "the later run did not have it" in done.stdout


def test_runs_without_a_case_in_common_are_refused_with_why(strata):
    strata.level("one", rank=1)
    compare(strata, "two rows", "one")
    compare(strata, "three rows", "one", more=("--batch", "3"))
    done = diff(strata, "two rows", "three rows")
    assert (
        done.returncode == 2
        and "no case in common" in done.stderr
        and "not in the later run" in done.stderr
    )
    done = diff(strata, "last", "last")
    assert done.returncode == 2 and "the same run" in done.stderr
    done = diff(strata, "nosuch", "last")
    assert done.returncode == 2 and "no run is called 'nosuch'" in done.stderr


def test_a_network_that_was_changed_on_purpose_is_compared_and_the_change_named(strata):
    strata.level("one", rank=1)
    text = "import torch\n\ndef build():\n    net = torch.nn.Linear(4, 2)\n    torch.nn.init.constant_(net.bias, {})\n    return net.eval(), torch.ones(2, 4)\n"
    for number in (1, 2):
        (strata.folder / "net.py").write_text(text.format(number), encoding="utf-8")
        words = strata.arguments("one")
        words[1] = "net.py:build"
        assert strata.run(*words, "--name", f"number{number}").returncode == 0
    done = diff(strata, "number1", "number2", "--fail-above", "50%")
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    words = " ".join(done.stdout.split())
    assert "changed in net:build/infer/b2/4/fp32/cpu/t1: weights (build:" in words, words
    assert "; code (net.py)" in words, words
