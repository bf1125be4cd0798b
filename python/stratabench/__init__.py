# SPDX-License-Identifier: Apache-2.0
"""strata: where, between Python and the hardware, do time and memory go, and what is gained by
moving down a level? The command is `strata` (launcher.py)."""
