# SPDX-License-Identifier: Apache-2.0
"""null_py: does nothing. Its time is what the Python SDK's loop adds to every Python level."""

from strata_sdk import Job, Level


class Null(Level):
    def load(self, job: Job) -> None:
        pass

    def load_weights(self, weights: str) -> None:
        pass

    def set_input(self, inputs) -> None:
        pass

    def run(self) -> None:
        pass

    def outputs(self) -> tuple:
        return ()
