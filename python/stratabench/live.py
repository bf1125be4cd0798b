# SPDX-License-Identifier: Apache-2.0
"""A network that lives in this process, carried to those of the levels: the object itself, pickled
with the classes that a notebook or script defines, beside a file that gives it as `FILE.py:live`
does any other network. Both lie in strata's cache under the hash of what they hold, so that a run
of one can be resumed, and a network that is changed is another one."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stratabench.errors import StrataError
from stratabench.launcher import cache, is_private

SOURCE = """\
# Written by stratabench: the network that was given to it as an object.
import pickle
import sys
from pathlib import Path

import torch

sys.path += [path for path in {paths!r} if path not in sys.path]


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs, **named):
        return self.function(*inputs, **named)


def live():
    with open(Path(__file__).with_name("live.pickle"), "rb") as file:
        network, example = pickle.load(file)
    if not isinstance(network, torch.nn.Module):
        network = Function(network)
    return (network, example) if example is not None else network
"""


def is_live(model: object) -> bool:
    return not isinstance(model, (str, os.PathLike))


def keep(model: Any, example_inputs: Any = None) -> str:
    """The name under which the program finds a torch.nn.Module or a function of tensors. A module
    on another device is copied to the CPU, one that torch.compile wraps is taken as it was before.

    Raises StrataError where it cannot be carried to another process."""
    module = _plain(model)
    if not hasattr(module, "state_dict") and example_inputs is None:
        raise StrataError(
            f"{name_of(module)} is a function, and what it takes is not known",
            "give example_inputs, or the name of a function that builds a network as 'file.py:build'",
            where="example_inputs",
            exit_code=2,
        )
    held = (_on_cpu(module), _on_cpu(example_inputs))
    source = SOURCE.format(paths=own_paths())
    with _carrying(name_of(module)):
        digest = hashlib.sha256(source.encode() + _digest(held)).hexdigest()[:24]
    folder = cache() / "live" / digest
    path = folder / f"{name_of(module)}.py"
    if path.exists():
        os.utime(folder)  # `strata cache` goes by it
        return f"{path}:live"
    cache().mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(cache()):
        raise StrataError(
            f"others can write into {cache()}, and what is put there is run",
            f"chmod go-w {cache()}, or set STRATA_CACHE to a folder of your own",
            exit_code=3,
        )
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    half = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".half-"))
    try:
        (half / "live.pickle").write_bytes(pickled(held, name_of(module)))
        (half / path.name).write_text(source, encoding="utf-8")
        os.rename(half, folder)
    except OSError:
        shutil.rmtree(half, ignore_errors=True)
        if not path.exists():  # another process was faster with the same
            raise
    return f"{path}:live"


def _plain(model: Any) -> Any:
    """Without what is no part of the network."""
    import torch

    if isinstance(model, torch.jit.ScriptModule):
        raise StrataError(
            "a TorchScript program has no Python to be called from",
            "save it (model.save('net.pt')) and give the file's path",
            where="model",
            exit_code=2,
        )
    if isinstance(model, type):
        raise StrataError(
            f"{model.__name__} is a class, not a network made from it",
            f"give {model.__name__}(...)",
            where="model",
            exit_code=2,
        )
    module = getattr(model, "_orig_mod", model)  # of torch.compile(module)
    module = getattr(module, "_torchdynamo_orig_callable", module)  # of torch.compile(function)
    if not callable(module):
        raise StrataError(
            f"a model is a torch.nn.Module, a function of tensors, a name or a path, not of type {type(model).__name__}",
            where="model",
            exit_code=2,
        )
    return module


def name_of(module: Any) -> str:
    """A file's name: of the class, or the function."""
    name = getattr(module, "__name__", "") or type(module).__name__
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name).strip("_") or "network"


def _on_cpu(value: Any) -> Any:
    """A copy on the CPU where it, or a part of it, is elsewhere."""
    import copy

    import torch

    if isinstance(value, torch.nn.Module):
        tensors = (*value.parameters(), *value.buffers())
        if all(tensor.device.type == "cpu" for tensor in tensors):
            return value
        if any(tensor.is_meta for tensor in tensors):
            raise StrataError(
                "parameters of the network are on the device `meta`: they have no values",
                "give them values first, as module.to_empty(device='cpu') and an initialisation do",
                where="model",
                exit_code=2,
            )
        return copy.deepcopy(value).to("cpu")
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {name: _on_cpu(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_on_cpu(part) for part in value)
    return value


def pickled(value: Any, name: str) -> bytes:
    """With what a notebook or script defines. Raises StrataError where it cannot be."""
    with _carrying(name):
        import cloudpickle

        return bytes(cloudpickle.dumps(value, protocol=5))


@contextlib.contextmanager
def _carrying(name: str) -> Iterator[None]:
    """Says why what is called `name` cannot be pickled."""
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        raise StrataError(
            "a network that is an object is carried by cloudpickle, which this environment lacks",
            "pip install cloudpickle, or give the network as 'file.py:build'",
            exit_code=3,
        ) from None
    try:
        yield
    except Exception as error:  # what a user's objects raise may be anything
        raise StrataError(
            f"{name} cannot be carried to another process: {type(error).__name__}: {error}",
            "leave out of it what belongs to this process (open files, locks, connections), or "
            "give a function that builds it, as 'file.py:build'",
            where="model",
            exit_code=2,
        ) from error


def _digest(value: Any) -> bytes:
    """Of what the value holds: PyTorch writes addresses of memory into pickles of tensors, so that
    those of the same network differ."""
    import cloudpickle
    import torch

    digest, seen = hashlib.sha256(), dict[int, int]()

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, item: Any) -> Any:
            """A tensor's place among those that were met, once its content is in the digest."""
            if (
                not isinstance(item, torch.Tensor)
                or item.layout != torch.strided
                or item.is_quantized
            ):
                return None
            if id(item) not in seen:
                digest.update(
                    f"{type(item)} {item.dtype} {item.shape} {item.stride()} {item.requires_grad}".encode()
                )
                digest.update(_bytes_of(item))
                seen[id(item)] = len(seen)
            return "tensor", seen[id(item)]

    structure = io.BytesIO()
    Pickler(structure, protocol=5).dump(value)
    return digest.digest() + structure.getvalue()


def _bytes_of(tensor: Any) -> memoryview:
    """Its elements in order. By numpy: what PyTorch copies with threads hangs in a process that was
    forked beside them."""
    import numpy
    import torch

    plain = tensor.detach().resolve_conj().resolve_neg()
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    same = plain.view(whole.get(plain.element_size(), plain.dtype))  # numpy has no bfloat16
    return memoryview(numpy.ascontiguousarray(same.numpy()).reshape(-1).view(numpy.uint8))


def own_paths() -> list[str]:
    """Where modules of the user's own are found, which the interpreter does not look at by
    itself."""
    known = set(sysconfig.get_paths().values())
    paths = dict.fromkeys(os.path.abspath(path) for path in sys.path)
    inside = (sys.prefix, sys.base_prefix) if sys.prefix != sys.base_prefix else ()
    return [
        path
        for path in paths
        if os.path.isdir(path)
        and path not in known
        and not path.startswith(tuple(f"{place}/lib" for place in (*inside, "/usr")))
    ]
