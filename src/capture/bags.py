# SPDX-License-Identifier: Apache-2.0
"""nn.EmbeddingBag where every bag has as many rows of the table as the others."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

ADD_UP = {0: torch.ops.aten.sum.dim_IntList, 1: torch.ops.aten.mean.dim}  # by embedding_bag's mode


def rows_of_each(node: Node, args: dict[str, Any]) -> int:
    """How many rows each bag of a call of embedding_bag adds up or averages; 0: bags that vary or
    that only the inputs tell, weights of rows, rows left out, the largest of rows, or results other
    than the first that are used."""
    offsets, indices = args["offsets"], args["indices"]
    bags = node.meta["val"][0].shape[0]
    if (
        args["mode"] not in ADD_UP
        or not isinstance(offsets, Tensor)
        or bags == 0
        or len(indices.shape) != 1
        or args["per_sample_weights"] is not None
        or args.get("padding_idx") not in (None, -1)
        or any(part.users for part in node.users if part.args[1] != 0)
    ):
        return 0
    rows, rest = divmod(indices.shape[0], bags)
    even = rest == 0 and torch.equal(offsets.long(), torch.arange(len(offsets)) * rows)
    return rows if even else 0
