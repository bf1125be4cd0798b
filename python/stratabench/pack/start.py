# SPDX-License-Identifier: Apache-2.0
"""The file that `run` of a pack starts: finds the pack's own modules, and no others first."""

import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [os.path.dirname(os.path.dirname(here)), *(each for each in sys.path if each != here)]
from stratabench.pack.target import main  # noqa: E402

main()
