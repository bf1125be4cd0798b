# SPDX-License-Identifier: Apache-2.0
"""From a level's exception to what its row says (strata_sdk.errors)."""

from __future__ import annotations

import sys

from commands import ROOT

sys.path.insert(0, str(ROOT / "sdk/python"))

from strata_sdk.errors import describe

COMMAND = "C++ compile error\n\nCommand:\ng++ main.cpp " + "-D MACRO " * 200 + "\n\nOutput:\n"


def test_a_compiler_is_quoted_in_front_of_the_command_that_called_it():
    told = describe(RuntimeError(f"{COMMAND}a.cpp:3:1: error: 'x' was not declared\n  3 | x;\n"))
    assert told["code"] == "failed"
    assert told["what"].startswith("RuntimeError: a.cpp:3:1: error: 'x' was not declared in: C++")
    assert len(told["what"]) < 700


def test_a_missing_header_of_python_is_told_with_its_package():
    lines = "/e/include/torch/a.h:3:10: fatal error: Python.h: No such file or directory\n"
    told = describe(RuntimeError(COMMAND + lines))
    assert told["code"] == "unavailable" and "Python.h" in told["what"]
    assert "python3-dev" in told["hint"]


def test_other_long_messages_keep_their_beginning():
    told = describe(ValueError("no such thing " * 100))
    assert told["what"].startswith("ValueError: no such thing no such thing")
    assert len(told["what"]) < 700
