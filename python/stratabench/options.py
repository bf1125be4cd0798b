# SPDX-License-Identifier: Apache-2.0
"""What can be asked for by keyword: the members of the requests of docs/engine.md, as types. What
they mean, and what is allowed, the program says (`strata compare --help`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias, TypedDict

Words: TypeAlias = str | Sequence[str]
Numbers: TypeAlias = int | Sequence[int]
Place: TypeAlias = str | os.PathLike[str]

# Of these the program takes a text with commas, which a list here becomes ...
JOINED = ("mode", "precision", "size", "clients", "init")
# ... and of these a list of texts, which one here becomes.
LISTED = ("input", "augment")


class NetworkOptions(TypedDict, total=False):
    """Of a network, its inputs and its capture.

    Attributes:
        input: the form of each input, as "1x3x224x224", "ids=int64:1x128:0..30521" or
            "mask=float32:1x12:1" (a constant); a list for several.
        size: of images, pixels: 224, or "224x320" as height x width; a list where `batch` may be.
        inputs: a .safetensors or .npz file that holds the inputs.
        input_from: a folder of JPEG or PNG images that inputs are made from.
        synthetic: random inputs in place of photographs.
        weights: a file of weights: .safetensors, or .pt that loads without pickled code.
        seed: of weights that are drawn, and of random inputs.
        fresh: capture the network again, whatever is cached.
        timeout_s: the longest time, seconds, for capturing the network (default: 3600) and for one
            request to a level (default: 600).
        max_megapixels: the largest image that `input_from` may hold.
        max_expansion: how many times its size a .pt, .pt2 or .npz file may unpack to.
    """

    input: Words
    size: Any
    inputs: Place
    input_from: Place
    synthetic: bool
    weights: Place
    seed: int
    fresh: bool
    timeout_s: float
    max_megapixels: float
    max_expansion: float


class CompareOptions(NetworkOptions, total=False):
    """Of `compare`, beside those of the network.

    Attributes:
        levels: those that take part, as ["eager", "compile@freezing"] (default: all that can).
        mode: "infer", "train" (an iteration is one step of the optimiser), or a list: a case each.
        batch: the batch size; a list makes a case of each.
        precision: "fp32", "tf32", "bf16", "amp-bf16", or a list: a case each.
        threads: of every level (default: physical cores); a list makes a case of each.
        clients: serve so many requests at once, too; a number or a list.
        device: "cpu" or "cuda".
        optimiser: of training, as "sgd:lr=0.01,momentum=0.9" or "adam:lr=0.001".
        loss: of training: "cross_entropy", "nll", "bce", "bce_with_logits", "mse", "l1",
            "smooth_l1", "output" (the network's first output is its loss) or "file.py:loss".
        reference: the level that speedups are against (default: "eager").
        eval: a score of every level's outputs, as "file.py:score".
        slo: what each level needs to meet a limit on a request's time, as "p99=20ms".
        dynamic: one artefact over several batch sizes, as "batch=1..32".
        data_dir: the folder of data sets.
        skip_bad: leave out images of a data set that cannot be read, and count them.
        memory_limit_gib: memory that each level may use, GiB (default: no limit).
        dataset: inputs from the training images of this data set, or of a folder of images.
        preset: "quick", "standard" or "thorough": how often and how long is measured.
        name: a name for the run.
        tuned: find each level's best variant, too, and measure it beside the default.
        deep: compare layer by layer, and show where levels first differ.
        profile: time every level's operations one by one, too, in a pass of its own.
        aa: run every level against itself, too, and show the false alarms.
        allow_debug: time debug builds of levels, too.
        restarts: fresh processes of each level (default: the preset's).
        weight_sets: sets of weights that outputs are proven on beside those that are timed.
        order_seed: of the order of blocks (default: drawn and stored).
        budget_s: measured time of a case, all levels together, seconds (default: the preset's); of
            `sweep`: of all points together.
        ci_width: stop when every interval is this narrow, a share of the speedup, as 0.01.
    """

    levels: Words
    mode: Words
    batch: Numbers
    precision: Words
    threads: Numbers
    clients: Words | Numbers
    device: str
    optimiser: str
    loss: str
    reference: str
    eval: str
    slo: str
    dynamic: str
    data_dir: Place
    skip_bad: bool
    memory_limit_gib: float
    dataset: Place
    preset: str
    name: str
    tuned: bool
    deep: bool
    profile: bool
    aa: bool
    allow_debug: bool
    restarts: int
    weight_sets: int
    order_seed: int
    budget_s: float
    ci_width: float


class SweepOptions(CompareOptions, total=False):
    """Of `sweep`, beside those of `compare`.

    Attributes:
        point_time_s: measured time of every point, seconds (default: its share of `budget_s`).
        find_batch: search for a batch in place of measuring a list: "throughput", "memory",
            "utilisation", or a limit as "p99=20ms"; `batch`, as [1, 256], says between which.
        retry: run levels also at points no smaller than one at which they ran out of memory.
        full_proof: prove every point as `compare` does, not the corners alone.
    """

    point_time_s: float
    find_batch: str
    retry: bool
    full_proof: bool


class TrainOptions(TypedDict, total=False):
    """Of `train`.

    Attributes:
        levels: those that train (default: all that can).
        size: height and width that images are brought to, pixels: 32, or "224x160".
        optimiser: as of `compare`.
        loss: as of `compare`.
        seed: of the weights and the order of images.
        order_seed: of the order of images and levels (default: drawn and stored).
        device: "cpu" or "cuda".
        data_dir: the folder of data sets.
        skip_bad: leave out images that cannot be read, and count them.
        timeout_s: as of `compare`, seconds.
        memory_limit_gib: memory that each level may use, GiB (default: no limit).
        allow_debug: train debug builds of levels, too.
        fresh: capture the network again, whatever is cached.
        name: a name for the run.
        epochs: how often every image is seen.
        repeats: trainings of each level, each with weights and an order of its own.
        batch: images of one step.
        threads: of every level (default: physical cores).
        images: at most so many images of each split, the first ones (default: all).
        proofs: windows of steps of each repeat that are proven against eager, beside the last.
        norms: steps between two measurements of how large activations and gradients are in each
            layer; 0: never.
        augment: "flip", "crop", or both as a list.
        init: weights to begin with, as "torch", "kaiming:fan_out", "xavier", "normal:0.01" or a
            .safetensors file; a list is trained one after the other, and compared.
        scale: do a part of it, labelled as such: "0.01", or "epochs=0.1,images=0.01".
        rule: how it is decided whether levels learn equally: "margin", or "mlperf" as well.
        sweep_init: train from six initialisations, two of them badly scaled.
        partial: accept a set whose files hold fewer images than were published.
        margin: test accuracy within which a level learns as well as the reference, a share: 0.01.
        target: report when each level first reaches this test accuracy, a share: 0.95.
        loss_margin: as `margin`, of the test loss.
    """

    levels: Words
    size: Any
    optimiser: str
    loss: str
    seed: int
    order_seed: int
    device: str
    data_dir: Place
    skip_bad: bool
    timeout_s: float
    memory_limit_gib: float
    allow_debug: bool
    fresh: bool
    name: str
    epochs: int
    repeats: int
    batch: int
    threads: int
    images: int
    proofs: int
    norms: int
    augment: Words
    init: Words
    scale: str
    rule: str
    sweep_init: bool
    partial: bool
    margin: float
    target: float
    loss_margin: float


class ExportOptions(NetworkOptions, total=False):
    """Of `export`, beside those of the network.

    Attributes:
        precision: "fp32" is all there is.
        batch: the batch size (default: the model's own).
        threads: of the program (default: physical cores).
        device: "cpu" or "cuda": where the program runs.
        weight_sets: as of `compare`.
        force: replace a folder that an earlier export made, with all that is in it.
    """

    precision: str
    batch: int
    threads: int
    device: str
    weight_sets: int
    force: bool


class GenerateOptions(NetworkOptions, total=False):
    """Of `generate`, beside those of the network.

    Attributes:
        precision: "fp32", "bf16", "amp-bf16", or "tf32" (of the target "cuda").
        batch: the batch size (default: the model's own).
        threads: of the capture, and of the program where it is given none.
        target: what the program calls: "onednn", "libtorch" or "cuda".
        loss: of the training step, as in `compare`.
        clip_norm: of the training step: clip gradients to this norm of all together.
        memory_budget: the most that activations and gradients may take, "200MB" or "70%"; what does
            not fit is computed again.
        tune: time the kernels that can run each layer, on this machine, and use the fastest.
        train: a program of a training step: forward, loss, gradients and the optimiser.
    """

    precision: str
    batch: int
    threads: int
    target: str
    loss: str
    clip_norm: float
    memory_budget: str
    tune: bool
    train: bool


def members(options: Mapping[str, Any], several: bool = False) -> dict[str, Any]:
    """Members of a request, of keywords; None is left out. `several`: whether "batch" and "threads"
    of this verb are lists."""
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name in JOINED and not isinstance(value, str):
            values = value if isinstance(value, Sequence) else [value]
            given[name] = (";" if name == "init" else ",").join(str(each) for each in values)
        elif name == "levels" and isinstance(value, str):
            given[name] = value.split(",")
        elif name in LISTED and isinstance(value, str):
            given[name] = [value]
        elif several and name in ("batch", "threads"):
            given[name] = [value] if isinstance(value, Integral) else list(value)
    return given
