# SPDX-License-Identifier: Apache-2.0
"""`strata compare --mode train --optimiser adam` with real levels: all that train are proven, and
each fault of Adam's step is refused by its name."""

from __future__ import annotations

import pytest
from client import compare
from faulty_eager.copies import plant
from train_verb import NETWORK

FAULTS = {
    "adam_none": "",
    "adam_no_correction": "without bias correction",
    "adam_other_decay": "weight decay goes through the gradient",
    "adam_beta2": "beta2 in use is 0.99 where 0.999 is due",
    "adam_eps_in_root": "eps is added under the root",
}
LEVELS = ("eager", "torchscript", "libtorch", "onednn", "static")


def compared(folder, optimiser: str, levels: tuple[str, ...], faults: list[str]) -> dict[str, dict]:
    (folder / "net.py").write_text(NETWORK)
    (folder / "store").mkdir()
    return compare(
        folder / "store",
        f"{folder / 'net.py'}:build",
        "--mode",
        "train",
        "--batch",
        "8",
        "--optimiser",
        optimiser,
        "--threads",
        "1",
        "--restarts",
        "1",
        "--budget",
        "3s",
        "--order-seed",
        "1",
        "--levels",
        ",".join([*levels, *faults]),
        levels=plant(folder / "faulty", faults),
    )


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("adamw"), "adamw:lr=0.003", LEVELS, list(FAULTS))


@pytest.mark.parametrize("level", [*LEVELS, "adam_none"])
def test_a_level_that_is_right_is_proven_from_chosen_states_and_after_timing(level, rows):
    assert rows[level]["state"] == "measured", rows[level]["reason"]
    lines = {line["check"]: line for line in rows[level]["proof"]["lines"]}
    for check in (
        "first step",
        *(f"step {t} from chosen buffers" for t in (1, 10, 1000)),
        "place of eps",
        "other settings",
    ):
        assert lines[f"optimiser: {check}"]["result"] == "pass"
    assert (
        lines["a step after timing"]["result"] == "pass"
        and lines["steps done and learning rate"]["result"] == "pass"
    )


@pytest.mark.parametrize("fault", list(FAULTS)[1:])
def test_a_fault_of_adams_step_is_refused_with_its_cause(fault, rows):
    assert rows[fault]["state"] == "unequal" and FAULTS[fault] in rows[fault]["reason"], (
        rows[fault]["state"],
        rows[fault]["reason"],
    )
    assert rows[fault]["end_to_end_ms"] is None


def test_adam_whose_decay_is_adamws_is_refused(tmp_path):
    rows = compared(tmp_path, "adam:weight_decay=0.01", ("eager", "static"), ["adam_other_decay"])
    assert rows["eager"]["state"] == rows["static"]["state"] == "measured", rows
    assert (
        rows["adam_other_decay"]["state"] == "unequal"
        and "apart from the gradient" in rows["adam_other_decay"]["reason"]
    )
