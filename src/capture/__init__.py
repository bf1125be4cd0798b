# SPDX-License-Identifier: Apache-2.0
"""Captures one network once, for every level: weights, inputs, float64 reference, envelope, planted
faults, export. docs/bundle.md is its contract."""
