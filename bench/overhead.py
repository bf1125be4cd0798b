#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The harness's own cost an iteration, by the levels that do nothing. Goals: under 2 us in C++,
under 5 us in Python. Exit code 1 if missed."""

import sys

from common import compare

GOAL_US = {"null_cpp": 2.0, "null_py": 5.0}

result = compare(
    "mnist_convnet", "--levels", "null_cpp,null_py", "--restarts", "4", "--budget", "10s"
)
missed = False
for row in result["cases"][0]["rows"]:
    median_us = row["end_to_end_ms"]["median"] * 1000
    goal = GOAL_US[row["level"]]
    missed |= median_us > goal
    print(
        f"{row['level']}: median {median_us:.3f} us, p99 {row['end_to_end_ms']['p99'] * 1000:.3f} us, goal {goal} us: {'reached' if median_us <= goal else 'MISSED'}"
    )
sys.exit(missed)
