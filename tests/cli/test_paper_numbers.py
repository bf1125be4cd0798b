# SPDX-License-Identifier: Apache-2.0
"""bench/paper_numbers.py: what the summaries of the paper of 2020 come to, on summaries made up
here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import paper_numbers

SCRIPT = str(ROOT / "bench" / "paper_numbers.py")


@pytest.mark.parametrize(
    ("batch", "left"), [(8, (13, 429)), (64, (15, 54)), (256, (14, 14)), (512, (7, 7))]
)
def test_batches_after_the_last_whole_window_are_left_over(batch, left):
    assert paper_numbers.left_over(batch) == left


def test_training_time_in_an_evaluation_is_taken_out_again():
    training = {(8, 16): 10.0, (256, 16): 0.4}
    published = {(8, 16): 3.0 + 10.0 * 13 / 429, (256, 16): 0.15 + 0.4}
    assert paper_numbers.without_left_over(published, training) == {
        (8, 16): pytest.approx(3.0),
        (256, 16): pytest.approx(0.15),
    }


def test_a_difference_that_is_the_copies_alone_gives_their_rate():
    for mode, bytes_a_pixel in (("eval", 128), ("train", 248)):
        copied_ms = bytes_a_pixel * 512**2 / 5e9 * 1e3
        rates = paper_numbers.host_copies(
            {(8, 512): 6.0 + copied_ms, (8, 8): 0.5}, {(8, 512): 6.0, (8, 8): 0.7}, mode
        )
        assert rates == {(8, 512): pytest.approx(5.0)}, "where nothing is slower there is no rate"


def test_the_script_prints_a_row_for_every_batch_from_a_clone(tmp_path: Path):
    folder = tmp_path / paper_numbers.SUMMARIES
    folder.mkdir(parents=True)
    for level, value in (("pytorch", 4.0), ("libtorch", 1.0), ("cudnn", 2.0), ("torchscript", 0.5)):
        for mode in ("eval", "train"):
            for metric in ("sample_time", "used_mem"):
                (folder / f"{level}_{mode}_avg_{metric}.csv").write_text(
                    f"8 16 {value}\n32 512 {value}\n", encoding="utf-8"
                )
    done = subprocess.run(
        [sys.executable, SCRIPT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    first = done.stdout.split("PyTorch over libtorch, evaluation, as published")[1]
    assert (
        "| 8 |  | 4.00 |" in first
        and "all: 2 points, 4.00 to 4.00" in first
        and "below 128 pixels: 1 points" in first
    )


def test_a_folder_that_is_no_clone_is_told_how_to_become_one(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (
        done.returncode == 2 and "tex/figures/plots" in done.stderr and "git clone" in done.stderr
    )
