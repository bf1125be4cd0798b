# SPDX-License-Identifier: Apache-2.0
"""Python files in the folder where somebody types ./strata are not strata's: none of them may run,
whichever verb it is. Real interpreters, since a forked one has all modules already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FAKE, PROGRAM, ROOT

MEASURED = (
    os.environ.get("STRATA_MEASURED_PYTHON") or os.environ.get("STRATA_PYTHON") or sys.executable
)
NAMES = [
    "json",
    "platform",
    "argparse",
    "runpy",
    "importlib",
    "torch",
    "torchvision",
    "numpy",
    "safetensors",
    "strata_sdk",
    "capture",
    "evaluation",
    "sitecustomize",
    "usercustomize",
    "dataclasses",
    "subprocess",
    "multiprocessing",
    "onnx",
    "onnxscript",
    "onnxruntime",
]
OPTIONS = ("--threads", "1", "--python", MEASURED)


@pytest.fixture
def hostile(tmp_path):
    """A folder whose modules leave a mark when they run, and the mark's place."""
    folder, mark = tmp_path / "downloaded", tmp_path / "mark"
    folder.mkdir()
    body = f"import os, sys\nwith open({str(mark)!r}, 'a') as file: file.write(__name__ + ' in ' + ' '.join(sys.argv) + chr(10))\n"
    for name in NAMES:
        if name in ("strata_sdk", "capture", "evaluation"):
            (folder / name).mkdir()
            for file in ("__init__.py", "__main__.py"):
                (folder / name / file).write_text(body, encoding="utf-8")
        else:
            (folder / f"{name}.py").write_text(body, encoding="utf-8")
    shutil.copy(ROOT / "examples" / "tiny_mlp.py", folder / "net.py")
    return folder, mark


def strata(
    hostile, cache, *words: str, program: str | Path = PROGRAM, **more: str
) -> subprocess.CompletedProcess:
    folder, mark = hostile
    environment = (
        {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
        | {
            "STRATA_ROOT": str(ROOT),
            "STRATA_CACHE": str(cache),
            "XDG_DATA_HOME": str(folder.parent / "data"),
            "STRATA_PYTHON": MEASURED,
            "STRATA_TOOLS_PYTHON": os.environ.get("STRATA_TOOLS_PYTHON", sys.executable),
        }
        | more
    )
    done = subprocess.run(
        [str(program), *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert not mark.exists(), f"{' '.join(words)} ran {mark.read_text()}"
    return done


@pytest.mark.parametrize(
    "words",
    [
        ("list", "environments"),
        ("list", "models"),
        ("list", "levels"),
        ("doctor",),
        ("--version",),
        ("level", "check", "null_py"),
        ("list", "runs"),
    ],
    ids=" ".join,
)
def test_a_verb_without_a_network_runs_no_module_of_the_current_folder(hostile, cache, words):
    strata(hostile, cache, *words)


def test_comparing_and_what_follows_run_no_module_of_the_current_folder(hostile, cache):
    model = "net.py:build"
    done = strata(
        hostile,
        cache,
        "compare",
        model,
        "--levels",
        "eager,null_py",
        "--restarts",
        "1",
        "--budget",
        "1s",
        *OPTIONS,
    )
    assert "eager" in done.stdout, done.stderr
    assert strata(hostile, cache, "graph", model, "--python", MEASURED).returncode == 0
    assert strata(hostile, cache, "show", "last").returncode == 0
    assert strata(hostile, cache, "generate", model, "-o", "program", *OPTIONS).returncode == 0
    done = strata(
        hostile, cache, "export", model, "--level", "onnxruntime", "-o", "exported", *OPTIONS
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", [":", ".", "", "::.:"])
def test_an_empty_or_relative_entry_of_PYTHONPATH_is_not_searched(hostile, cache, path):
    strata(hostile, cache, "list", "environments", PYTHONPATH=path)
    strata(hostile, cache, "level", "check", "null_py", PYTHONPATH=path)


def test_an_absolute_entry_of_PYTHONPATH_is_searched(hostile, cache, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "helper_of_mine.py").write_text("width = 8\n", encoding="utf-8")
    folder, _ = hostile
    (folder / "net.py").write_text(
        "import torch, helper_of_mine as h\ndef build(): return torch.nn.Linear(h.width, 3).eval(), torch.randn(2, h.width)\n",
        encoding="utf-8",
    )
    assert (
        strata(
            hostile,
            cache,
            "graph",
            "net.py:build",
            "--python",
            MEASURED,
            PYTHONPATH=str(tmp_path / "mine"),
        ).returncode
        == 0
    )


def start(hostile, *words: str, before: str = "", **more: str) -> subprocess.CompletedProcess:
    """start_python.py as Python 3.10 runs it: without a safe path."""
    folder, mark = hostile
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONSAFEPATH", "PYTHONPATH")
    } | more
    done = subprocess.run(
        [sys.executable, ROOT / "sdk" / "python" / "start_python.py", *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not mark.exists(), mark.read_text()
    return done


def test_without_a_safe_path_a_module_code_and_a_file_are_clean_too(hostile, tmp_path):
    code = "import json, platform, sys; print(json.dumps(sys.argv[1:]), __name__)"
    assert start(hostile, "-c", code, "a", "b").stdout == '["a", "b"] __main__\n'
    (tmp_path / "file.py").write_text(code, encoding="utf-8")
    assert start(hostile, str(tmp_path / "file.py"), "a").stdout == '["a"] __main__\n'
    assert start(hostile, "-m", "json.tool", "--help").returncode == 0
    assert (
        "No module named strata_sdk.nothing"
        in start(
            hostile, "-m", "strata_sdk.nothing", PYTHONPATH=str(ROOT / "sdk" / "python")
        ).stderr
    )


def test_without_a_safe_path_the_processes_of_multiprocessing_are_clean_too(hostile, tmp_path):
    (tmp_path / "spawn.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT / 'sdk' / 'python')!r})\n"
        "import start_python\n"
        "start_python.protect_children()\n"  # what Python 3.10 does by itself
        "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(abs, [-3]))\n",
        encoding="utf-8",
    )
    done = start(hostile, str(tmp_path / "spawn.py"))
    assert done.stdout == "[3]\n", done.stderr


def test_a_fake_worker_sees_no_module_of_the_current_folder(hostile, cache, tmp_path):
    level = tmp_path / "levels" / "mine"
    level.mkdir(parents=True)
    (level / "script.json").write_text('{"name": "mine"}', encoding="utf-8")
    (level / "level.json").write_text(
        '{"id": "mine", "title": "x", "rank": 5, "language": "python", "api": 2, "devices": ["cpu"], "modes": ["infer"], "precisions": ["fp32"], '
        f'"start": ["{{tools_python}}", "{FAKE}", "{{level}}/script.json"], "environment": false, "needs": []}}',
        encoding="utf-8",
    )
    strata(hostile, cache, "level", "check", "mine", STRATA_LEVEL_PATH=str(tmp_path / "levels"))
