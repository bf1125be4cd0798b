# SPDX-License-Identifier: Apache-2.0
"""The notebooks of examples/notebooks, cell by cell in a kernel of Jupyter, with real levels."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "examples/notebooks"


def run(name: str, folder: Path) -> nbformat.NotebookNode:
    book = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "python"),
        "STRATA_PROGRAM": str(ROOT / "build/release/strata"),
        "XDG_DATA_HOME": str(folder / "data"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    client = NotebookClient(book, timeout=900, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    if kept := os.environ.get("STRATA_KEEP_NOTEBOOKS"):
        nbformat.write(book, Path(kept) / f"{name}.ipynb")
    return book


def shown(book: nbformat.NotebookNode, kind: str) -> list[str]:
    """What cells show of this MIME type, or print."""
    return [
        output.text if output.output_type == "stream" else output.data[kind]
        for cell in book.cells
        for output in cell.get("outputs", [])
        if (output.output_type == "stream" and kind == "text/plain")
        or kind in output.get("data", {})
    ]


def test_a_class_of_a_notebook_is_compared_in_its_own_kernel(tmp_path):
    book = run("first_comparison", tmp_path)
    page, table = shown(book, "text/html")[:2]
    assert "Net:live/infer/b8/3x32x32" in page and page.count(" ms</td>") == 3, page
    assert "static" in table and shown(book, "image/png")
    text = "\n".join(shown(book, "text/plain"))
    assert "pass" in text and "-> static: " in text, text


@pytest.mark.long
@pytest.mark.parametrize("name", ["to_a_program", "where_time_goes"])
def test_the_other_notebooks_run_to_their_ends(name, tmp_path):
    book = run(name, tmp_path)
    assert shown(book, "text/html") and not [
        output
        for cell in book.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]
