# SPDX-License-Identifier: Apache-2.0
"""One flipped bit, one missing file of a captured network: it is noticed, said, and captured again
before anything is proven with it. And caches that others can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

MODEL = "mnist_convnet"


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """A store, levels and a cache of their own, in which the network is captured."""
    from conftest import Strata

    folder = tmp_path_factory.mktemp("damaged")
    place = Strata(folder / "place", folder / "cache")
    place.level("zeros", rank=2, outputs={"scale": 0.0})
    done = place.run("graph", MODEL, "--batch", "1", "--threads", "1")
    assert done.returncode == 0, done.stderr
    return place


def bundle_of(place) -> Path:
    [found] = (Path(place.environment["STRATA_CACHE"]) / "bundles").glob("*/bundle.json")
    return found.parent


def flip(path: Path, at: float) -> None:
    with open(path, "r+b") as file:
        position = int(at * (path.stat().st_size - 1))
        file.seek(position)
        byte = file.read(1)[0] ^ 0x40
        file.seek(position)
        file.write(bytes([byte]))


FILES = [
    "bundle.json",
    "manifest.json",
    "graph.json",
    "inputs.safetensors",
    "model.pt2",
    "weights/timed.safetensors",
    "weights/generic1.safetensors",
    "reference/timed.safetensors",
    "reference/timed.envelope.safetensors",
    "reference/generic2.safetensors",
    "reference/generic1.envelope.safetensors",
    "reference/faults.safetensors",
]


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_in_any_file_is_noticed_and_the_network_captured_again(captured, name):
    bundle = bundle_of(captured)
    whole = (bundle / name).read_bytes()
    flip(bundle / name, 0.7)
    done = captured.run("graph", MODEL, "--batch", "1", "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert "is damaged" in done.stderr and "captured again" in done.stderr
    assert (name.split("/")[-1] in done.stderr or name == "manifest.json") and len(
        (bundle / name).read_bytes()
    ) == len(whole)


@pytest.mark.parametrize(
    "name",
    [
        "reference/generic1.safetensors",
        "reference/generic2.safetensors",
        "reference/faults.safetensors",
        "weights/generic1.safetensors",
        "manifest.json",
    ],
)
def test_a_missing_file_is_noticed_and_the_network_captured_again(captured, name):
    bundle = bundle_of(captured)
    (bundle / name).unlink()
    done = captured.run("graph", MODEL, "--batch", "1", "--threads", "1")
    assert (
        "is damaged" in done.stderr
        and f"{name} is missing" in done.stderr
        and (bundle / name).exists()
    )


def test_a_wrong_level_is_not_called_equal_by_a_damaged_envelope(captured):
    flip(bundle_of(captured) / "reference" / "timed.envelope.safetensors", 0.9)
    done = captured.run(
        "compare",
        MODEL,
        "--batch",
        "1",
        "--threads",
        "1",
        "--levels",
        "zeros",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--store",
        str(captured.store),
        "--format",
        "json",
    )
    assert done.returncode == 1 and '"unequal"' in done.stdout and "is damaged" in done.stderr


# ------------------------------------------------------------------------------- caches of others


@pytest.mark.parametrize(
    "verb",
    [
        ("graph", MODEL),
        ("compare", MODEL, "--levels", "zeros", "--restarts", "1", "--budget", "1s"),
    ],
)
def test_a_cache_that_others_can_write_is_refused(captured, tmp_path, verb):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    done = captured.run(
        *verb,
        "--threads",
        "1",
        "--store" if verb[0] == "compare" else "--fresh",
        *([str(tmp_path / "s.db")] if verb[0] == "compare" else []),
        STRATA_CACHE=str(cache),
    )
    assert (
        done.returncode == 3
        and "can be written by everybody" in done.stderr
        and "STRATA_CACHE" in done.stderr
    )
    cache.chmod(0o755)
    above = tmp_path / "open" / "cache"
    above.mkdir(parents=True)
    above.parent.chmod(0o777)
    done = captured.run("graph", MODEL, "--threads", "1", STRATA_CACHE=str(above))
    assert done.returncode == 3 and str(above.parent) in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_a_planted_artefact_of_somebody_else_is_refused(captured):
    artefacts = Path(captured.environment["STRATA_CACHE"]) / "artefacts"
    words = (
        "compare",
        MODEL,
        "--batch",
        "1",
        "--threads",
        "1",
        "--levels",
        "zeros",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--store",
        str(captured.store),
    )
    captured.run(*words)
    [folder] = artefacts.glob("zeros-*")
    (folder / "network.so").write_bytes(b"planted")
    os.chown(folder / "network.so", 65534, 65534)
    done = captured.run(*words)
    assert done.returncode == 3 and "network.so" in done.stderr and "belongs to" in done.stderr
    (folder / "network.so").unlink()


def test_a_cache_is_made_for_its_owner_alone(captured, tmp_path):
    cache = tmp_path / "new" / "cache"
    captured.run("graph", "no-such-model", STRATA_CACHE=str(cache))
    assert (
        cache.is_dir()
        and cache.stat().st_mode & 0o077 == 0
        and cache.parent.stat().st_mode & 0o077 == 0
    )


def test_without_a_home_nothing_lies_in_tmp(captured):
    environment = {
        k: v
        for k, v in captured.environment.items()
        if k not in ("HOME", "STRATA_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    }
    import subprocess

    from conftest import PROGRAM

    before = Path("/tmp/.cache/strata").exists(), Path("/tmp/.local/share/strata").exists()
    done = subprocess.run(
        [str(PROGRAM), "list", "runs"],
        env=environment,
        cwd=captured.folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "/tmp/.local" not in done.stderr and before == (
        Path("/tmp/.cache/strata").exists(),
        Path("/tmp/.local/share/strata").exists(),
    )
