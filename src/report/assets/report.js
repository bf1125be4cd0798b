"use strict";
// Draws the report's figures from the result object in the page. Tables beside them say the same without this script.
(() => {
  const data = JSON.parse(document.getElementById("strata-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = () => window.innerWidth < 640;
  // Distinct in hue and in lightness; at least 3:1 against the page.
  const HUES = {
    light: ["#0a55a8", "#b4530a", "#0f7a4a", "#8a3aa5", "#b3223f", "#4b6475", "#776300", "#0a7d8c", "#a63a7a", "#5b5bd0"],
    dark: ["#7fb4f5", "#f0a35e", "#6fd09a", "#cf9ae6", "#f58aa0", "#a9bfce", "#d9c457", "#62cfdd", "#f09acb", "#a9a8ff"],
  };
  // Parts of a stacked bar: calmer, at least 3:1 against the page and in an order that alternates in lightness.
  const PARTS = { light: ["#76838f", "#4f86c6", "#b9772a", "#3f9370", "#9269b3"], dark: ["#7f8b97", "#6b9fe0", "#d39a52", "#5fb58f", "#b28bd0"] };
  const MARKS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star", "pentagon", "hexagon"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const finite = (value) => typeof value === "number" && Number.isFinite(value);
  // Plotly reads a small HTML of its own in every label.
  const safe = (words) => String(words ?? "").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const nameOf = (row) =>
    (!row.variant || row.variant === "default" ? row.level : `${row.level}@${row.variant}`) + (row.environment ? `[${row.environment}]` : "");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const part = (at) => PARTS[dark.matches ? "dark" : "light"][at];
  const hue = (at) => HUES[dark.matches ? "dark" : "light"][at % 10];
  // The look of a participant, the same in every figure of the page: its place among all of the page's participants gives
  // colour, mark and dash. Of those with one colour each has another mark and another dash.
  const places = new Map();
  for (const run of data.runs)
    for (const row of [...(run.cases ?? []).flatMap((one) => sorted(one.rows ?? [])), ...(run.accuracy ?? []).flatMap((one) => one.points ?? [])])
      if (!row.harness && !places.has(nameOf(row))) places.set(nameOf(row), places.size);
  function look(row) {
    const at = places.get(nameOf(row)) ?? 0, turn = Math.floor(at / 10);
    return { hue: hue(at), mark: MARKS[(at + 3 * turn) % 10], dash: DASHES[turn % DASHES.length] };
  }
  // What stands in a legend: a trace without points, so that its mark is always the filled one of the participant.
  function inLegend(name, trace) {
    return { type: "scatter", x: [null], y: [null], name, legendgroup: name, showlegend: true, hoverinfo: "skip", ...trace };
  }

  function three(value) {
    const size = Math.abs(value);
    return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  }
  function duration(ms) {
    if (!finite(ms)) return "–";
    for (const [scale, below, unit] of [[1e-6, 1e3, "ns"], [1e-3, 1e3, "us"], [1, 1e3, "ms"], [1e3, 300, "s"], [6e4, 180, "min"]])
      if (Math.abs(ms) / scale < below - 0.5) return `${three(ms / scale)} ${unit}`;
    return `${three(ms / 3.6e6)} h`;
  }

  function sorted(rows) {
    const key = (row) => (row.harness ? 2000 : 0) + (row.peer ? 1000 : 0) + (finite(row.rank) ? row.rank : 99);
    return [...rows].sort((a, b) => key(a) - key(b));
  }
  const rowsOf = (oneCase) => sorted(oneCase.rows ?? []).filter((row) => row.state === "measured" && !row.harness);

  // A unit for an axis, from its largest value in milliseconds.
  function timeUnit(largest) {
    if (largest >= 1e3) return [1e3, "s"];
    return largest >= 1 ? [1, "ms"] : [1e-3, "us"];
  }

  function axis(extra) {
    return {
      color: css("--soft"), gridcolor: css("--line"), zerolinecolor: css("--soft"), linecolor: css("--line"),
      tickfont: { size: 12 }, automargin: true, fixedrange: narrow(), exponentformat: "none", separatethousands: true, ...extra,
    };
  }
  function layout(height, extra) {
    return {
      height, margin: { l: 8, r: narrow() ? 8 : 16, t: 10, b: 40 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("--ink") },
      hoverlabel: { bgcolor: css("--tint"), bordercolor: css("--line"), font: { color: css("--ink") } },
      legend: { orientation: "h", x: 0, y: 1.0, yanchor: "bottom", traceorder: "normal", font: { size: 12 } }, showlegend: false,
      dragmode: narrow() ? false : "zoom", ...extra,
    };
  }
  const nameAxis = (names) => axis({ type: "category", categoryarray: [...names].reverse(), categoryorder: "array", showgrid: false, ticks: "", fixedrange: true });

  // One strip a level on a common axis; logarithmic where the fastest and the slowest are far apart.
  function distribution(rows) {
    const shown = rows.filter((row) => row.histogram?.counts?.length && row.histogram.edges_ms?.length === row.histogram.counts.length + 1);
    if (!shown.length) return null;
    const edges = shown.flatMap((row) => row.histogram.edges_ms);
    const [scale, unit] = timeUnit(Math.max(...edges));
    const least = Math.min(...edges.filter((edge) => edge > 0));
    const log = Math.max(...edges) / least > 6;
    const traces = [], annotations = [], extra = {}, strip = 1 / shown.length;
    shown.forEach((row, at) => {
      const { edges_ms: x, counts } = row.histogram;
      const own = look(row), id = at ? at + 1 : "", most = Math.max(...counts);
      const top = 1 - at * strip;
      extra[`yaxis${id}`] = axis({ domain: [top - strip * 0.82, top], range: [0, most], showticklabels: false, showgrid: false, zeroline: true, fixedrange: true });
      traces.push({
        type: "scatter", mode: "lines", x: x.map((edge) => edge / scale), y: [...counts, 0], yaxis: `y${id}`, line: { shape: "hv", width: 1.2, color: own.hue, dash: own.dash },
        fill: "tozeroy", fillcolor: `${own.hue}55`, name: safe(nameOf(row)), hovertemplate: `%{x:.3~g} ${unit}, %{y} samples<extra>${safe(nameOf(row))}</extra>`,
      });
      annotations.push({
        text: `${safe(nameOf(row))}  <span style="color:${css("--soft")}">${duration(row.end_to_end_ms?.median)}</span>`, showarrow: false,
        xref: "paper", x: 1, xanchor: "right", yref: "paper", y: top, yanchor: "top", font: { size: 12 },
      });
    });
    extra.xaxis = axis({ title: { text: `time of one iteration, ${unit}${log ? " (logarithmic)" : ""}`, font: { size: 12 } }, type: log ? "log" : "linear", anchor: `y${shown.length > 1 ? shown.length : ""}`, ...(log ? { dtick: "D2" } : {}) });
    return [traces, layout(shown.length * 52 + 60, { ...extra, annotations })];
  }

  // Where each restart begins on a common axis: a block's time counts from the first one of its restart.
  function restartStarts(rows) {
    const lengths = new Map();
    for (const row of rows)
      for (const block of row.blocks ?? [])
        if (finite(block.time_s)) lengths.set(block.restart, Math.max(lengths.get(block.restart) ?? 0, block.time_s));
    const starts = new Map();
    let at = 0;
    const gap = 0.03 * [...lengths.values()].reduce((sum, length) => sum + length, 0);
    for (const restart of [...lengths.keys()].sort((a, b) => a - b)) {
      starts.set(restart, at);
      at += lengths.get(restart) + gap;
    }
    return { gap, at: (block) => starts.get(block.restart) + block.time_s, starts: [...starts.values()] };
  }
  // A disturbed block is shaded until the next block of any level.
  function shades(rows, time) {
    const begun = rows.flatMap((row) => (row.blocks ?? []).filter((b) => finite(b.time_s)).map(time.at)).sort((a, b) => a - b);
    const shapes = [];
    for (const row of rows)
      for (const block of row.blocks ?? []) {
        if (!block.disturbed || !finite(block.time_s)) continue;
        const from = time.at(block), most = from + Math.max(1, (block.median_ms ?? 0) / 100);
        const next = begun.find((start) => start > from) ?? most;
        shapes.push({ type: "rect", xref: "x", yref: "paper", x0: from, x1: Math.min(next, most), y0: 0, y1: 1, line: { width: 0 }, fillcolor: css("--slower"), opacity: 0.22, layer: "below" });
      }
    return shapes;
  }
  function restarts(time) {
    return time.starts.slice(1).map((start) => (
      { type: "line", xref: "x", yref: "paper", x0: start - time.gap / 2, x1: start - time.gap / 2, y0: 0, y1: 1, line: { width: 1, dash: "dot", color: css("--soft") }, layer: "below" }));
  }
  function blocks(rows) {
    const all = rows.flatMap((row) => (row.blocks ?? []).map((block) => block.median_ms)).filter((ms) => finite(ms) && ms > 0);
    if (!all.length) return null;
    const [scale, unit] = timeUnit(Math.max(...all));
    const log = Math.max(...all) / Math.min(...all) > 6;
    const time = restartStarts(rows);
    const traces = rows.filter((row) => row.blocks?.length).flatMap((row) => {
      const own = look(row), name = safe(nameOf(row));
      return [inLegend(name, { mode: "markers", marker: { size: 8, color: own.hue, symbol: own.mark } }), {
        type: "scatter", mode: "markers", name, legendgroup: name, showlegend: false, x: row.blocks.map((b) => (finite(b.time_s) ? time.at(b) : null)), y: row.blocks.map((b) => (finite(b.median_ms) ? b.median_ms / scale : null)),
        text: row.blocks.map((b) => safe(`${duration(b.median_ms)}, restart ${b.restart + 1}, round ${b.round + 1}${b.disturbed ? `; disturbed: ${b.why}` : ""}`)),
        marker: { size: 6, color: own.hue, symbol: row.blocks.map((b) => own.mark + (b.disturbed ? "-open" : "")) }, hovertemplate: "%{text}<extra>%{fullData.name}</extra>",
      }];
    });
    const legendRows = Math.ceil(traces.length / 2 / (narrow() ? 2 : 6));
    return [traces, layout(narrow() ? 400 : 380, {
      showlegend: true, shapes: [...shades(rows, time), ...restarts(time)], margin: { l: 8, r: 8, t: 24 * legendRows + 10, b: 40 },
      xaxis: axis({ title: { text: "seconds of measuring, restart after restart", font: { size: 12 } }, showgrid: false, zeroline: false }),
      yaxis: axis({ title: { text: `${unit}${log ? " (logarithmic)" : ""}`, font: { size: 12 } }, type: log ? "log" : "linear", ...(log ? { dtick: "D2" } : {}), zeroline: false }),
    })];
  }

  // Stacked horizontal bars from zero. parts: [name, value of a row, colour's index].
  function stacked(rows, parts, write, title, scale, extra) {
    const shown = rows.filter((row) => parts.some(([, value]) => finite(value(row))));
    if (!shown.length) return null;
    const names = shown.map((row) => safe(nameOf(row)));
    const traces = parts.map(([name, value, colour]) => ({
      type: "bar", orientation: "h", name, y: names, x: shown.map((row) => (finite(value(row)) ? Math.max(0, value(row)) / scale : null)), marker: { color: part(colour) },
      text: shown.map((row) => write(value(row))), textposition: "none", hovertemplate: "%{text}<extra>%{y}: %{fullData.name}</extra>",
    })).filter((trace) => trace.x.some(finite));
    return [[...traces, ...(extra?.(shown, names) ?? [])], layout(names.length * 28 + 92, {
      barmode: "stack", bargap: 0.35, showlegend: true, margin: { l: 8, r: 16, t: narrow() ? 56 : 32, b: 40 }, yaxis: nameAxis(names),
      xaxis: axis({ title: { text: title, font: { size: 12 } }, rangemode: "tozero" }),
    })];
  }
  function memory(rows) {
    const mb = (bytes) => (finite(bytes) ? `${three(bytes / 1e6)} MB` : "–");
    const pss = (shown, names) => [{
      type: "scatter", mode: "markers", name: "steady share (PSS)", y: names, x: shown.map((row) => (finite(row.memory?.steady_pss_bytes) ? row.memory.steady_pss_bytes / 1e6 : null)),
      marker: { symbol: "diamond", size: 8, color: css("--ink") }, hovertemplate: "%{x:.4~g} MB<extra>%{y}: PSS</extra>",
    }];
    return stacked(rows, [["idle runtime", (row) => row.memory?.idle_private_bytes, 0], ["network, at its peak", (row) => row.memory?.above_idle_bytes, 1]], mb, "MB", 1e6, pss);
  }
  function startup(rows) {
    const key = (name) => (row) => row.startup?.[name];
    const largest = Math.max(...rows.map((row) => row.startup?.again_ms ?? 0));
    const [scale, unit] = timeUnit(largest);
    return stacked(rows, [["process", key("process_ms"), 0], ["libraries", key("library_ms"), 1], ["load", key("load_ms"), 2], ["first iteration", key("first_iteration_ms"), 3]], duration, unit, scale);
  }
  function firstEver(rows) {
    const rest = (row) => (finite(row.startup?.first_ever_ms) ? row.startup.first_ever_ms - (row.startup.prepare_ms ?? 0) : null);
    const [scale, unit] = timeUnit(Math.max(...rows.map((row) => row.startup?.first_ever_ms ?? 0)));
    return stacked(rows, [["prepare: capture, compile", (row) => row.startup?.prepare_ms, 4], ["everything else", rest, 1]], duration, unit, scale);
  }

  // One line a level, from few clients to many, and another one for its processes.
  function clients(rows) {
    const all = rows.flatMap((row) => (row.clients?.points ?? []).filter((point) => point.state === "measured" && finite(point.latency_ms?.p99?.value)));
    if (!all.length) return null;
    const [scale, unit] = timeUnit(Math.max(...all.map((point) => point.latency_ms.p99.value)));
    const lines = rows.flatMap((row) => ["threads", "processes"].map((as) => {
      const own = look(row);
      const points = (row.clients?.points ?? []).filter((point) => all.includes(point) && point.as === as);
      const name = safe(nameOf(row)) + (as === "processes" ? ", processes" : "");
      return {
        type: "scatter", mode: "lines+markers+text", name, legendgroup: safe(nameOf(row)), showlegend: false, x: points.map((point) => point.inputs_per_s?.value), y: points.map((point) => point.latency_ms.p99.value / scale),
        text: points.map((point) => String(point.clients)), textposition: "top center", textfont: { size: 11 }, cliponaxis: false,
        line: { width: as === "processes" ? 0.8 : 1.6, color: own.hue, dash: own.dash }, marker: { size: 8, color: own.hue, symbol: own.mark + (as === "processes" ? "-open" : "") },
        hovertemplate: `%{x:.4~g} inputs a second, p99 %{y:.3~g} ${unit}, %{text} in flight<extra>${name}</extra>`,
      };
    })).filter((trace) => trace.x.length);
    const named = rows.filter((row) => lines.some((line) => line.legendgroup === safe(nameOf(row)))).map((row) => {
      const own = look(row);
      return inLegend(safe(nameOf(row)), { mode: "lines+markers", line: { width: 1.6, color: own.hue, dash: own.dash }, marker: { size: 8, color: own.hue, symbol: own.mark } });
    });
    const traces = [...named, ...lines], legendRows = Math.ceil(named.length / (narrow() ? 2 : 6));
    return [traces, layout(400, {
      showlegend: true, margin: { l: 8, r: 16, t: 24 * legendRows + 14, b: 40 },
      xaxis: axis({ title: { text: "inputs a second", font: { size: 12 } }, rangemode: "tozero" }), yaxis: axis({ title: { text: `p99 of a request, ${unit}`, font: { size: 12 } }, rangemode: "tozero" }),
    })];
  }

  // A mark a level and maths mode: the level's colour and mark, the mode by how it is filled. The line joins those that
  // no other beats in time and in score (or error) together; times that others spoilt beat nothing.
  const FILLS = { fp32: "", tf32: "-dot", bf16: "-open", "amp-bf16": "-open-dot" };
  function accuracy(points) {
    const scored = points.some((p) => finite(p.eval?.score));
    const value = (p) => (scored ? p.eval?.score : p.error);
    const shown = points.filter((p) => finite(p.time_ms) && finite(value(p)) && (scored || value(p) > 0));
    if (!shown.length) return null;
    const [scale, unit] = timeUnit(Math.max(...shown.map((p) => p.time_ms)));
    const times = shown.map((p) => p.time_ms), log = Math.max(...times) / Math.min(...times) > 6;
    const better = (a, b) => (scored ? value(a) > value(b) : value(a) < value(b));
    const front = shown.filter((p) => p.reliable !== false).sort((a, b) => a.time_ms - b.time_ms).filter((p, at, all) => all.slice(0, at).every((q) => better(p, q)));
    const modes = [...new Set(shown.map((p) => p.maths))], fill = (mode) => FILLS[mode] ?? "";
    const levels = shown.filter((p, at) => shown.findIndex((q) => nameOf(q) === nameOf(p)) === at);
    const traces = modes.map((mode) => {
      const own = shown.filter((p) => p.maths === mode);
      return {
        type: "scatter", mode: narrow() ? "markers" : "markers+text", name: safe(mode), showlegend: false, x: own.map((p) => p.time_ms / scale), y: own.map(value), text: own.map((p) => safe(nameOf(p))), textposition: "top center",
        textfont: { size: 11 }, cliponaxis: false, customdata: own.map((p) => duration(p.time_ms)), marker: { size: 10, symbol: own.map((p) => look(p).mark + fill(mode)), color: own.map((p) => look(p).hue) },
        hovertemplate: `%{text}, %{customdata}, %{y:.4~g}<extra>${safe(mode)}</extra>`,
      };
    });
    for (const mode of modes) traces.push(inLegend(safe(mode), { mode: "markers", marker: { size: 10, color: css("--soft"), symbol: `circle${fill(mode)}` } }));
    for (const level of levels) traces.push(inLegend(safe(nameOf(level)), { mode: "markers", marker: { size: 10, color: look(level).hue, symbol: look(level).mark } }));
    const legendRows = Math.ceil((modes.length + levels.length + 1) / (narrow() ? 2 : 6));
    traces.unshift({ type: "scatter", mode: "lines", name: "frontier", showlegend: true, x: front.map((p) => p.time_ms / scale), y: front.map(value), line: { shape: "hv", width: 1.2, dash: "dot", color: css("--soft") }, hoverinfo: "skip" });
    return [traces, layout(380, {
      showlegend: true, margin: { l: 8, r: narrow() ? 8 : 24, t: 24 * legendRows + 20, b: 40 },
      xaxis: axis({ title: { text: `time of one iteration, ${unit}${log ? " (logarithmic)" : ""}`, font: { size: 12 } }, type: log ? "log" : "linear", zeroline: false, ...(log ? { dtick: "D2" } : {}) }),
      yaxis: axis({ title: { text: scored ? "score" : "error against float64 (logarithmic)", font: { size: 12 } }, type: scored ? "linear" : "log", zeroline: false, ...(scored ? {} : { exponentformat: "power", dtick: 1 }) }),
    })];
  }

  const FIGURES = { distribution, blocks, memory, startup, first_ever: firstEver, clients };
  function draw() {
    for (const canvas of document.querySelectorAll(".canvas")) {
      const [, run, kind, one] = /^r(\d+)([ac])(\d+)$/.exec(canvas.dataset.case);
      const made = kind === "a" ? accuracy(data.runs[run].accuracy[one].points ?? []) : FIGURES[canvas.dataset.figure](rowsOf(data.runs[run].cases[one]));
      if (made) Plotly.react(canvas, made[0], made[1], { displayModeBar: false, responsive: true, doubleClick: "reset" });
      else canvas.textContent = "Nothing to draw: no level has these numbers.";
    }
    // Plotly measures text in a picture of its own, which is nothing to read.
    document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true");
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
  }
  let wasNarrow = narrow();
  dark.addEventListener("change", draw);
  window.addEventListener("resize", () => {
    if (narrow() === wasNarrow) return;
    wasNarrow = narrow();
    draw();
  });
  draw();
})();
