# SPDX-License-Identifier: Apache-2.0
"""More moves of network_moves.py: images grown, taken apart and padded, gates, orders along an
axis. Of orders the values alone are drawn: places of values near each other are rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from network_moves import Draw


def grown(d: Draw, x: str) -> str:
    """By a transposed convolution, or to another size."""
    if d.rank(x) not in (3, 4, 5):
        return ""
    axes, channels = d.rank(x) - 2, d.shape(x)[1]
    if axes == 2 and d.random() < 0.6:
        groups = d.choice((1, 1, 1, channels))
        stride = d.choice((1, 2, 2, [1, 3]))
        return d.step(
            "conv_transpose",
            [x],
            {
                "out": groups * d.choice((1, 3, 4)) if groups > 1 else d.choice((1, 5, 8, 16)),
                "kernel": d.choice((2, 3, [1, 4])),
                "stride": stride,
                "padding": d.choice((0, 0, 1)),
                "output_padding": 1 if stride == 2 and d.random() < 0.3 else 0,
                "dilation": d.choice((1, 1, 2)),
                "groups": groups,
                "bias": d.random() < 0.5,
            },
        )
    line = {1: "linear", 2: "bilinear", 3: "trilinear"}[axes]
    mode = d.choice(("nearest", "nearest-exact", line, line, *(["bicubic"] if axes == 2 else [])))
    how = {"mode": mode} | ({} if "nearest" in mode else {"align_corners": d.random() < 0.3})
    if d.random() < 0.5:
        return d.step("interpolate", [x], how | {"scale_factor": d.choice((2, 1.5, 0.7))})
    size = [d.choice((1, 2, 5, 8)) for _ in range(axes)]
    return d.step("interpolate", [x], how | {"size": size})


def gate(d: Draw, x: str) -> str:
    if d.rank(x) < 2 or d.random() < 0.5:
        return d.step("glu", [x], {"dim": d.dim(x)})
    return d.step("prelu", [x], {"num_parameters": d.choice((1, d.shape(x)[1]))})


def instance_norm(d: Draw, x: str) -> str:
    if d.rank(x) != 4:
        return ""
    rows = d.values[x].flatten(2)
    # of equal values nothing is left but the rounding of their mean
    if rows.std(-1, correction=0).min() < 0.01 * rows.abs().max():
        return ""
    y = d.step("instance_norm", [x], {"affine": d.random() < 0.5, "eps": 1e-3})
    # its mean, which scores are made of, is nothing but rounding
    return d.step("hardswish", [y], {}) if y and d.trains else y


def shuffled(d: Draw, x: str) -> str:
    kind = d.choice(("pixel_shuffle", "pixel_unshuffle", "unfold", "unfold", "folded"))
    if kind.startswith("pixel"):
        way = {"pixel_shuffle": "upscale_factor", "pixel_unshuffle": "downscale_factor"}
        return d.step(kind, [x], {way[kind]: 2})
    return d.step(
        kind,
        [x],
        {
            "kernel_size": d.choice((1, 2, 3, [2, 1])),
            "stride": d.choice((1, 2, [1, 2])),
            "padding": d.choice((0, 1)),
            "dilation": d.choice((1, 1, 2)),
        },
    )


def edge(d: Draw, x: str) -> str:
    if d.rank(x) not in (3, 4):
        return ""
    widths = [d.choice((0, 1, 2)) for _ in range(2 * (d.rank(x) - 2))]
    if d.random() < 0.2:
        return d.step("pad", [x], {"pad": [-1, *widths[1:]], "value": 0.5})
    return d.step(
        "pad", [x], {"pad": widths, "mode": d.choice(("reflect", "replicate", "circular"))}
    )


def most(d: Draw, x: str) -> str:
    if d.rank(x) != 4:
        return ""
    return d.step("adaptive_max_pool2d", [x], {"output_size": d.choice((1, 2, [2, 3], [1, 4]))})


def in_order(d: Draw, x: str) -> str:
    kind = d.choice(("sorted", "top", "extreme", "amin"))
    if kind == "amin":
        return d.step("amin", [x], {"dim": d.dim(x), "keepdim": d.random() < 0.5})
    how = {"dim": d.dim(x), "largest": d.random() < 0.5}
    if kind == "top":
        how["k"] = d.choice((1, 2, 3))
    return d.step(kind, [x], how)


PARTS_TO_TRAIN = [grown, grown, gate, instance_norm, shuffled, edge, most]
PARTS = [*PARTS_TO_TRAIN, in_order, in_order]
