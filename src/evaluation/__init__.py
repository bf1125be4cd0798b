# SPDX-License-Identifier: Apache-2.0
"""The user's own score (docs/proof.md, "Accuracy against speed"): inputs() and score() of a file,
each called in a process of its own. Needs numpy and safetensors, no torch."""
