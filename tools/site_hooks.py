# SPDX-License-Identifier: Apache-2.0
"""What MkDocs cannot do by itself (mkdocs.yml): README.md and the like lie outside of docs/, and
are pages too; links lead to where things lie on the site, and become text where they are not on
it."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
}
LINK = re.compile(r"\[(?P<text>[^\[\]]*)\]\((?P<target>[^)\s]+)\)")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    place = page.file.src_uri
    source = PAGES.get(place, f"docs/{place}")
    return LINK.sub(lambda link: moved(link, source, place), markdown)


def moved(link: re.Match[str], source: str, place: str) -> str:
    """A link of the file `source`, on its page `place` of the site."""
    path, _, anchor = link["target"].partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if not path or ":" in path or not (ROOT / target).exists():
        return link[0]
    pages = {source: page for page, source in PAGES.items()}
    if not target.startswith("docs/") and target not in pages:
        return f"{link['text']}: `{target}`"
    to = pages.get(target, target.removeprefix("docs/"))
    there = os.path.relpath(to, posixpath.dirname(place) or ".")
    return f"[{link['text']}]({there}{'#' if anchor else ''}{anchor})"
