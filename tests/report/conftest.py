# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Browser, find_chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    assert program
    with Browser(program) as opened:
        yield opened
