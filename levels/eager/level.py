# SPDX-License-Identifier: Apache-2.0
"""eager: the user's module, called from Python. Every other level is measured against it."""
from strata_sdk.torch_level import TorchLevel


class Eager(TorchLevel):
    """TorchLevel with nothing changed: its defaults are this level."""
