#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast are data sets read? Times `strata data verify` beside torchvision's data sets (with
Pillow), and beside torchcodec and simplejpeg where --opponents names an interpreter that has them:
the same images, the same threads (one), the same size of pixels, in turns; medians over the rounds.
Ratios and goals are of processor time, which on an idle machine is the time that passes and on a
busy one repeats better; both are shown, with the load. Prints goals that are missed, and ends with
1 then. Also how far scaled decoding is from decoding whole."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build" / "release" / "strata"))

# Run by the interpreter that has the library: argv are the library, the devkit's folder, the size,
# the list of images. Prints seconds and seconds of the processor for all of them; imports and a
# first image are not in it.
OPPONENT = """
import sys, time
library, devkit, size, images = sys.argv[1], sys.argv[2], int(sys.argv[3]), open(sys.argv[4]).read().split()
import numpy as np
paths = [f"{devkit}/VOC2012/JPEGImages/{image}.jpg" for image in images]
if library == "torchvision":
    import torch, torchvision
    from PIL import Image
    torch.set_num_threads(1)
    def run():
        count = 0
        for part in ("train", "val"):
            for image, target in torchvision.datasets.VOCDetection(devkit[: -len("/VOCdevkit")], year="2012", image_set=part):
                np.asarray(image.resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1).copy()
                count += 1
        assert count == len(images), (count, len(images))
elif library == "pillow":
    from PIL import Image
    def run():
        for path in paths:
            np.asarray(Image.open(path).convert("RGB").resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1).copy()
elif library in ("torchvision.io", "torchcodec"):
    import torch
    from torchvision.transforms.v2 import functional as F
    torch.set_num_threads(1)
    if library == "torchcodec":
        from torchcodec.decoders import decode_image
        read = lambda path: decode_image(path)
    else:
        from torchvision.io import decode_image, read_file
        read = lambda path: decode_image(read_file(path), mode="RGB")
    def run():
        for path in paths:
            F.resize(read(path), [size, size], antialias=True)
elif library == "simplejpeg":
    import simplejpeg
    from PIL import Image
    def run():
        for path in paths:
            pixels = simplejpeg.decode_jpeg(open(path, "rb").read())
            np.asarray(Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1).copy()
paths, all_paths = paths[:1], paths
if library != "torchvision":
    run()
paths = all_paths
start, processor = time.perf_counter(), time.process_time()
run()
print(time.perf_counter() - start, time.process_time() - processor)
"""

MNIST = """
import sys, time
import numpy as np, torch, torchvision
torch.set_num_threads(1)
start, processor = time.perf_counter(), time.process_time()
total = 0
for train in (True, False):
    data = torchvision.datasets.MNIST(sys.argv[1], train=train)
    if sys.argv[2] == "tensors":
        total += data.data.sum().item() * 0 + len(data.data)
    else:
        for i in range(len(data)):
            image, label = data[i]
            total += np.asarray(image).shape[0] // 28
print(time.perf_counter() - start, time.process_time() - processor)
assert total == 70000, total
"""


Times = tuple[float, float]  # seconds that passed, seconds of the processor


def python(interpreter: str, *words: str) -> Times | None:
    """What a script printed; None: it failed, and said why."""
    done = subprocess.run([interpreter, "-c", *words], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        wall, processor = map(float, done.stdout.split()[-2:])
        return wall, processor
    print(
        f"  ({words[1] if len(words) > 1 else 'script'}: {done.stderr.strip().splitlines()[-1:]})",
        file=sys.stderr,
    )
    return None


def verify(name: str, data_dir: Path, *words: str) -> dict:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [
            str(PROGRAM),
            "data",
            "verify",
            name,
            "--data-dir",
            str(data_dir),
            "--threads",
            "1",
            "--partial",
            "--format",
            "json",
            *words,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        sys.exit(done.returncode)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout) | {"whole": (time.perf_counter() - start, processor)}


def reading(name: str, data_dir: Path, *words: str) -> Times:
    """Of reading the images alone, as strata itself timed it."""
    cache = verify(name, data_dir, *words)["cache"]
    return cache["read_s"], cache["read_cpu_s"]


def in_turns(rounds: int, runs: dict) -> dict[str, Times]:
    """Medians by name; names that gave nothing are left out."""
    times: dict[str, list[Times]] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            seconds = run()
            if seconds is not None:
                times.setdefault(name, []).append(seconds)
    return {
        name: (
            statistics.median(wall for wall, _ in values),
            statistics.median(processor for _, processor in values),
        )
        for name, values in times.items()
    }


def show(
    title: str, times: dict[str, Times], ours: str, goals: dict[str, float], count: int
) -> bool:
    """The table; whether every goal is met: how many times as fast as that one ours is to be."""
    print(
        f"\n## {title}\n\n| who | ms an image | processor's ms an image | {ours} is faster by | goal |\n|---|---:|---:|---:|---:|"
    )
    met = True
    for name, (wall, processor) in times.items():
        ratio, goal = processor / times[ours][1], goals.get(name)
        met &= goal is None or ratio >= goal
        print(
            f"| {name} | {1e3 * wall / count:.4f} | {1e3 * processor / count:.4f} | {ratio:.2f} | {'' if goal is None else f'{goal:g}' + ('' if ratio >= goal else ' missed')} |"
        )
    return met


def mnist(data_dir: Path, rounds: int, interpreter: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "MNIST" / "raw"
        raw.mkdir(parents=True)
        for path in (data_dir / "mnist").glob("*-ubyte*"):
            content = path.read_bytes()
            (raw / path.name.removesuffix(".gz")).write_bytes(
                gzip.decompress(content) if path.suffix == ".gz" else content
            )
        verify("mnist", data_dir)
        times = in_turns(
            rounds,
            {
                "strata": lambda: verify("mnist", data_dir)["whole"],
                "strata, the first time": lambda: verify("mnist", data_dir, "--again")["whole"],
                "torchvision, every image": lambda: python(interpreter, MNIST, folder, "images"),
                "torchvision, tensors alone": lambda: python(interpreter, MNIST, folder, "tensors"),
            },
        )
    print(
        "\nstrata: the whole process, every byte checked; the first time: from gzip. torchvision: without its imports, from files that were unpacked before."
    )
    return show("MNIST, 70,000 images", times, "strata", {"torchvision, every image": 5}, 70000)


def errors(full: Path, scaled: Path) -> str:
    import numpy as np
    from safetensors.numpy import load_file

    a, b = load_file(full), load_file(scaled)
    difference = np.concatenate(
        [
            np.abs(a[f"{part}.images"].astype(int) - b[f"{part}.images"]).ravel()
            for part in ("train", "test")
        ]
    )
    return f"mean {difference.mean():.2f}, 99% within {np.percentile(difference, 99):.0f}, at most {difference.max()} of 255"


def voc(data_dir: Path, rounds: int, size: int, interpreter: str, opponents: str | None) -> bool:
    devkit = data_dir / "VOCdevkit"
    lists = [
        (devkit / "VOC2012/ImageSets/Main" / f"{part}.txt").read_text().split()
        for part in ("train", "val")
    ]
    images = lists[0] + lists[1]
    words = ("--size", str(size), "--again")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
        names.write("\n".join(images))
        names.flush()

        def opponent(library: str, python_of: str) -> Callable[[], Times | None]:
            return lambda: python(python_of, OPPONENT, library, str(devkit), str(size), names.name)

        runs = {
            "strata": lambda: reading("voc2012-first", data_dir, *words),
            "strata, scaled": lambda: reading(
                "voc2012-first", data_dir, *words, "--decode", "scaled"
            ),
            "torchvision.datasets.VOCDetection": opponent("torchvision", interpreter),
            "Pillow alone": opponent("pillow", interpreter),
            "torchvision.io": opponent("torchvision.io", interpreter),
        }
        if opponents:
            runs |= {
                library: opponent(library, opponents) for library in ("torchcodec", "simplejpeg")
            }
        times = in_turns(rounds, runs)
    full = verify("voc2012-first", data_dir, "--size", str(size))["cache"]["file"]
    scaled = verify("voc2012-first", data_dir, "--size", str(size), "--decode", "scaled")["cache"][
        "file"
    ]
    print(
        "\nstrata: XML, decoding, resizing and writing; the others: (XML,) decoding, resizing. Hashes of the files, which strata also takes, are shown by `strata data info`."
    )
    met = show(
        f"VOC 2012, {len(images)} images to {size}x{size}",
        times,
        "strata",
        {"torchvision.datasets.VOCDetection": 1.3, "torchcodec": 1, "simplejpeg": 1},
        len(images),
    )
    if "torchvision.datasets.VOCDetection" in times:
        faster = times["torchvision.datasets.VOCDetection"][1] / times["strata, scaled"][1]
        print(
            f"\nScaled decoding: {faster:.2f} times as fast as torchvision's (goal: 3{'' if faster >= 3 else ', missed'}); its pixels against whole decoding: {errors(full, scaled)}."
        )
        met &= faster >= 3
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=os.environ.get("STRATA_DATA"),
        help="folder with mnist/ and VOCdevkit/VOC2012",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, nargs="*", default=[224, 96])
    parser.add_argument(
        "--opponents", help="interpreter that has torchcodec, torchvision and simplejpeg"
    )
    arguments = parser.parse_args()
    if arguments.data_dir is None:
        parser.error("--data-dir, or STRATA_DATA")
    met = True
    print(
        f"load when it began: {' '.join(f'{x:.1f}' for x in os.getloadavg())} on {len(os.sched_getaffinity(0))} processors"
    )
    if (arguments.data_dir / "mnist").is_dir():
        met &= mnist(arguments.data_dir, arguments.rounds, sys.executable)
    for size in arguments.size:
        if (arguments.data_dir / "VOCdevkit/VOC2012").is_dir():
            met &= voc(
                arguments.data_dir, arguments.rounds, size, sys.executable, arguments.opponents
            )
    print(f"\nload when it ended: {' '.join(f'{x:.1f}' for x in os.getloadavg())}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
