#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Over many seeds and all shipped models: how often is a sound level called unequal or mistrusted? Prints a Markdown table; exit code 1 if ever.

Usage: bench/false_accusations.py [SEEDS (20)] [MODEL ...]"""
import sys

from common import compare

MODELS = {"mnist_convnet": [], "resnet18": ["--input", "1x3x64x64"], "resnet34": ["--input", "1x3x64x64"], "resnet50": ["--input", "1x3x96x96"], "resnet101": ["--input", "1x3x64x64"],
          "resnet152": ["--input", "1x3x64x64"]}

seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
chosen = sys.argv[2:] or list(MODELS)
print("| model | seeds | proofs | accused |\n|---|---|---|---|")
total = 0
for model in chosen:
    proofs, accused = 0, []
    for seed in range(seeds):
        rows = compare(model, *MODELS.get(model, []), "--seed", str(seed), "--restarts", "1", "--budget", "1s")["cases"][0]["rows"]
        judged = [row for row in rows if not row["harness"] and row["state"] in ("measured", "unequal", "mistrusted")]
        proofs += len(judged)
        accused += [f"{row['level']} (seed {seed}: {row['reason']})" for row in judged if row["state"] != "measured"]
    total += len(accused)
    print(f"| {model} | {seeds} | {proofs} | {', '.join(accused) or 'none'} |", flush=True)
sys.exit(total > 0)
