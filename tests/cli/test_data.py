# SPDX-License-Identifier: Apache-2.0
"""`strata data`: sets in their publishers' formats become the pixels and labels that torchvision
reads, and what is broken is named."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import struct
from pathlib import Path

import numpy as np
import pytest
from conftest import IMAGES

REAL = Path(os.environ.get("STRATA_TEST_DATA") or "/nowhere")
real = pytest.mark.skipif(
    not REAL.is_dir(), reason="no real data sets here: STRATA_TEST_DATA names no folder"
)


@pytest.fixture
def own(strata, tmp_path):
    """A cache and a folder for data sets that no other test has."""
    cache = tmp_path / "own cache"
    cache.mkdir(mode=0o700)
    strata.environment["STRATA_CACHE"] = str(cache)
    strata.environment["STRATA_DATA"] = str(tmp_path / "sets")
    (tmp_path / "sets").mkdir()
    return strata


def tensors(strata, name: str, *more: str) -> dict[str, np.ndarray]:
    """What the cache holds, read by safetensors."""
    from safetensors.numpy import load_file

    done = strata.run("data", "verify", name, "--format", "json", *more)
    assert done.returncode == 0, done.stderr
    return load_file(json.loads(done.stdout)["cache"]["file"])


def idx(values: np.ndarray) -> bytes:
    return (
        struct.pack(">4B", 0, 0, 8, values.ndim)
        + struct.pack(f">{values.ndim}I", *values.shape)
        + values.astype("uint8").tobytes()
    )


def write_mnist(folder: Path, train: int = 20, test: int = 10) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for prefix, count in (("train", train), ("t10k", test)):
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(
            gzip.compress(idx(rng.integers(0, 256, (count, 28, 28))))
        )
        (folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(idx(rng.integers(0, 10, count)))
        )


def test_lists_every_set_with_its_state(own, tmp_path):
    rows = {
        row["set"]: row for row in json.loads(own.run("data", "list", "--format", "json").stdout)
    }
    assert set(rows) >= {"digits", "mnist", "cifar10", "cifar100", "stl10"}
    assert rows["digits"]["state"] == "part of strata" and rows["mnist"]["state"].startswith(
        "missing: 11.6 MB"
    )
    write_mnist(tmp_path / "sets" / "mnist")
    states = [json.loads(own.run("data", "list", "--format", "json").stdout)[1]["state"]]
    assert states == ["here"], states
    for path in (tmp_path / "sets" / "mnist").glob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    states = [json.loads(own.run("data", "list", "--format", "json").stdout)[1]["state"]]
    assert len(states) == 1 and states[0].startswith("here, a part of it: fewer images"), states
    assert "--partial" in states[0] and states[0].endswith("./strata data fetch mnist"), states


def test_a_set_of_which_files_are_missing_names_them_and_what_fetches_them(own, tmp_path):
    write_mnist(tmp_path / "sets" / "mnist")
    for name in ("train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"):
        (tmp_path / "sets" / "mnist" / name).unlink()
    state = json.loads(own.run("data", "list", "--format", "json").stdout)[1]["state"]
    assert state == (
        "in part: mnist/train-labels-idx1-ubyte.gz, mnist/t10k-images-idx3-ubyte.gz: there are no "
        "such files, and mnist needs them; ./strata data fetch mnist"
    )
    done = own.run("data", "verify", "mnist")
    assert done.returncode == 3 and "t10k-images-idx3-ubyte.gz: there are no such" in done.stderr


def test_says_where_it_looks(own, tmp_path):
    assert str(tmp_path / "sets") in own.run("data", "list").stderr
    elsewhere = own.run("data", "list", "--data-dir", "other")
    assert str(own.folder / "other") in elsewhere.stderr
    del own.environment["STRATA_DATA"]
    assert str(own.folder / "data" / "strata" / "data") in own.run("data", "list").stderr


def test_verify_reads_once_and_checks_every_byte_afterwards(own, tmp_path):
    write_mnist(tmp_path / "sets" / "mnist")
    first = own.run("data", "verify", "mnist", "--partial")
    assert (
        first.returncode == 0
        and "20 training and 10 test images of 1x28x28 in 10 classes" in first.stdout
    ), first.stdout + first.stderr
    assert "read and checked in" in first.stdout and "threads: hashes" in first.stdout
    second = own.run("data", "verify", "mnist", "--partial")
    assert "every byte checked in" in second.stdout, second.stdout
    again = own.run("data", "verify", "mnist", "--partial", "--again")
    assert "read and checked in" in again.stdout


def test_a_cut_file_is_named_with_what_to_do(own, tmp_path):
    write_mnist(tmp_path / "sets" / "mnist")
    path = tmp_path / "sets" / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-100])
    done = own.run("data", "verify", "mnist", "--partial")
    assert (
        done.returncode == 1
        and str(path) in done.stderr
        and "damaged or cut gzip" in done.stderr
        and "data fetch" in done.stderr
    ), done.stderr


def test_a_missing_set_ends_with_3_and_a_wrong_name_with_2(own):
    done = own.run("data", "verify", "cifar10")
    assert (
        done.returncode == 3
        and "data_batch_1.bin" in done.stderr
        and "strata data fetch cifar10" in done.stderr
    ), done.stderr
    done = own.run("data", "verify", "cifra10")
    assert done.returncode == 2 and "did you mean 'cifar10'" in done.stderr


def test_info_names_publisher_licence_checksums_and_the_cost_of_the_cache(own, tmp_path):
    done = own.run("data", "info", "mnist")
    assert done.returncode == 0, done.stderr
    for words in ("licence", "CC BY-SA", "f68b3c2dcbeaaa9fbdd348bbdeb94873", "here       no"):
        assert words in done.stdout, done.stdout
    write_mnist(tmp_path / "sets" / "mnist")
    assert own.run("data", "verify", "mnist", "--partial").returncode == 0
    about = json.loads(own.run("data", "info", "mnist", "--partial", "--format", "json").stdout)
    assert about["here"]["train"]["images"] == 20 and about["here"]["cache"]["bytes"] > 30 * 784
    assert about["published"] == {"train": 60000, "test": 10000}


def test_show_writes_a_page_that_holds_its_images(own):
    done = own.run("data", "show", "digits", "--count", "12", "-o", "sheet.html")
    assert done.returncode == 0 and done.stdout == "sheet.html\n", done.stderr
    page = (own.folder / "sheet.html").read_text(encoding="utf-8")
    assert (
        page.count("data:image/png;base64,") == 12
        and page.count("<figcaption>") == 12
        and "http" not in page
    )
    done = own.run("data", "show", "digits", "-o", "/nowhere/sheet.html")
    assert done.returncode == 2 and "cannot write /nowhere/sheet.html" in done.stderr


def test_the_cache_verb_lists_and_removes_what_sets_take(own, tmp_path):
    write_mnist(tmp_path / "sets" / "mnist")
    assert own.run("data", "verify", "mnist", "--partial").returncode == 0
    rows = json.loads(own.run("cache", "list", "--format", "json").stdout)
    assert [row["kind"] for row in rows] == ["data"] and rows[0]["what"].startswith(
        "mnist-partial-"
    ), rows
    assert own.run("cache", "prune").returncode == 0
    assert json.loads(own.run("cache", "list", "--format", "json").stdout) == []


def test_the_digits_are_those_of_scikit_learn():
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    folder = Path(__file__).resolve().parents[2] / "src" / "data" / "digits"
    images, labels = (
        gzip.decompress((folder / name).read_bytes())
        for name in ("images-idx3-ubyte.gz", "labels-idx1-ubyte.gz")
    )
    assert images == idx(digits.images) and labels == idx(digits.target)


@real
def test_mnist_is_what_torchvision_reads(own, tmp_path):
    torchvision = pytest.importorskip("torchvision")
    got = tensors(own, "mnist", "--data-dir", str(REAL))
    raw = tmp_path / "tv" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for path in (REAL / "mnist").glob("*.gz"):
        (raw / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    for part, train in (("train", True), ("test", False)):
        want = torchvision.datasets.MNIST(tmp_path / "tv", train=train)
        assert np.array_equal(got[f"{part}.images"][:, 0], want.data.numpy())
        assert np.array_equal(got[f"{part}.labels"], want.targets.numpy())


@real
def test_cifar10_is_what_torchvision_reads_of_the_same_records(own, tmp_path):
    torchvision = pytest.importorskip("torchvision")
    import pickle

    class Excerpt(torchvision.datasets.CIFAR10):
        """torchvision's reader of the python files, without its checksums of the whole ones."""

        def _check_integrity(self) -> bool:
            return True

        def _load_meta(self) -> None:
            self.classes = []

    got = tensors(own, "cifar10", "--partial", "--data-dir", str(REAL))
    folder = tmp_path / "tv" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for path in (REAL / "cifar-10-batches-bin").glob("*.bin"):
        records = np.frombuffer(path.read_bytes(), "uint8").reshape(-1, 3073)
        (folder / path.stem).write_bytes(
            pickle.dumps({"data": records[:, 1:], "labels": records[:, 0].tolist()})
        )
    for part, train in (("train", True), ("test", False)):
        want = Excerpt(tmp_path / "tv", train=train)
        assert np.array_equal(got[f"{part}.images"].transpose(0, 2, 3, 1), want.data)
        assert got[f"{part}.labels"].tolist() == want.targets


@real
def test_stl10_is_what_torchvision_reads_of_the_same_images(own, tmp_path):
    torchvision = pytest.importorskip("torchvision")

    class Excerpt(torchvision.datasets.STL10):
        def _check_integrity(self) -> bool:
            return True

    folder = tmp_path / "sets" / "stl10_binary"
    folder.mkdir()
    shutil.copy(REAL / "stl10_binary" / "class_names.txt", folder)
    for part in ("train", "test"):
        for what in ("X", "y"):
            shutil.copy(
                REAL / "stl10_binary" / f"labelled10_{what}.bin", folder / f"{part}_{what}.bin"
            )
    got = tensors(own, "stl10", "--partial")
    for part in ("train", "test"):
        want = Excerpt(str(tmp_path / "sets"), split=part)
        assert np.array_equal(got[f"{part}.images"], want.data)
        assert np.array_equal(got[f"{part}.labels"], want.labels)


def devkit_of(list_of_images: dict[str, list[str]], folder: Path) -> Path:
    """A devkit with links to the real images, and of each list only what is named."""
    source, target = REAL / "VOCdevkit" / "VOC2012", folder / "VOCdevkit" / "VOC2012"
    (target / "ImageSets" / "Main").mkdir(parents=True)
    for name in ("JPEGImages", "Annotations"):
        (target / name).symlink_to(source / name)
    for part, images in list_of_images.items():
        (target / "ImageSets" / "Main" / f"{part}.txt").write_text(
            "".join(f"{image}\n" for image in images)
        )
    return folder


@real
def test_voc_is_what_torchvision_and_pillow_read_within_one_step_of_rounding(own, tmp_path):
    torchvision = pytest.importorskip("torchvision")
    from PIL import Image

    names = (REAL / "VOCdevkit/VOC2012/ImageSets/Main/train.txt").read_text().split()[:12]
    sets = devkit_of({"train": names[:8], "val": names[8:]}, tmp_path / "cut")
    got = tensors(own, "voc2012-first", "--partial", "--size", "64", "--data-dir", str(sets))
    for part, images in (("train", "train"), ("test", "val")):
        want = torchvision.datasets.VOCDetection(str(sets), year="2012", image_set=images)
        for i, (image, target) in enumerate(want):
            objects = target["annotation"]["object"]
            assert CLASSES[got[f"{part}.labels"][i]] == objects[0]["name"]
            pixels = np.asarray(image.resize((64, 64), Image.Resampling.BILINEAR)).transpose(
                2, 0, 1
            )
            difference = np.abs(got[f"{part}.images"][i].astype(int) - pixels)
            assert difference.max() <= 2 and difference.mean() < 0.3, (
                i,
                difference.max(),
                difference.mean(),
            )


CLASSES = (
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep sofa train tvmonitor"
).split()


@real
def test_voc_targets_are_those_of_the_official_lists(own):
    got = tensors(own, "voc2012", "--partial", "--size", "8", "--data-dir", str(REAL))
    main = REAL / "VOCdevkit/VOC2012/ImageSets/Main"
    for part, split in (("train", "train"), ("test", "val")):
        for c, name in enumerate(CLASSES):
            values = [
                int(line.split()[1])
                for line in (main / f"{name}_{split}.txt").read_text().splitlines()
                if line.split()
            ]
            assert got[f"{part}.targets"][:, c].tolist() == [
                {1: 1, 0: 255, -1: 0}[value] for value in values
            ]


@real
def test_a_jpeg_that_is_cut_is_named_or_left_out(own, tmp_path):
    source = REAL / "VOCdevkit-broken"
    root = tmp_path / "sets" / "VOCdevkit" / "VOC2012"
    good = (REAL / "VOCdevkit/VOC2012/ImageSets/Main/train.txt").read_text().split()[0]
    for folder, suffix in (("JPEGImages", "jpg"), ("Annotations", "xml")):
        (root / folder).mkdir(parents=True)
        for path in source.glob(f"*.{suffix}"):
            shutil.copy(path, root / folder)
        shutil.copy(REAL / "VOCdevkit/VOC2012" / folder / f"{good}.{suffix}", root / folder)
    (root / "ImageSets/Main").mkdir(parents=True)
    (root / "ImageSets/Main/train.txt").write_text(f"2007_000027\n{good}\n000001\n")
    (root / "ImageSets/Main/val.txt").write_text(f"{good}\n")
    done = own.run("data", "verify", "voc2012-first", "--partial")
    assert (
        done.returncode == 1
        and ".jpg: no readable JPEG" in done.stderr
        and "--skip-bad" in done.stderr
    ), done.stderr
    done = own.run("data", "verify", "voc2012-first", "--partial", "--skip-bad")
    assert (
        done.returncode == 0
        and "1 training and 1 test images" in done.stdout
        and "left out  2 records" in done.stdout
    ), done.stdout


@pytest.fixture
def folder_of_images(tmp_path) -> Path:
    from PIL import Image

    for path, colour in (("train/cat/a.png", 10), ("train/dog/b.jpg", 200), ("test/dog/c.png", 90)):
        target = tmp_path / "pets" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 10), (colour,) * 3).save(target)
    return tmp_path / "pets"


def test_a_folder_of_images_is_read_by_its_path_with_lists_that_are_kept(own, folder_of_images):
    got = tensors(own, str(folder_of_images), "--size", "6")
    assert (
        got["train.images"].shape == (2, 3, 6, 6)
        and got["train.labels"].tolist() == [0, 1]
        and got["test.labels"].tolist() == [1]
    )
    assert (got["train.images"][0] == 10).all() and (got["test.images"] == 90).all()
    lists = list(Path(own.environment["STRATA_DATA"]).glob("lists/pets-*/train.txt"))
    assert [path.read_text() for path in lists] == ["train/cat/a.png\ntrain/dog/b.jpg\n"]
    done = own.run(
        "data", "show", str(folder_of_images), "--size", "6", "--split", "test", "-o", "pets.html"
    )
    assert done.returncode == 0 and "dog" in (own.folder / "pets.html").read_text(), done.stderr


def test_what_a_folder_has_beside_its_images_is_counted_with_the_reason(own, folder_of_images):
    (folder_of_images / "train/cat/b.webp").write_bytes(b"RIFF")
    (folder_of_images / "train/bird").mkdir()
    done = own.run("data", "verify", str(folder_of_images), "--size", "6")
    assert done.returncode == 0, done.stderr
    for words in (
        "not taken train: 1 not named .jpg, .jpeg or .png: train/cat/b.webp",
        "not taken train: 1 a class without an image: train/bird",
    ):
        assert words in done.stdout, done.stdout


def test_what_cannot_be_read_is_left_out_of_a_comparisons_inputs(own, folder_of_images):
    (folder_of_images / "train/dog/a.jpg").write_bytes(b"\xff\xd8\xff no photograph")
    own.level("one", rank=1)
    (own.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    words = ("compare net.py:build --levels one --restarts 1 --budget 1s --threads 1").split()
    words += ["--store", str(own.store), "--dataset", str(folder_of_images), "--batch", "2"]
    bad = own.run(*words)
    assert bad.returncode == 2 and "cannot read the image" in bad.stderr, bad.stderr
    good = own.run(*words, "--skip-bad")
    assert good.returncode == 0, good.stderr
    assert "1 images that cannot be read are left out; the first: " in good.stderr


def test_a_name_without_a_slash_is_no_folder_and_that_is_said(own):
    done = own.run("data", "verify", "pets")
    assert (
        done.returncode == 2 and "allowed: digits, mnist" in done.stderr and "./pets" in done.stderr
    ), done.stderr


@pytest.mark.parametrize("verb", ["compare", "sweep"])
def test_images_of_a_set_are_the_inputs_of_a_comparison(own, tmp_path, verb):
    write_mnist(tmp_path / "sets" / "mnist")
    own.level("one", rank=1)
    (own.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    words = [
        verb,
        "net.py:build",
        "--levels",
        "one",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--threads",
        "1",
        "--store",
        str(own.store),
        "--format",
        "json",
    ]
    for name, count in (("mnist", 8), ("digits", 8)):  # of a ring of four batches of two
        done = own.run(*words, "--dataset", name, "--batch", "2")
        assert done.returncode == 0, done.stderr
        with sqlite3.connect(own.store) as store:
            bundle, data = store.execute(
                "SELECT bundle, data FROM run_cases JOIN cases USING (hash) ORDER BY run_cases.rowid DESC LIMIT 1"
            ).fetchone()
        assert (
            json.loads(bundle)["input_source"]
            == f"{count} image files of the user's folder {name}, beside the user's example"
            and data == f"folder:{name}"
        )
    pictures = sorted(path.name for path in (tmp_path / "own cache" / "images").glob("*/mnist/*"))
    assert len(pictures) == 20 and pictures[0] == "000000.png"
    for more, message in (
        (("--dataset", "mnst"), "did you mean 'mnist'"),
        (("--dataset", "cifar10"), "cifar10"),
        (("--dataset", "mnist", "--synthetic"), "--synthetic and --dataset exclude"),
    ):
        refused = own.run(*words, *more)
        assert refused.returncode in (2, 3) and message in refused.stderr, refused.stderr
