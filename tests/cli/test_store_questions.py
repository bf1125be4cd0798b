# SPDX-License-Identifier: Apache-2.0
"""The questions of docs/store.md, as they stand there, on a store with known answers."""

from __future__ import annotations

import re
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
import made_store

PAGE = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
PART = PAGE[PAGE.index("\n## Questions\n") + 1 :].split("\n## ")[0]
QUESTIONS = dict(re.findall(r"^### (.+?)\n.*?^```sql\n(.*?)^```", PART, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def store():
    builder = made_store.MadeStore.in_memory()
    quiet, noisy = builder.machine("EPYC"), builder.machine("Xeon", cores=8)
    old, new = builder.environment("2.14.0"), builder.environment("2.15.0")
    first = builder.run(quiet, old)
    second = builder.run(quiet, new)
    other = builder.run(noisy, new)
    builder.run(quiet, new, interrupted=1, command="./strata compare stopped")
    builder.run(quiet, new, finished="", command="./strata compare killed")
    for run, speedups, spread, compile_ms in (
        (first, (2.0, 3.0), 0.01, 10.0),
        (second, (2.5, 3.5), 0.03, 8.0),
        (other, (9.0, 9.0), 0.2, 1.0),
    ):
        for batch, speedup in zip((1, 8), speedups):
            case = builder.case(run, batch=batch)
            builder.row(run, case, "noop", {"warm_start": 99999.0}, harness=1)
            builder.row(
                run,
                case,
                "eager",
                {
                    "speedup": (1.0, 1.0, 1.0),
                    "warm_start": 2000.0 * batch,
                    "peak_memory": 500.0 * batch,
                },
            )
            static = {
                "speedup": (speedup, speedup - 0.5, speedup + 0.5),
                "warm_start": 30.0,
                "restart_spread": spread,
                "peak_memory": 900.0,
            }
            builder.row(run, case, "static", static)
            builder.row(run, case, "static", {"speedup": 77.0}, variant="tuned")
            builder.row(
                run, case, "compile", {"iteration_time": compile_ms * batch, "warm_start": 9000.0}
            )
            builder.row(run, case, "tensorrt", state="unavailable", reason=f"no GPU in {run}")
            builder.row(
                run,
                case,
                "ncnn",
                state="unsupported" if batch == 1 else "failed",
                reason="never mind",
            )
    changed = builder.case(second, model="other", network="another")
    builder.case(first, model="other", network="one")
    builder.row(first, changed, "compile", {"iteration_time": 1.0})
    # another network: no change of this one
    builder.row(second, changed, "compile", {"iteration_time": 5.0})
    builder.row(
        second,
        changed,
        "libtorch",
        state="unequal",
        first_difference="layer3.bn",
        reason="outputs differ",
    )
    served = builder.case(second, model="served")
    for level, clients, rate, p99 in (
        ("aoti", 2, 80.0, 12.0),
        ("aoti", 4, 150.0, 19.0),
        ("aoti", 8, 200.0, 40.0),
        ("eager", 4, 90.0, 15.0),
    ):
        setting = f"{clients} threads"
        builder.row(
            second,
            served,
            level,
            {f"requests_per_s {setting}": rate, f"request_p99 {setting}": p99},
        )
    trained = [builder.row(second, served, level) for level in ("libtorch", "compile")]
    for row, repeat, losses in (
        (trained[0], 0, (3.0, 1.0, 0.5)),
        (trained[1], 0, (3.0, 2.0)),
        (trained[1], 1, (2.5,)),
    ):
        for epoch, loss in enumerate(losses, 1):
            builder.put(
                "series",
                row_id=row,
                name="test_loss",
                unit="1",
                axis="epoch",
                repeat=repeat,
                position=epoch,
                value=loss,
            )
    for row, identifier in (
        (trained[1], "W007"),
        (trained[1], "W007"),
        (trained[0], "W004"),
        (None, "W002"),
    ):
        builder.put(
            "warnings",
            run_id=second,
            id=identifier,
            what="",
            advice="",
            case_key=served,
            row_id=row,
        )
    builder.first, builder.second, builder.other = first, second, other
    return builder


def rounded(rows: list[tuple]) -> list[tuple]:
    return [
        tuple(round(value, 6) if isinstance(value, float) else value for value in row)
        for row in rows
    ]


def answers(store) -> dict[str, list[tuple]]:
    first, second, other = store.first, store.second, store.other
    return {
        "How much faster is one level, by batch, in all runs of a machine?": [
            ("m", 1, 2.0, 1.5, 2.5, first),
            ("m", 1, 2.5, 2.0, 3.0, second),
            ("m", 8, 3.0, 2.5, 3.5, first),
            ("m", 8, 3.5, 3.0, 4.0, second),
        ],
        "Which level starts slowest?": [
            ("eager", "default", 16000.0, "m/infer/b8"),
            ("compile", "default", 9000.0, "m/infer/b1"),
            ("static", "default", 30.0, "m/infer/b1"),
        ],
        "What was unequal, and where did it first differ?": [
            (second, "other/infer/b1", "libtorch", "default", "layer3.bn", "outputs differ")
        ],
        "How did a level change between two versions of PyTorch?": [
            ("m/infer/b1", 10.0, 8.0, 1.25),
            ("m/infer/b8", 80.0, 64.0, 1.25),
        ],
        "What needs the most memory at each batch?": [
            (1, "static", "default", 900.0, "m/infer/b1"),
            (8, "eager", "default", 4000.0, "m/infer/b8"),
        ],
        "Which levels have never been available, and why?": [
            ("tensorrt", "default", "unavailable", f"no GPU in {other}")
        ],
        "Which machine is the noisiest?": [("Xeon", 8, 0.2, 1), ("EPYC", 2, 0.02, 2)],
        "Which runs were interrupted?": [
            ("20260101-000004-0000", "./strata compare stopped"),
            ("20260101-000005-0000", "./strata compare killed"),
        ],
        "Which level serves the most requests with 99% of them below 20 ms?": [
            ("served/infer/b1", "aoti", "4 threads", 150.0, 19.0)
        ],
        "Which levels are warned about?": [("compile", "W007", 2), ("libtorch", "W004", 1)],
        "How far did a level's training come?": [
            ("libtorch", 0, 3, 0.5),
            ("compile", 0, 2, 2.0),
            ("compile", 1, 1, 2.5),
        ],
    }


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_of_the_page_has_its_answer(store, question):
    found = rounded(store.connection.execute(QUESTIONS[question]).fetchall())
    expected = answers(store)[question]
    if question == "Which levels have never been available, and why?":
        found = [row[:4] for row in found]
    assert found == expected


def test_all_questions_of_the_page_are_asked(store):
    assert set(QUESTIONS) == set(answers(store)) and len(QUESTIONS) >= 10
