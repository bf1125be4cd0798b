# SPDX-License-Identifier: Apache-2.0
"""strata: where, between Python and the hardware, do time and memory go, and what is gained by
moving down a level? The command is `strata` (launcher.py); from Python (docs/python.md):

    import stratabench as strata
    r = strata.compare(model, example_inputs, levels=["eager", "compile", "static"])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratabench.asking import (
        Folder,
        Runs,
        compare,
        data,
        export,
        generate,
        load,
        open_store,
        profile,
        sweep,
        train,
    )
    from stratabench.comparison import Case, Check, Comparison, Edge, Proof, Row, Speedup
    from stratabench.documents import Document, Table
    from stratabench.engine import Event
    from stratabench.errors import Interrupted, StrataError
    from stratabench.metering import GpuUse, Reading, meters
    from stratabench.profiles import Operation, Profile
    from stratabench.timing import timeit

# Loaded when they are asked for: the command `strata` comes by here, and needs none of them.
_MODULES = {
    "asking": "Folder Runs compare data export generate load open_store profile sweep train",
    "comparison": "Case Check Comparison Edge Proof Row Speedup",
    "documents": "Document Table",
    "engine": "Event",
    "errors": "Interrupted StrataError",
    "metering": "GpuUse Reading meters",
    "profiles": "Operation Profile",
    "timing": "timeit",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Case",
    "Check",
    "Comparison",
    "Document",
    "Edge",
    "Event",
    "Folder",
    "GpuUse",
    "Interrupted",
    "Operation",
    "Profile",
    "Proof",
    "Reading",
    "Row",
    "Runs",
    "Speedup",
    "StrataError",
    "Table",
    "compare",
    "data",
    "export",
    "generate",
    "load",
    "meters",
    "open_store",
    "profile",
    "sweep",
    "timeit",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
