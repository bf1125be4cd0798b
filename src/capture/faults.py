# SPDX-License-Identifier: Apache-2.0
"""Wrong networks on purpose, for the power of the proof: the capture plants POWER in the reference,
tests plant any of FAULTS in a real level.

A fault changes a module in place and returns a sentence that says where; NotApplicable when the
network has nothing to break that way.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from strata_sdk.models import flatten_outputs

ACTIVATIONS = (
    nn.ReLU,
    nn.ReLU6,
    nn.GELU,
    nn.SiLU,
    nn.Hardswish,
    nn.LeakyReLU,
    nn.ELU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Mish,
    nn.Softplus,
    nn.PReLU,
    nn.Hardsigmoid,
)
PRODUCTS = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
FUNCTIONAL = {
    torch.relu,
    torch.relu_,
    Tensor.relu,
    Tensor.relu_,
    nn.functional.relu,
    nn.functional.gelu,
    nn.functional.silu,
    torch.tanh,
    Tensor.tanh,
    nn.functional.relu6,
    nn.functional.hardswish,
    nn.functional.leaky_relu,
    nn.functional.elu,
    nn.functional.mish,
}


class NotApplicable(ValueError):
    """The network has nothing that this fault could break."""


def apply_fault(module: nn.Module, name: str, attempt: int = 0) -> str:
    """Plants fault `name` in an eval-mode module, in place; returns what was done. `attempt`: 0
    plants it where it is most usual, 1 and 2 at other places. Raises NotApplicable or KeyError."""
    with torch.no_grad():
        return FAULTS[name](module, attempt)


def _all(module: nn.Module, kinds: type | tuple[type, ...]) -> list[tuple[str, nn.Module]]:
    return [(name, m) for name, m in module.named_modules() if isinstance(m, kinds)]


def place(count: int, usual: int, attempt: int) -> int:
    """Which of `count` places a fault is planted at: the usual one, the last, the first. Raises
    NotApplicable where no other is left."""
    places = list(dict.fromkeys((usual, count - 1, 0))) if count else []
    if attempt >= len(places):
        raise NotApplicable(f"there are {len(places)} places for it")
    return places[attempt]


def _middle(layers: list[Any], what: str, attempt: int = 0) -> Any:
    if not layers:
        raise NotApplicable(f"the network has no {what}")
    return layers[place(len(layers), len(layers) // 2, attempt)]


def _norms(module: nn.Module) -> list[tuple[str, nn.Module]]:
    return [
        (n, m)
        for n, m in _all(module, _BatchNorm)
        if m.track_running_stats and m.running_mean is not None
    ]


def _replace(module: nn.Module, name: str, value: Tensor) -> None:
    """Gives the module a new tensor; never writes into the old one, which a copy may share
    (shared_copy)."""
    if name in module._parameters:
        module._parameters[name] = nn.Parameter(value.detach(), requires_grad=False)
    else:
        module._buffers[name] = value.detach()


def shared_copy(module: nn.Module) -> nn.Module:
    """A copy whose tensors are the original's, to plant a fault in without copying the weights."""
    tensors = {id(t): t for t in [*module.parameters(), *module.buffers()]}
    return copy.deepcopy(module, tensors)


def _fill(tensor_name: str, value: float, kinds: str) -> Callable[[nn.Module, int], str]:
    """A fault that sets one tensor of the middle module of its kind to a constant, as a level does
    that forgets to read it."""

    def fault(module: nn.Module, attempt: int) -> str:
        layers = (
            _norms(module) if kinds == "BatchNorm" else _all(module, (nn.LayerNorm, nn.GroupNorm))
        )
        name, norm = _middle(
            [(n, m) for n, m in layers if getattr(m, tensor_name, None) is not None],
            f"{kinds} with {tensor_name}",
            attempt,
        )
        _replace(norm, tensor_name, torch.full_like(getattr(norm, tensor_name), value))
        return f"{name}.{tensor_name} = {value:g}"

    return fault


def _bias_zero(module: nn.Module, attempt: int) -> str:
    layers = [(n, m) for n, m in _all(module, PRODUCTS) if m.bias is not None]
    if not layers:
        raise NotApplicable("no linear or convolution layer has a bias")
    name, layer = layers[place(len(layers), len(layers) - 1, attempt)]
    _replace(layer, "bias", torch.zeros_like(layer.bias))
    return f"{name}.bias = 0"


class _SkipCall(TorchFunctionMode):
    """Replaces the `skip`-th call of a functional activation by its argument; counts the calls."""

    def __init__(self, skip: int) -> None:
        super().__init__()
        self.skip, self.count = skip, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in FUNCTIONAL and args:
            self.count += 1
            if self.count - 1 == self.skip:
                return args[0]
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def _activation_dropped(module: nn.Module, attempt: int) -> str:
    activations = _all(module, ACTIVATIONS)
    if activations:
        name, activation = _middle(activations, "activation", attempt)
        parent = module.get_submodule(name.rpartition(".")[0])
        setattr(parent, name.rpartition(".")[2], nn.Identity())
        return f"{name} ({type(activation).__name__}) left out"
    layers = [m for _, m in _all(module, PRODUCTS)]
    if not layers:
        raise NotApplicable("the network has no activation module")
    inner = module.forward

    def forward(*args, **kwargs):
        with _SkipCall(attempt) as calls:
            result = inner(*args, **kwargs)
        if calls.count <= attempt:
            raise NotApplicable(f"the network has {calls.count} activations")
        return result

    module.forward = forward
    return f"functional activation {attempt + 1} left out"


def _shortcut_dropped(module: nn.Module, attempt: int) -> str:
    # Where the two branches have the same shape nothing but the sum changes; such blocks are the
    # most common, so the middle one is taken.
    name, block = _middle(_residual_blocks(module), "residual block that this fault knows", attempt)
    if getattr(block, "use_res_connect", False) is True:
        block.use_res_connect = False
    else:
        block.forward = MethodType(_WITHOUT_SHORTCUT[type(block).__name__], block)
    return f"{name}: the shortcut is not added"


def _basic_block(self: Any, x: Tensor) -> Tensor:
    return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))


def _bottleneck(self: Any, x: Tensor) -> Tensor:
    out = self.relu(self.bn1(self.conv1(x)))
    return self.relu(self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out))))))


def _vit_block(self: Any, x: Tensor) -> Tensor:
    y = self.ln_1(x)
    y, _ = self.self_attention(y, y, y, need_weights=False)
    return self.mlp(self.ln_2(self.dropout(y) + x))


def _convnext_block(self: Any, x: Tensor) -> Tensor:
    return self.layer_scale * self.block(x)


def _encoder_layer(
    self: Any,
    src: Tensor,
    src_mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    mask = nn.functional._canonical_mask(
        mask=src_key_padding_mask,
        mask_name="src_key_padding_mask",
        other_type=nn.functional._none_or_dtype(src_mask),
        other_name="src_mask",
        target_type=src.dtype,
    )
    if self.norm_first:
        x = src + self._sa_block(self.norm1(src), src_mask, mask, is_causal=is_causal)
        return self._ff_block(self.norm2(x))
    x = self.norm1(src + self._sa_block(src, src_mask, mask, is_causal=is_causal))
    return self.norm2(self._ff_block(x))


_WITHOUT_SHORTCUT: dict[str, Callable] = {
    "BasicBlock": _basic_block,
    "Bottleneck": _bottleneck,
    "EncoderBlock": _vit_block,
    "CNBlock": _convnext_block,
    "TransformerEncoderLayer": _encoder_layer,
}


def _residual_blocks(module: nn.Module) -> list[tuple[str, nn.Module]]:
    return [
        (n, m)
        for n, m in module.named_modules()
        if type(m).__name__ in _WITHOUT_SHORTCUT or getattr(m, "use_res_connect", False) is True
    ]


def _stride_moved(module: nn.Module, _attempt: int) -> str:
    for name, block in module.named_modules():
        convolutions = [m for m in block.children() if isinstance(m, nn.Conv2d)]
        strided = [c for c in convolutions if c.stride == (2, 2)]
        plain = [c for c in convolutions if c.stride == (1, 1)]
        if type(block).__name__ in ("BasicBlock", "Bottleneck") and strided and plain:
            strided[0].stride, plain[0].stride = (1, 1), (2, 2)
            return f"{name}: stride 2 moved to the other convolution"
    raise NotApplicable("the network has no strided residual block of torchvision's")


def _ceil_mode(module: nn.Module, attempt: int) -> str:
    name, pool = _middle(_all(module, (nn.MaxPool2d, nn.AvgPool2d)), "pooling layer", attempt)
    pool.ceil_mode = not pool.ceil_mode
    return f"{name}.ceil_mode = {pool.ceil_mode}"


def _bn_eps(module: nn.Module, _attempt: int) -> str:
    norms = _norms(module)
    _middle(norms, "BatchNorm")
    for _, norm in norms:
        norm.eps *= 1.1
    return f"epsilon of all {len(norms)} BatchNorms 1.1 times as large"


def _one_bn_eps(module: nn.Module, attempt: int) -> str:
    name, norm = _middle(_norms(module), "BatchNorm", attempt)
    norm.eps = 1e-4
    return f"{name}.eps = 1e-4"


def _bn_train_mode(module: nn.Module, _attempt: int) -> str:
    norms = _norms(module)
    _middle(norms, "BatchNorm")
    for _, norm in norms:
        norm.train()
        norm.momentum = 0.0  # the statistics stay as loaded; only the mode is wrong
    return f"all {len(norms)} BatchNorms in train mode"


def _dropout_train_mode(module: nn.Module, attempt: int) -> str:
    name, dropout = _middle(
        [(n, m) for n, m in _all(module, nn.modules.dropout._DropoutNd) if m.p > 0],
        "dropout",
        attempt,
    )
    dropout.train()
    return f"{name} in train mode"


def _bf16(module: nn.Module, _attempt: int) -> str:
    module.to(torch.bfloat16)
    inner = module.forward

    def cast(value, dtype):
        return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value

    def forward(*args, **kwargs):
        out = inner(
            *[cast(a, torch.bfloat16) for a in args],
            **{k: cast(v, torch.bfloat16) for k, v in kwargs.items()},
        )
        if isinstance(out, Tensor):
            return cast(out, torch.float32)
        return {name: cast(value, torch.float32) for name, value in flatten_outputs(out).items()}

    module.forward = forward
    return "computed in bfloat16"


def round_tf32(x: Tensor) -> Tensor:
    """float32 rounded to the 10 explicit mantissa bits of TF32, ties away from zero."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def _tf32_emulated(module: nn.Module, _attempt: int) -> str:
    layers = _all(module, PRODUCTS)
    if not layers:
        raise NotApplicable("the network has no linear or convolution layer")
    for _, layer in layers:
        if layer.weight.dtype != torch.float32:
            raise NotApplicable("the weights are not float32")
        _replace(layer, "weight", round_tf32(layer.weight))
        layer.register_forward_pre_hook(lambda _m, args: (round_tf32(args[0]), *args[1:]))
    return f"operands of {len(layers)} linear and convolution layers rounded to TF32"


FAULTS: dict[str, Callable[[nn.Module, int], str]] = {
    "relu_dropped": _activation_dropped,
    "shortcut_dropped": _shortcut_dropped,
    "stride_moved": _stride_moved,
    "ceil_mode": _ceil_mode,
    "bn_mean_zero": _fill("running_mean", 0.0, "BatchNorm"),
    "bn_var_one": _fill("running_var", 1.0, "BatchNorm"),
    "bn_beta_zero": _fill("bias", 0.0, "BatchNorm"),
    "bn_gamma_one": _fill("weight", 1.0, "BatchNorm"),
    "ln_beta_zero": _fill("bias", 0.0, "LayerNorm"),
    "bias_zero": _bias_zero,
    "bn_eps": _bn_eps,
    "one_bn_eps": _one_bn_eps,
    "bn_train_mode": _bn_train_mode,
    "dropout_train_mode": _dropout_train_mode,
    "bf16": _bf16,
    "tf32_emulated": _tf32_emulated,
}

# The structural ones, in order of importance: each is far above the bound where the answers follow
# its layer. Precision, epsilons and modes are for tests.
POWER = (
    "relu_dropped",
    "bias_zero",
    "bn_mean_zero",
    "bn_var_one",
    "bn_beta_zero",
    "shortcut_dropped",
    "ln_beta_zero",
    "stride_moved",
    "ceil_mode",
)
