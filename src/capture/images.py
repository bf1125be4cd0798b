# SPDX-License-Identifier: Apache-2.0
"""Batches of images: crops of photographs, handwritten digits, a folder of the user's.

Photographs and digits are read from the files inside scikit-learn's and scikit-image's wheels,
without importing either (seconds) and without downloads.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capture.errors import Problem

# The colour photographs (and micrographs) in the wheels; drawings, logos and test patterns are left
# out.
PHOTOGRAPHS = {
    "sklearn": ["china.jpg", "flower.jpg"],
    "skimage": [
        "astronaut.png",
        "chelsea.png",
        "coffee.png",
        "hubble_deep_field.jpg",
        "ihc.png",
        "motorcycle_left.png",
        "retina.jpg",
        "rocket.jpg",
    ],
}
FOLDERS = {"skimage": "data", "sklearn": "datasets/images"}
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
DIGIT_MEAN, DIGIT_STD = 0.1307, 0.3081  # of MNIST, whose models expect it
SUFFIXES = (".jpg", ".jpeg", ".png")
# told by content; others of Pillow's start programs (EPS) or are little tested
FORMATS = (
    "JPEG",
    "PNG",
    "WEBP",
    "BMP",
)
USUAL_MEGAPIXELS = 100
SMALL_PIXELS = (
    4_000_000  # pictures up to this size are kept for their next crop, larger ones are read again
)


def images(
    folder: str | None, count: int, ring: int, shape: list[int], generator: torch.Generator
) -> tuple[list[np.ndarray], str]:
    """`count` batches as uint8 arrays of `shape`, and a phrase on the first `ring` of them."""
    batch, channels, height, width = shape
    needed = count * batch
    if folder:
        paths = _files_of(Path(folder))[:needed]
        source = (
            f"{min(len(paths), ring * batch)} image files of the user's folder {Path(folder).name}"
        )
    elif channels == 1:
        return _digits(count, shape, generator)
    else:
        paths = [
            p
            for package, names in PHOTOGRAPHS.items()
            for p in _shipped(package, FOLDERS[package], names)
        ]
        paths = paths[:needed]
        used = min(len(paths), ring * batch)
        source = f"crops of {used} photographs that scikit-learn and scikit-image ship"
    rng = np.random.default_rng(int(torch.randint(0, 2**31, (1,), generator=generator)))
    pictures: dict[Path, Any] = {}
    planes = []
    for k in range(needed):
        path = paths[k % len(paths)]
        picture = pictures.get(path) or _read(path, channels)
        if needed > len(paths) and picture.width * picture.height <= SMALL_PIXELS:
            pictures[path] = picture
        planes.append(_crop(picture, height, width, rng, whole=bool(folder) and k < len(paths)))
    return [np.stack(planes[i * batch : (i + 1) * batch]) for i in range(count)], source


def _crop(
    picture: Any, height: int, width: int, rng: np.random.Generator, whole: bool
) -> np.ndarray:
    """A crop of the asked aspect, between half and all of what fits (`whole`: all of it, centred),
    resized; (C, height, width) uint8."""
    from PIL import Image

    fit = min(picture.width / width, picture.height / height)
    scale = 1.0 if whole else float(rng.uniform(0.5, 1.0))
    w, h = width * fit * scale, height * fit * scale
    left = (picture.width - w) * (0.5 if whole else float(rng.uniform()))
    top = (picture.height - h) * (0.5 if whole else float(rng.uniform()))
    resized = np.asarray(
        picture.resize(
            (width, height), Image.Resampling.BILINEAR, box=(left, top, left + w, top + h)
        )
    )
    return resized[None] if resized.ndim == 2 else np.ascontiguousarray(resized.transpose(2, 0, 1))


def normalised(pixels: np.ndarray, dtype: torch.dtype) -> Tensor:
    if dtype == torch.uint8:
        return torch.from_numpy(pixels)
    scaled = torch.from_numpy(pixels).to(torch.float32) / 255
    if pixels.shape[1] == 1:
        return ((scaled - DIGIT_MEAN) / DIGIT_STD).to(dtype)
    mean, std = (
        torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1),
        torch.tensor(IMAGENET_STD).view(1, 3, 1, 1),
    )
    return ((scaled - mean) / std).to(dtype)


def _package_folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        # a user's own Python needs the files, not the package
        for folder in _of_the_tools(package):
            return folder
        raise Problem(
            "unavailable",
            f"the photographs and digits lie in {package}, which this Python cannot import",
            f"{sys.executable} -m pip install scikit-learn scikit-image, or use --input-from FOLDER or"
            " --synthetic",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _of_the_tools(package: str) -> list[Path]:
    """The package's folder in strata's own environment, which the driver names in
    STRATA_TOOLS_PYTHON."""
    python = os.environ.get("STRATA_TOOLS_PYTHON", "")
    return (
        sorted(Path(python).parent.parent.glob(f"lib/python3*/site-packages/{package}"))
        if python
        else []
    )


def _shipped(package: str, folder: str, names: list[str]) -> list[Path]:
    base = _package_folder(package) / folder
    files = [base / n for n in names if (base / n).is_file()]
    if not files:
        raise Problem(
            "unavailable",
            f"{package} ships none of the photographs {', '.join(names)} in {folder}",
            "use --input-from FOLDER or --synthetic",
        )
    return files


def _read(path: Path, channels: int) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise Problem(
            "unavailable",
            "reading images needs Pillow, which this Python cannot import",
            "install pillow, or use --synthetic",
        ) from error
    limit = float(os.environ.get("STRATA_MAX_MEGAPIXELS") or USUAL_MEGAPIXELS)
    Image.MAX_IMAGE_PIXELS = None  # Pillow's own bound is looser, and none of --max-megapixels
    try:
        with Image.open(path, formats=FORMATS) as picture:
            if picture.width * picture.height > limit * 1e6:
                raise Problem(
                    "usage",
                    f"the image {path} has {picture.width} x {picture.height} pixels, {picture.width * picture.height / 1e6:.0f} million; allowed are {limit:g} million",
                    "remove it from the folder, or allow more with --max-megapixels",
                )
            return picture.convert("RGB" if channels == 3 else "L")
    except (OSError, SyntaxError, ValueError, MemoryError) as error:
        raise Problem(
            "usage",
            f"cannot read the image {path}: {' '.join(str(error).split())}",
            "remove the file from the folder or replace it",
        ) from error


def _files_of(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise Problem(
            "usage", f"--input-from {folder} is not a folder", "give a folder of JPEG or PNG files"
        )
    try:
        files = sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
    except OSError as error:
        raise Problem(
            "usage", f"cannot list the folder {folder}: {error.strerror}", "check its permissions"
        ) from error
    if not files:
        raise Problem(
            "usage",
            f"the folder {folder} holds no JPEG or PNG file",
            f"files must end in {', '.join(SUFFIXES)}",
        )
    return files


@functools.cache
def _digit_images() -> np.ndarray:
    """1797 handwritten digits of 8x8 pixels, uint8."""
    [path] = _shipped("sklearn", "datasets/data", ["digits.csv.gz"])
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    return np.round(table[:, :-1].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)


def _digits(
    count: int, shape: list[int], generator: torch.Generator
) -> tuple[list[np.ndarray], str]:
    from PIL import Image

    batch, _, height, width = shape
    digits = _digit_images()
    order = torch.randperm(len(digits), generator=generator).tolist()
    planes = []
    for k in range(count * batch):
        # a second lap moves every digit by a pixel
        digit = np.roll(digits[order[k % len(digits)]], k // len(digits), axis=1)
        planes.append(
            np.asarray(Image.fromarray(digit).resize((width, height), Image.Resampling.BILINEAR))[
                None
            ]
        )
    return [
        np.stack(planes[i * batch : (i + 1) * batch]) for i in range(count)
    ], "handwritten digits that scikit-learn ships"
