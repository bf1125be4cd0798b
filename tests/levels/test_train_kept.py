# SPDX-License-Identifier: Apache-2.0
"""What a killed training goes on with: states that are whole and its own, and the images that it
began with. The rest is said."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from train_verb import Place, Trained

NETWORK = '''
import torch
from torch import nn

class Net(nn.Module):
    """(N, 3, 8, 8) -> logits (N, 2)."""

    def __init__(self):
        super().__init__()
        self.hidden, self.fc = nn.Linear(3 * 8 * 8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(torch.relu(self.hidden(torch.flatten(x, 1))))

def build():
    return Net(), torch.zeros(1, 3, 8, 8)
'''
COMMAND = (
    "train net.py:build --dataset ./pets --size 8 --levels eager --batch 4 --threads 1 --epochs 60 "
    "--order-seed 5 --proofs 0 --norms 0 --format json"
).split()


def image(folder: Path, name: str, seed: int) -> None:
    from PIL import Image

    path = folder / "pets" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Path:
    """A folder in which a training was killed after some epochs of 60."""
    folder = tmp_path_factory.mktemp("killed")
    place = Place(folder)
    (folder / "net.py").write_text(NETWORK)
    for i in range(8):
        image(folder, f"train/{'cat' if i % 2 else 'dog'}/{i}.png", i)
        image(folder, f"test/{'cat' if i % 2 else 'dog'}/{i}.png", 100 + i)
    (folder / "pets/train/cat/notes.webp").write_text("not read")
    process = place.start(*COMMAND)
    while process.poll() is None and noted(folder) < 3:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert noted(folder) >= 3, errors
    return folder


def note_of(folder: Path) -> Path | None:
    return next((folder / "strata").glob("trainings/*/eager-r1.json"), None)


def noted(folder: Path) -> int:
    """Epochs that the newest state has behind it, as the note beside it says."""
    note = note_of(folder)
    return json.loads(note.read_text())["about"]["epochs"] if note else 0


def states(folder: Path) -> list[Path]:
    """That the note names: the newest, and the one before."""
    note, epochs = note_of(folder), noted(folder)
    assert note is not None
    return [note.with_name(f"eager-r1-e{number}.state") for number in (epochs, epochs - 1)]


@pytest.fixture
def copy(killed, tmp_path) -> Path:
    shutil.copytree(killed, tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


def resumed(folder: Path) -> Trained:
    place = Place(folder)
    (folder / "net.py").write_text(NETWORK)
    return place.run("resume", "last")


def flip(folder: Path) -> None:
    path = states(folder)[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(folder: Path) -> None:
    path = states(folder)[0]
    path.write_bytes(path.read_bytes()[:-5])


def exchange(folder: Path) -> None:
    last, before = states(folder)
    shutil.copy(before, last)


@pytest.mark.parametrize("damage", [flip, cut, exchange], ids=lambda one: one.__name__)
def test_a_damaged_state_is_not_taken_up_and_the_one_before_is_and_that_is_said(
    copy, damage: Callable[[Path], None]
):
    epochs = noted(copy)
    damage(copy)
    done = resumed(copy)
    assert done.code == 0, done.errors
    said = json.dumps(done.document)
    assert "W010" in said and f"it goes on from epoch {epochs - 1}" in said, said[:2000]
    assert "its bytes are not those that were written" in said
    assert len(done.figures["by_epoch"]["panels"][0]["lines"][0]["x"]) == 60


def test_without_a_whole_state_it_begins_anew_and_says_so(copy):
    for path in states(copy):
        path.unlink()
    done = resumed(copy)
    assert done.code == 0 and "cannot be read); it begins anew" in json.dumps(done.document)


def test_whole_states_are_taken_up_without_a_word(copy):
    done = resumed(copy)
    said = json.dumps(done.document)
    assert done.code == 0 and "W010" not in said, done.errors
    assert "sha256 " in said and "not named .jpg, .jpeg or .png: train/cat/notes.webp" in said


@pytest.mark.parametrize("change", ["an image", "a label"])
def test_it_does_not_go_on_with_other_images_than_it_began_with(killed, copy, change):
    pets = killed / "pets"  # where the run was begun, which `resume` goes to
    shutil.copytree(pets, copy / "kept")
    try:
        if change == "an image":
            image(killed, "train/dog/0.png", 55)
        else:
            (pets / "train/dog/0.png").rename(pets / "train/cat/0.png")
            (pets / "train/cat/1.png").rename(pets / "train/dog/0.png")
            (pets / "train/cat/0.png").rename(pets / "train/cat/1.png")
        done = resumed(copy)
    finally:
        shutil.rmtree(pets)
        shutil.copytree(copy / "kept", pets)
    assert done.code == 3, done.errors
    assert "began with other images of ./pets: their sha256 was " in done.errors
    assert done.errors.partition("their sha256 was ")[2][64:].startswith(", and is "), done.errors
