# SPDX-License-Identifier: Apache-2.0
"""No timed input is one that a Python level has seen, and none answers from its memory."""

from __future__ import annotations

import numpy as np
import pytest
from client import Worker
from safetensors.numpy import save_file
from scale_level import MEASURE, code_of

from strata_sdk import fresh_inputs


@pytest.mark.parametrize(
    "changed",
    [
        3,
        {},
        {"first": 1},
        {"first": -1, "places": [0]},
        {"first": 1, "places": "x"},
        {"first": 1, "places": [-1]},
        {"first": 1.5, "places": []},
        {"first": True, "places": []},
        {"first": 1, "places": [], "exchange": 4, "at": 1},
        {"first": 1, "places": [], "exchange": "0", "at": 1},
        {"first": 1, "places": [], "exchange": 0, "at": 2},
        {"first": 1, "places": [], "exchange": 0},
        {"first": 1, "places": [], "exchange": 4, "at": 1, "entry": 3},
        {"first": 1, "places": [], "entry": "no exchange"},
    ],
)
def test_wrong_fields_of_fresh_inputs_are_bad_requests(changed, sample):
    worker = sample()
    worker.load()
    assert code_of(worker, "measure", **(MEASURE | {"fresh": changed})) == "bad_request"


REMEMBERS = """answers, hits = {}, 0
    def set_input(self, inputs): self.x = inputs[0]
    def key(self): return self.x.tobytes()
    def run(self):
        Sample.hits += self.key() in self.answers
        self.y = self.answers.setdefault(self.key(), self.x * self.scale)
    def report(self): return {"hits": self.hits}
"""


PLACES = [3, 1, 4, 1, 5, 9, 2, 6]


def block_of(**changed) -> dict:
    return {
        "iterations": 300,
        "head": 2,
        "indices": [i % 4 for i in range(300)],
        "retain": [250],
        "region": "end_to_end",
    } | changed


def hits_of(worker: Worker) -> int:
    return worker.ask("report")["facts"]["hits"]


def test_no_timed_input_is_one_that_a_level_which_remembers_has_seen(sample, tmp_path):
    worker = sample(REMEMBERS, bases="Level, Reports")
    worker.load()
    worker.prove([0, 1, 2, 3])
    assert hits_of(worker) == 0
    answer = worker.ask("measure", **block_of(), fresh={"first": 1, "places": PLACES})
    assert answer["fresh"] == {"places": 6}  # as many as the input has values
    assert hits_of(worker) == 2, "only the unrecorded iterations had inputs that were seen"
    checked = worker.result(250)["2/output"]
    assert (checked != 30).any() and np.allclose(checked, 30, rtol=8 * 2.0**-23, atol=0)
    worker.ask(
        "measure", **block_of(), fresh={"first": 301, "places": PLACES, "exchange": 1, "at": 250}
    )
    assert hits_of(worker) == 4, "the checked one neither"
    assert np.allclose(worker.result(250)["1/output"], 20, rtol=8 * 2.0**-23, atol=0), (
        "the result is that of the other entry's input"
    )
    assert (
        (worker.prove([2])["2/output"] == 30).all()
        and (worker.prove([1])["1/output"] == 20).all()
        and hits_of(worker) == 6
    ), "the ring is as it was"
    assert "fresh" not in worker.ask("measure", **block_of()) and hits_of(worker) == 6 + 302, (
        "without it all are known"
    )


def test_a_level_that_remembers_by_the_place_of_its_input_gives_a_wrong_answer_where_it_is_checked(
    sample, tmp_path
):
    worker = sample(
        REMEMBERS.replace("self.x.tobytes()", "self.x.ctypes.data"), bases="Level, Reports"
    )
    worker.load()
    worker.prove([0, 1, 2, 3])
    worker.ask(
        "measure", **block_of(), fresh={"first": 1, "places": PLACES, "exchange": 1, "at": 250}
    )
    assert (worker.result(250)["1/output"] == 30).all(), "entry 2's, where entry 1's input stood"


def test_a_checked_iteration_may_find_an_input_that_is_none_of_the_rings(sample, tmp_path):
    worker = sample(REMEMBERS, bases="Level, Reports")
    worker.load()
    worker.prove([0, 1, 2, 3])
    save_file({"0/arg0": np.full((2, 3), 7, np.float32)}, tmp_path / "unseen")
    changed = {"first": 1, "places": PLACES, "exchange": 9, "entry": str(tmp_path / "unseen")}
    worker.ask("measure", **block_of(), fresh=changed | {"at": 250})
    assert np.allclose(worker.result(250)["9/output"], 70, rtol=8 * 2.0**-23, atol=0)
    assert (worker.prove([2])["2/output"] == 30).all(), "the ring is as it was"
    for name, shape in (("short", (1, 3)), ("double", (2, 3))):
        dtype = np.float64 if name == "double" else np.float32
        save_file({"0/arg0": np.full(shape, 7, dtype)}, tmp_path / name)
        changed["entry"] = str(tmp_path / name)
        assert (
            code_of(worker, "measure", **(MEASURE | {"fresh": changed | {"at": 1}}))
            == "bad_request"
        )


def test_work_that_is_put_off_until_the_result_is_read_shows_in_the_time_of_copying_it(
    sample, tmp_path
):
    worker = sample("""def run(self): pass
    def outputs(self): return [lambda: self.x * self.scale]
    def to_numpy(self, output):
        import time
        time.sleep(0.05)
        return output()""")
    worker.load()
    answer = worker.ask("measure", **block_of(), fresh={"first": 1, "places": PLACES})
    assert max(answer["wall_ns"]) < 50e6 <= answer["copy_ns"]


def test_a_checked_result_that_is_a_view_of_the_input_is_kept_as_it_was(sample, tmp_path):
    worker = sample("def run(self): self.y = self.x")
    worker.load()
    worker.ask(
        "measure", **block_of(), fresh={"first": 1, "places": PLACES, "exchange": 0, "at": 250}
    )
    assert np.allclose(worker.result(250)["0/output"], 1, rtol=8 * 2.0**-23, atol=0)


def test_inputs_without_values_that_can_hold_a_number_stay_as_they_are(sample, tmp_path):
    worker = sample()
    worker.load()
    for dtype, value in ((np.int64, 3), (np.float32, 0.0), (np.float32, np.inf)):
        save_file({f"{i}/arg0": np.full((2, 3), value, dtype) for i in range(4)}, tmp_path / "ring")
        worker.ask("inputs", path=str(tmp_path / "ring"))
        answer = worker.ask(
            "measure",
            **(MEASURE | {"fresh": {"first": 7, "places": [0, 1]}}),
        )
        assert (
            answer["fresh"]["places"] == 0 and (worker.result(0)["0/output"] == value * 10.0).all()
        )


def test_a_request_of_one_iteration_prepares_as_much_as_one_of_many(monkeypatch):
    """What a request takes beside its iterations must not grow with them: the driver would take
    it for untold time of each (src/proof/clock.hpp)."""
    looked_at = []
    monkeypatch.setattr(
        fresh_inputs, "_find", lambda inputs, places: looked_at.append(inputs) or None
    )
    ring = [(np.ones(3, np.float32),) for _ in range(4)]
    for indices in ([2], [0, 1, 2, 3, 0]):
        fresh_inputs.FreshInputs(ring, indices, 1, PLACES, 0, None)
    assert len(looked_at) == 2 * len(ring)


@pytest.mark.parametrize("zeros", [0.0, 0.9, 0.999, 1.0])
def test_each_place_takes_the_next_value_that_can_hold_a_number(zeros):
    random = np.random.default_rng(7)
    values = random.standard_normal(1000).astype(np.float32)
    values[random.random(1000) < zeros] = 0
    values[:4] = [np.nan, np.inf, 1e-35, 3]
    places = [0, 1, 3, 999, 5000, 17, 17, 2**40]
    expected: list[int] = []
    for place in places:
        on = [(place + i) % 1000 for i in range(512)]
        can = [i for i in on if np.isfinite(values[i]) and abs(values[i]) > 1e-30]
        expected += [i for i in can if i not in expected][:1]
    _, at, was = fresh_inputs._find((values,), places)
    assert at.tolist() == expected and was.tolist() == values.view(np.uint32)[at].tolist()
