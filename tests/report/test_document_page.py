# SPDX-License-Identifier: Apache-2.0
"""Pages of documents (src/report/document.hpp) in a real browser: figures are drawn from data,
whatever the names in it; strata_unit writes the pages, in whichever build there is."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest
from browser import Browser, find_chromium

ROOT = Path(__file__).parents[2]
BUILDS = [ROOT / f"build/{preset}/strata_unit" for preset in ("release", "asan")]
PROGRAM = next((build for build in BUILDS if build.exists()), BUILDS[0])
EVIL = "</script><img src=x onerror=alert(1)>\"'&"

pytestmark = [
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built"),
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.xdist_group("documents"),  # one process draws each page once
]


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    plotly = importlib.util.find_spec("plotly")
    assert plotly and plotly.origin
    environment = {
        **os.environ,
        "STRATA_EXAMPLE_PAGES": str(folder),
        "STRATA_PLOTLY_JS": str(Path(plotly.origin).parent / "package_data/plotly.min.js"),
    }
    done = subprocess.run(
        [PROGRAM, "--gtest_filter=*.pages_for_the_browser_tests"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    return folder


@pytest.mark.parametrize("name", ["example", "crowded", "hostile"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_figures_are_drawn_without_an_error_and_nothing_overflows(
    browser: Browser, pages: Path, name: str, width: int, dark: bool
) -> None:
    browser.open(pages / f"{name}.html", width, dark=dark)
    assert browser.errors() == [] and browser.requests() == []
    # Of the two alternatives one is seen, with a map for each of its two layers.
    assert browser.evaluate(
        "[...document.querySelectorAll('.canvas')].map(c => !!c.querySelector('.plot-container'))"
    ) == [True, True, True, False]
    assert browser.evaluate(
        "[...document.querySelectorAll('.canvas')].map(c => c.querySelectorAll('.heatmaplayer image').length)"
    ) == [0, 1, 2, 0]
    # Bands are drawn: a filled outline beside each line that has one.
    assert browser.evaluate("document.querySelectorAll('.plot-container .js-fill').length") >= 8
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.overflowing() == []


def test_few_epochs_have_no_marks_between_them(browser: Browser, pages: Path) -> None:
    browser.open(pages / "crowded.html")
    assert browser.evaluate(
        "[...document.querySelectorAll('.xaxislayer-above .x3tick text')].map(t => t.textContent)"
    ) == ["1", "2", "3"]
    for axis in ("y", "y2", "y3", "y4"):  # of which one panel has a whole number and a wide band
        assert (
            2
            <= browser.evaluate(
                f"document.querySelector('.canvas').querySelectorAll('.{axis}tick text').length"
            )
            <= 10
        )


def test_names_are_text_and_never_markup(browser: Browser, pages: Path) -> None:
    browser.open(pages / "hostile.html")
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("document.querySelectorAll('script').length") == 3
    assert EVIL in browser.evaluate("document.title")
    assert EVIL in browser.evaluate("document.querySelector('.legend button').textContent")
    assert browser.evaluate(
        "[...document.querySelectorAll('svg text')].some(t => t.textContent.includes('<img'))"
    )


def test_line_is_hidden_in_all_panels_by_its_legend_and_shown_alone_by_a_double_click(
    browser: Browser, pages: Path
) -> None:
    browser.open(pages / "example.html")
    drawn = "document.querySelectorAll('.scatterlayer .trace .js-line').length"
    button = "[...document.querySelectorAll('.legend button')].find(b => b.textContent === 'eager, validation')"
    before = browser.evaluate(drawn)
    browser.evaluate(f"{button}.click()")
    assert browser.evaluate(f"{button}.getAttribute('aria-pressed')") == "false"
    hidden = browser.evaluate(drawn)
    assert before - hidden >= 2  # the line in both panels
    browser.evaluate(f"{button}.click()")
    assert browser.evaluate(drawn) == before
    browser.evaluate(f"{button}.dispatchEvent(new MouseEvent('dblclick'))")
    assert (
        browser.evaluate("document.querySelectorAll('.legend button[aria-pressed=true]').length")
        == 1
    )
    assert browser.evaluate(drawn) == before - hidden


def test_selector_shows_the_other_alternative_and_its_fields_say_their_interval_and_outcome(
    browser: Browser, pages: Path
) -> None:
    browser.open(pages / "example.html")
    seen = "[...document.querySelectorAll('.family figure')].filter(f => f.checkVisibility()).map(f => f.querySelector('figcaption').textContent)"
    assert browser.evaluate(seen) == ["Time of a sample (mode infer)"]
    assert (
        browser.evaluate(
            "[...document.querySelectorAll('.choices label')].map(l => l.firstChild.data.trim())"
        )[0]
        == "mode"
    )
    browser.evaluate(
        "(s => { s.value = 'train'; s.dispatchEvent(new Event('change')); })(document.querySelector('.choices select'))"
    )
    assert browser.evaluate(seen) == ["Time of a sample (mode train)"]
    words = browser.evaluate(
        "[...document.querySelectorAll('.canvas')].at(-1).data[1].hovertext[0][1]"
    )
    assert words == "compile: 2.50 ms (2.43–2.58), slower than eager<br>size 32, batch 8"
    assert browser.evaluate(
        "[...document.querySelectorAll('.canvas')].at(-1).data[0].hovertext[2][2]"
    ).startswith("eager: out of memory")
    assert browser.errors() == []


def test_surface_stands_in_space_where_the_browser_can_and_is_a_map_on_paper(
    browser: Browser, pages: Path
) -> None:
    browser.open(pages / "example.html")
    browser.evaluate(
        "(s => { s.value = '3D'; s.dispatchEvent(new Event('change')); })([...document.querySelectorAll('.choices select')].at(-1))"
    )
    kinds = "document.querySelector('.family .canvas').data.map(t => t.type)"
    if not browser.evaluate("!!document.createElement('canvas').getContext('webgl')"):
        assert browser.evaluate(kinds) == ["heatmap", "heatmap"]
        assert "lacks" in browser.evaluate("document.querySelector('.choices').textContent")
        return
    assert browser.evaluate(kinds) == ["surface", "scatter3d", "surface", "scatter3d"]
    # one field has no number
    assert browser.evaluate("document.querySelector('.family .canvas').data[1].x.length") == 8
    browser.evaluate("document.querySelector('.family .legend button').click()")
    assert browser.evaluate(
        "document.querySelector('.family .canvas').data.map(t => t.visible)"
    ) == [False, False, True, True]
    browser.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.evaluate(kinds) == ["heatmap", "heatmap"]
    browser.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate(kinds) == ["surface", "scatter3d", "surface", "scatter3d"]
    # what Chromium thinks of Plotly
    assert [
        error
        for error in browser.errors()
        if not re.search("willReadFrequently|GL Driver Message", error)
    ] == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_page_of_a_sweep_is_drawn_for_every_choice_and_nothing_overflows(
    browser: Browser, pages: Path, width: int, dark: bool
) -> None:
    browser.open(pages / "sweep.html", width, dark=dark)
    assert (
        browser.evaluate(
            "[...document.querySelectorAll('.family')].map(f => f.querySelectorAll('.choices label').length >= 1)"
        )
        == [True] * 4
    )
    selects = browser.evaluate(
        "[...document.querySelectorAll('.choices select')].map(s => [...s.options].map(o => o.value))"
    )
    for place, options in enumerate(selects):
        for option in [o for o in options if o != "3D"]:
            browser.evaluate(
                f"(s => {{ s.value = {option!r}; s.dispatchEvent(new Event('change')); }})(document.querySelectorAll('.choices select')[{place}])"
            )
            assert (
                browser.evaluate(
                    "[...document.querySelectorAll('.canvas')].filter(c => c.checkVisibility()).map(c => !!c.querySelector('.plot-container'))"
                )
                == [True] * 4
            )
    assert browser.errors() == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_every_alternative_is_there_with_its_table(
    browser: Browser, pages: Path
) -> None:
    browser.open(pages / "example.html", scripts=False)
    page = (pages / "example.html").read_text(encoding="utf-8")
    assert (
        page.count("<figure ") == 4
        and " hidden" not in page.split("<script", 1)[0].split("<body>", 1)[1]
    )
    assert page.count("as a table</span></caption>") == 4 and "(mode train), as a table" in page


@pytest.mark.parametrize("dark", [False, True])
def test_printing_draws_dark_on_white_and_comes_back(
    browser: Browser, pages: Path, dark: bool
) -> None:
    browser.open(pages / "example.html", dark=dark)
    ink = "getComputedStyle(document.querySelector('.canvas .annotation-text')).fill"
    on_screen = browser.evaluate(ink)
    browser.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.evaluate(ink) == "rgb(27, 32, 38)"
    browser.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate(ink) == on_screen
    assert browser.errors() == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_of_a_page_has_a_contrast_of_at_least_4_5_to_1(
    browser: Browser, pages: Path, dark: bool
) -> None:
    browser.open(pages / "example.html", dark=dark)
    low = browser.evaluate("""(() => {
      document.querySelectorAll('details').forEach(d => d.open = true);
      const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
      const light = ([r, g, b]) => { const f = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
      const paper = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return [255, 255, 255, 1]; };
      const found = new Set();
      for (const e of document.querySelectorAll('body *:not(svg *)')) {
        if (e.closest('script, noscript') || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
        const [a, b] = [light(parse(getComputedStyle(e).color)), light(paper(e))], ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < 4.5) found.add(`${ratio.toFixed(2)} ${e.className} ${e.textContent.slice(0, 30)}`);
      }
      return [...found];
    })()""")
    assert low == []
