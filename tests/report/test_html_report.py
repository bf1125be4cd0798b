# SPDX-License-Identifier: Apache-2.0
"""The HTML report in a real browser: nothing fails, nothing overflows, nothing is fetched,
everything can be reached and read."""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, find_chromium

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAM = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build/release/strata"))
EVIL = "<img src=x onerror=alert(1)>\"'&"
UNCHANGED = {
    *("strata.run/1", "default", "equal", "equal_looser"),
    *("step", "peer", "differs"),
    *("reference", "faster", "slower", "same", "inconclusive"),
    *("move", "stay", "undecided", "no_data", "not_reliable"),
    *("measured", "unavailable", "unsupported", "unequal", "unproven", "mistrusted"),
    *("out_of_memory", "timeout", "crashed", "failed"),
}

pytestmark = [
    pytest.mark.skipif(
        not PROGRAM.exists(), reason=f"{PROGRAM} is not built (STRATA_PROGRAM names another one)"
    ),
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium: apt-get install chromium"),
]

Json = dict[str, Any]
# What one process of the tests looks at in turn, so that it draws the page once.
WIDE, DARK, NARROW = (
    pytest.mark.xdist_group(name) for name in ("1280 light", "1280 dark", "400 light")
)
WIDTHS = [pytest.param(1280, marks=WIDE), 768, pytest.param(400, marks=NARROW)]


@pytest.fixture(scope="session")
def example() -> Json:
    return json.loads((HERE / "example_run.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def render(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Path]:
    """Renders a result, or several, with the program under test."""
    folder = tmp_path_factory.mktemp("report")

    def make(result: Any) -> Path:
        index = len(list(folder.iterdir()))
        source, page = folder / f"{index}.json", folder / f"{index}.html"
        source.write_text(json.dumps(result), encoding="utf-8")
        done = subprocess.run(
            [PROGRAM, "report", "--from-json", source, "-o", page],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return page

    return make


@pytest.fixture(scope="session")
def page(example: Json, render: Callable[[Any], Path]) -> Path:
    return render(example)


@pytest.fixture(scope="session")
def evil_page(example: Json, render: Callable[[Any], Path]) -> Path:
    return render(poisoned(example))


def poisoned(node: Any) -> Any:
    """The result with a hostile text added to every string that is not a state or a kind."""
    if isinstance(node, dict):
        return {key: poisoned(value) for key, value in node.items()}
    if isinstance(node, list):
        return [poisoned(value) for value in node]
    return node + EVIL if isinstance(node, str) and node not in UNCHANGED else node


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        pytest.param(1280, False, marks=WIDE),
        pytest.param(1280, True, marks=DARK),
        pytest.param(400, False, marks=NARROW),
        (400, True),
    ],
)
def test_draws_without_an_error_and_without_asking_the_network(
    browser: Browser, example: Json, page: Path, width: int, dark: bool
) -> None:
    browser.show(page, width, dark)
    assert browser.errors() == []
    assert browser.requests() == []
    drawn = browser.evaluate(
        "[...document.querySelectorAll('.canvas')].map(c => !!c.querySelector('.plot-container') || c.textContent.startsWith('Nothing to draw'))"
    )
    clients = sum(any(row.get("clients") for row in case["rows"]) for case in example["cases"])
    profiles = sum(
        any((row.get("profile") or {}).get("operations") for row in case["rows"])
        for case in example["cases"]
    )
    figures = 5 * len(example["cases"]) + clients + profiles + len(example["accuracy"])
    assert len(drawn) == figures and all(drawn)
    assert browser.evaluate("document.querySelectorAll('#d-r0c0 .plot-container').length") == 7


@pytest.mark.parametrize("width", WIDTHS)
def test_never_scrolls_sideways_as_a_whole(browser: Browser, page: Path, width: int) -> None:
    browser.show(page, width)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.overflowing() == []


def test_has_everything_inside_one_file(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    markup = re.sub(r"<script.*?</script>|<style>.*?</style>", "", text, flags=re.DOTALL)
    assert not re.search(r"""(src|href|action|data)\s*=\s*["']?\s*(https?:|//)""", markup)
    assert "@import" not in text.split("</style>")[0] and "url(" not in text.split("</style>")[0]
    assert "default-src 'none'" in markup


def test_turns_no_name_into_markup_or_code(browser: Browser, evil_page: Path) -> None:
    for width in (1280, 400):
        browser.open(evil_page, width=width)
        assert browser.errors() == [] and browser.requests() == []
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
        assert browser.evaluate("document.querySelectorAll('script').length") == 3
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    shown = browser.evaluate(
        "document.querySelector('#d-r0c0-levels tbody tr:nth-child(2) th').textContent"
    )
    assert EVIL in shown
    assert EVIL in browser.evaluate("document.title")
    assert browser.evaluate(
        "[...document.querySelectorAll('svg text')].some(t => t.textContent.includes('<img'))"
    )


@pytest.mark.parametrize("dark", [pytest.param(False, marks=WIDE), pytest.param(True, marks=DARK)])
def test_text_contrast_is_at_least_4_5_to_1(browser: Browser, page: Path, dark: bool) -> None:
    browser.show(page, dark=dark)
    low = browser.evaluate("""(() => {
      document.querySelectorAll('details').forEach(d => d.open = true);
      const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
      const light = ([r, g, b]) => { const f = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
      const paper = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return [255, 255, 255, 1]; };
      const found = new Set();
      for (const e of document.querySelectorAll('body *')) {
        if (e.closest('script, style, noscript, title, desc, [aria-hidden=true]') || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
        const style = getComputedStyle(e), [a, b] = [light(parse(e.namespaceURI.includes('svg') ? style.fill : style.color)), light(paper(e))];
        const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < 4.5) found.add(`${e.tagName}.${e.getAttribute('class')} ${ratio.toFixed(2)}`);
      }
      return [...found];
    })()""")
    assert low == []


def test_follows_a_change_between_light_and_dark(browser: Browser, page: Path) -> None:
    colour = "getComputedStyle(document.querySelector('.canvas .xtick text')).fill"
    browser.open(page, dark=False)
    light = [
        browser.evaluate("getComputedStyle(document.body).backgroundColor"),
        browser.evaluate(colour),
    ]
    browser.send(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    browser.evaluate(
        "new Promise(done => { const wait = () => document.documentElement.dataset.drawn === 'dark' ? done() : setTimeout(wait, 20); wait(); })"
    )
    assert light[0] == "rgb(255, 255, 255)"
    assert all(
        before != after
        for before, after in zip(
            light,
            [
                browser.evaluate("getComputedStyle(document.body).backgroundColor"),
                browser.evaluate(colour),
            ],
        )
    )


@WIDE
def test_has_landmarks_captions_and_names_for_a_screen_reader(browser: Browser, page: Path) -> None:
    browser.show(page)
    nodes = [
        node
        for node in browser.send("Accessibility.getFullAXTree")["nodes"]
        if not node.get("ignored")
    ]
    roles = [node["role"]["value"] for node in nodes]
    for role in ("banner", "navigation", "main", "contentinfo", "article", "heading"):
        assert role in roles, role
    assert roles.count("main") == 1
    for node in nodes:
        if node["role"]["value"] in ("table", "image", "link", "navigation", "article", "region"):
            assert node.get("name", {}).get("value"), node
    for check in (
        "[...document.querySelectorAll('table')].every(t => t.caption && t.caption.textContent)",
        "[...document.querySelectorAll('th')].every(h => ['col', 'row'].includes(h.scope))",
        "document.documentElement.lang === 'en'",
        "new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === document.querySelectorAll('body [id], head [id]').length",
        (
            "[...document.querySelectorAll('[aria-labelledby], [aria-describedby]')].every(e => ((e.getAttribute('aria-labelledby') ?? '') + ' ' + "
            "(e.getAttribute('aria-describedby') ?? '')).trim().split(/ +/).every(id => document.getElementById(id)))"
        ),
        "[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.getAttribute('href')))",
    ):
        assert browser.evaluate(check), check
    levels = browser.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])"
    )
    assert levels[0] == 1 and all(
        after <= before + 1 for before, after in itertools.pairwise(levels)
    ), levels


def test_the_keyboard_reaches_the_skip_link_first_then_links_tables_and_details(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    seen, outlined = [], []
    for _ in range(90):
        for kind in ("rawKeyDown", "keyUp"):
            browser.send(
                "Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9
            )
        seen.append(
            browser.evaluate("(e => e.tagName + '.' + e.className)(document.activeElement)")
        )
        outlined.append(
            browser.evaluate(
                "getComputedStyle(document.activeElement).outlineStyle !== 'none' || document.activeElement === document.body"
            )
        )
        if len(seen) == 1:
            assert browser.evaluate("document.activeElement.getBoundingClientRect().left >= 0"), (
                "the skip link shows when it has the focus"
            )
    assert seen[0] == "A.skip"
    assert "DIV.scroll" in seen and "SUMMARY." in seen and "PRE." in seen
    assert all(outlined)
    browser.evaluate("document.querySelector('figure summary').focus()")
    for kind in ("keyDown", "keyUp"):
        browser.send(
            "Input.dispatchKeyEvent",
            type=kind,
            key="Enter",
            code="Enter",
            windowsVirtualKeyCode=13,
            text="\r",
        )
    assert browser.evaluate("document.querySelector('figure details').open")


@WIDE
def test_every_bar_starts_at_zero(browser: Browser, page: Path, example: Json) -> None:
    browser.show(page)
    for figure in ("peak_memory", "warm_start", "cold_start"):
        assert (
            browser.evaluate(
                f"document.querySelector('#d-r0c0-{figure} .canvas')._fullLayout.xaxis.range[0]"
            )
            == 0
        ), figure
    longest, shortest = browser.evaluate(
        "(w => [Math.max(...w), Math.min(...w)])([...document.querySelectorAll('#d-r0c0-steps .bar i')].map(b => b.getBoundingClientRect().width))"
    )
    times = [
        row["end_to_end_ms"]["estimate"]
        for row in example["cases"][0]["rows"]
        if not row["harness"]
    ]
    assert longest / shortest == pytest.approx(max(times) / min(times), rel=0.02)


@pytest.mark.parametrize("width", [WIDTHS[0], WIDTHS[2]])
def test_hangs_each_level_of_the_ledger_below_the_one_it_comes_from(
    browser: Browser, page: Path, width: int
) -> None:
    browser.show(page, width)
    outline = browser.evaluate("""[...document.querySelectorAll('#d-r0c0-steps tbody th')].map(h => {
        const range = document.createRange(); range.selectNodeContents((h.querySelector('.below') ?? h).lastChild);
        return [h.textContent, Math.round(range.getBoundingClientRect().left)]; })""")
    places = dict(outline)
    assert [name for name, _ in outline] == [
        "eager",
        "compile",
        "aoti",
        "torchscript",
        "libtorch",
        "onnxruntime",
        "openvino",
    ]
    assert (
        places["eager"] < places["compile"] < places["aoti"]
        and places["compile"] == places["libtorch"] == places["openvino"]
    )
    causes = browser.evaluate("document.querySelector('#d-r0c0-steps').innerText")
    for words in (
        "generated fused code",
        "Python and guards removed, same settings",
        "differs in freezing: off, on",
    ):
        assert words in causes, words


@WIDE
def test_shades_each_disturbed_block(browser: Browser, page: Path, example: Json) -> None:
    browser.show(page)
    disturbed = sum(
        block["disturbed"]
        for row in example["cases"][0]["rows"]
        if not row["harness"]
        for block in row["blocks"]
    )
    shapes = browser.evaluate(
        "document.querySelector('#d-r0c0-blocks .canvas')._fullLayout.shapes.filter(s => s.type === 'rect').length"
    )
    assert disturbed > 0 and shapes == disturbed


def crowd(example: Json, count: int) -> Json:
    """The example with so many participants in its first case and its accuracy, the first blocks of
    each disturbed."""
    run = copy.deepcopy(example)
    rows = [row for row in run["cases"][0]["rows"] if not row["harness"]]
    points = run["accuracy"][0]["points"]
    for number in range(count - len(rows)):
        row = copy.deepcopy(rows[number % len(rows)])
        row |= {"variant": f"variant_{number}", "reference": False}
        run["cases"][0]["rows"].append(row)
        points.append(copy.deepcopy(points[3]) | {"level": row["level"], "variant": row["variant"]})
    for row in run["cases"][0]["rows"]:
        row["blocks"][0]["disturbed"] = True
    return run


def test_gives_each_of_many_participants_one_look_in_all_figures(
    browser: Browser, example: Json, render: Callable[[Any], Path]
) -> None:
    browser.open(render(crowd(example, 14)))
    assert browser.errors() == []
    looks: dict[str, set[tuple[str, str]]] = {}
    for figure in ("#d-r0c0-blocks", "#d-r0c0-throughput", "#d-r0a0-frontier"):
        traces = browser.evaluate(
            f"document.querySelector('{figure} .canvas').data.filter(t => t.marker).map(t => [t.meta, t.marker.color, t.marker.symbol])"
        )
        named = [
            (name.removesuffix(", disturbed").removesuffix(", processes"), colour, mark)
            for name, colour, mark in traces
            if name != "frontier"
        ]
        assert len({name for name, _, _ in named}) == 14 or "r0a0" in figure
        for name, colour, mark in named:
            looks.setdefault(name, set()).add((colour, mark.removesuffix("-open")))
    assert len(looks) == 14 and all(len(look) == 1 for look in looks.values())
    assert len({next(iter(look)) for look in looks.values()}) == 14


def test_a_long_advice_wraps_and_settings_are_words(
    browser: Browser, example: Json, render: Callable[[Any], Path]
) -> None:
    run = copy.deepcopy(example)
    run["warnings"].append(
        {
            "id": "W007",
            "what": "case: "
            + "; ".join(f"level_{n}: 10.7% between restarts, 2.1% assumed" for n in range(12)),
            "advice": "more --restarts narrow the intervals " * 4,
        }
    )
    run["cases"][0]["rows"][1]["settings"]["compile"] = {
        "graph_breaks": [],
        "graphs": 1,
        "guards": 216,
    }
    browser.open(render(run), width=1280)
    assert browser.evaluate(
        "(s => s.scrollWidth <= s.clientWidth)(document.querySelector('#d-r0-run .scroll'))"
    )
    shown = browser.evaluate("document.querySelector('#d-r0c0-numbers').innerText")
    assert "{" not in shown and "216" not in shown and "31 guards" in shown


def test_shows_unknown_numbers_as_a_dash_and_never_as_null(
    browser: Browser, example: Json, render: Callable[[Any], Path]
) -> None:
    run = copy.deepcopy(example)
    for row in run["cases"][0]["rows"]:
        for key in (
            "memory",
            "startup",
            "break_even",
            "proof",
            "histogram",
            "aa",
            "cpu_ms",
            "disk_bytes",
        ):
            row[key] = None
    run["cases"][0]["limits"] = None
    browser.open(render(run))
    assert browser.errors() == []
    shown = browser.evaluate("document.body.innerText")
    assert not re.search(
        r"\b(null|nan|undefined|inf)\b",
        shown.replace("null_cpp", "").replace("null_py", "").replace("null level", ""),
        re.IGNORECASE,
    )
    assert browser.evaluate("document.querySelector('#d-r0c0-levels .none').title") == "unknown"


def test_says_every_number_of_the_figures_without_scripts(browser: Browser, page: Path) -> None:
    try:
        browser.open(page, scripts=False)
        assert browser.evaluate("document.documentElement.dataset.drawn ?? ''") == ""
        tables = browser.evaluate(
            "[...document.querySelectorAll('#d-r0c0 figure')].map(f => f.querySelectorAll('details tbody tr').length)"
        )
        profiled, *others = sorted(tables)  # a row for each level that tells its operations
        assert len(tables) == 7 and profiled == 2 and min(others) >= 7
        assert "Figures need JavaScript" in browser.evaluate(
            "document.querySelector('noscript').textContent"
        )
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)


def test_puts_several_runs_into_one_page(
    browser: Browser, example: Json, render: Callable[[Any], Path]
) -> None:
    other = copy.deepcopy(example)
    other["run"]["id"] = "20261122-080000-aaaa"
    browser.open(render([example, other]), width=400)
    assert browser.errors() == []
    assert browser.evaluate("document.querySelectorAll('article').length") == 2 * (
        len(example["cases"]) + len(example["accuracy"]) + 1
    )
    assert browser.evaluate("document.querySelector('#d-r1-run h2').textContent").endswith(
        "20261122-080000-aaaa"
    )
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400


@WIDE
def test_gives_every_row_without_a_number_its_state_reason_log_and_command(
    browser: Browser, page: Path, example: Json
) -> None:
    browser.show(page)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    shown = browser.evaluate("document.querySelector('#d-r0c1').innerText")
    for row in example["cases"][1]["rows"]:
        if row["state"] != "measured":
            for part in (row["state"].replace("_", " "), row["reason"], row["hint"], row["repeat"]):
                assert part in shown, part


def test_the_example_has_every_field_that_the_schema_names(example: Json) -> None:
    """Guards the other tests: a field that the example lacks is a field that no renderer was tried
    on."""
    schema = (ROOT / "docs/results_schema.md").read_text(encoding="utf-8").split("```")[1]
    present: set[str] = set()

    def collect(node: Any) -> None:
        if isinstance(node, dict):
            present.update(node)
        for value in (
            node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        ):
            collect(value)

    collect(example)
    named = set(re.findall(r'"([a-z_0-9]+)":', schema))
    assert len(named) > 90 and named - present == set()


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__]))
