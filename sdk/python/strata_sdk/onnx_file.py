# SPDX-License-Identifier: Apache-2.0
"""An ONNX file as a module: in float32 ONNX Runtime runs it, all optimisations off; in float64
ONNX's own reference evaluator does. Its weights are the initialisers that an arithmetic operation
reads, by their names. Needs onnx, numpy, torch, and onnxruntime to run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import models

# initialisers elsewhere are shapes, scales and bounds, which no weight set may change
READERS = {
    "Conv",
    "ConvTranspose",
    "Gemm",
    "MatMul",
    "BatchNormalization",
    "LayerNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "Add",
    "Mul",
    "Gather",
    "PRelu",
    "LSTM",
    "GRU",
    "RNN",
}


class OnnxNetwork(nn.Module):
    """Takes the graph's inputs by name, returns its outputs by name."""

    cannot_export = "an ONNX file holds no PyTorch module"

    def __init__(self, model: Any) -> None:
        import onnx

        super().__init__()
        self.model = model
        # a variance is left as it is: drawn anew it might be negative
        read = {
            name
            for node in model.graph.node
            if node.op_type in READERS
            for name in (node.input[:4] if node.op_type == "BatchNormalization" else node.input)
        }
        for stored in model.graph.initializer:
            if (
                stored.name in read
                and stored.data_type == onnx.TensorProto.FLOAT
                and int(np.prod(stored.dims)) > 1
            ):
                # register_parameter takes no dots
                self._parameters[stored.name] = nn.Parameter(
                    torch.from_numpy(onnx.numpy_helper.to_array(stored).copy())
                )
        self.runs: dict = {}
        weights = {stored.name for stored in model.graph.initializer}
        self.input_names = [
            stored.name for stored in model.graph.input if stored.name not in weights
        ]

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        wide = any(value.dtype == torch.float64 for value in self._parameters.values())
        version = (
            wide,
            torch.get_num_threads(),
            *(
                (id(value), value._version)
                for value in self._parameters.values()
                if not value.is_inference()
            ),
        )
        if version not in self.runs:
            self.runs = {version: self._evaluator() if wide else self._session()}
        values = self.runs[version].run(
            None,
            {name: value.detach().cpu().contiguous().numpy() for name, value in inputs.items()},
        )
        return {
            output.name: torch.from_numpy(np.ascontiguousarray(value))
            for output, value in zip(self.model.graph.output, values)
        }

    def with_weights(self, dtype: type[np.floating]) -> Any:
        """A copy of the file's model that holds the module's weights, all of its float32 numbers as
        `dtype`."""
        import onnx

        model = copy_of(self.model)
        number = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

        def converted(tensor: Any) -> Any:
            array = (
                self._parameters[tensor.name].detach().numpy()
                if tensor.name in self._parameters
                else onnx.numpy_helper.to_array(tensor)
            )
            return onnx.numpy_helper.from_array(array.astype(dtype), tensor.name)

        for stored in model.graph.initializer:
            if stored.data_type == onnx.TensorProto.FLOAT:
                stored.CopyFrom(converted(stored))
        if number != onnx.TensorProto.FLOAT:
            _widen(model, converted, number)
        return model

    def _session(self) -> Any:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
        return ort.InferenceSession(
            self.with_weights(np.float32).SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
        )

    def _evaluator(self) -> Any:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(self.with_weights(np.float64))

    def __getstate__(self) -> dict:
        return self.__dict__ | {"runs": {}}  # sessions cannot be copied


def copy_of(model: Any) -> Any:
    """A copy of a model, its weights included."""
    copied = type(model)()
    copied.CopyFrom(model)
    return copied


def _widen(model: Any, converted: Callable[[Any], Any], number: int) -> None:
    """Turns the float32 of everything but initialisers into the type `number`: inputs, constants,
    casts."""
    import onnx

    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = number
    del model.graph.value_info[:]
    for node in model.graph.node:
        for attribute in node.attribute:
            if (
                attribute.type == onnx.AttributeProto.TENSOR
                and attribute.t.data_type == onnx.TensorProto.FLOAT
            ):
                attribute.t.CopyFrom(converted(attribute.t))
            elif (
                node.op_type in ("Cast", "ConstantOfShape", "EyeLike", "RandomNormal")
                and attribute.name in ("to", "dtype")
                and attribute.i == onnx.TensorProto.FLOAT
            ):
                attribute.i = number


def load(path: Path) -> Any:
    """The checked model of a file, its external data read. Raises ModelError."""
    try:
        import onnx
    except ImportError as error:
        raise models.ModelError(
            "unavailable",
            f"reading {path.name} needs the Python package onnx",
            "install it, or use strata's own interpreter",
        ) from error
    try:
        for data in external_data(path):
            sys.audit("strata.reads", data)
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except Exception as error:
        # protobuf's DecodeError, ValidationError, FileNotFoundError of external data
        raise models.ModelError(
            "usage",
            f"{path} is no ONNX file that onnx {onnx.__version__} can read: {' '.join(str(error).split())[:300] or type(error).__name__}",
            "export or download it again; weights that lie beside the file must be there too",
        ) from error
    return model


def external_data(path: Path) -> list[Path]:
    """The files beside an ONNX file that hold tensors of it; raises what onnx raises."""
    import onnx

    bare = onnx.load(str(path), load_external_data=False)
    tensors = onnx.external_data_helper._get_all_tensors(bare)
    return sorted(
        {
            path.parent / entry.value
            for tensor in tensors
            for entry in tensor.external_data
            if entry.key == "location"
        }
    )


def build(path: Path) -> models.Built:
    """The network in an ONNX file; its inputs as the graph declares them, an open batch as 1."""
    import onnx

    model = load(path)
    weights = {stored.name for stored in model.graph.initializer}
    types = {
        onnx.TensorProto.FLOAT: "float32",
        onnx.TensorProto.DOUBLE: "float64",
        onnx.TensorProto.FLOAT16: "float16",
        onnx.TensorProto.INT64: "int64",
        onnx.TensorProto.INT32: "int32",
        onnx.TensorProto.UINT8: "uint8",
        onnx.TensorProto.INT8: "int8",
        onnx.TensorProto.BOOL: "bool",
    }
    inputs: list[dict] = []
    shaped = True
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        extents = [d.dim_value if d.HasField("dim_value") else 0 for d in tensor.shape.dim]
        if extents and extents[0] == 0:
            extents[0] = 1
        if tensor.elem_type not in types or not all(extents):
            shaped = False  # the person says them with --input
            break
        inputs.append({"name": value.name, "dtype": types[tensor.elem_type], "shape": extents})
    return models.Built(
        OnnxNetwork(model).eval(),
        "onnx",
        path.name,
        f"the ONNX file {path.name}",
        default_inputs=inputs if shaped else None,
        data=[str(data) for data in external_data(path)],
    )
