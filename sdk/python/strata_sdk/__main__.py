# SPDX-License-Identifier: Apache-2.0
"""`python -m strata_sdk [FOLDER]`: runs the level of FOLDER (default: STRATA_LEVEL_DIR) as a
worker."""

from .worker import main

main()
