# SPDX-License-Identifier: Apache-2.0
"""What the author of a Python level includes: `Level` and what it may be able to do besides, `Job`,
and the errors that have a meaning for the driver. Imports neither torch nor numpy.

A level is started as `{python} -m strata_sdk {level}`; strata_sdk.worker owns main(), the protocol
and the timed loop.
"""

from . import overlay
from .capabilities import (
    MeasuresLayers,
    Operation,
    Profiles,
    ReadsWeights,
    RecordedIteration,
    Reports,
    Serves,
    TimesOperations,
    Trains,
)
from .errors import LevelError, UnavailableError, UnsupportedError
from .level import Job, Level
from .sample_level import SampleLevel

overlay.append()

__all__ = [
    "Job",
    "Level",
    "LevelError",
    "MeasuresLayers",
    "Operation",
    "Profiles",
    "ReadsWeights",
    "RecordedIteration",
    "Reports",
    "SampleLevel",
    "Serves",
    "TimesOperations",
    "Trains",
    "UnavailableError",
    "UnsupportedError",
]
