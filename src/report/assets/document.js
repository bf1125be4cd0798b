"use strict";
// Draws the figures of a document (src/report/document.hpp) from the data in the page; tables beside them say the same without it.
(() => {
  const data = JSON.parse(document.getElementById("strata-data").textContent);
  const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
  let printing = false;
  const dark = () => darkScheme.matches && !printing;
  const narrow = () => window.innerWidth < 640 && !printing;
  // Distinct in hue and in lightness; at least 3:1 against the page.
  const HUES = {
    light: ["#0a55a8", "#b4530a", "#0f7a4a", "#8a3aa5", "#b3223f", "#4b6475", "#776300", "#0a7d8c", "#a63a7a", "#5b5bd0"],
    dark: ["#7fb4f5", "#f0a35e", "#6fd09a", "#cf9ae6", "#f58aa0", "#a9bfce", "#d9c457", "#62cfdd", "#f09acb", "#a9a8ff"],
  };
  // From little to much; and from below the middle over it to above it.
  const SHADES = { light: ["#edf3fa", "#7fabdc", "#0b4a93"], dark: ["#202b38", "#3f73b3", "#b5d6ff"] };
  const PARTED = { light: ["#a84a05", "#f3f1ee", "#0a55a8"], dark: ["#f0a35e", "#2b3036", "#7fb4f5"] };
  // Parts of a stacked bar: calmer, at least 3:1 against the page and in an order that alternates in lightness.
  const STACKED = { light: ["#76838f", "#4f86c6", "#b9772a", "#3f9370", "#9269b3", "#3a8f9b", "#b0485c", "#8a7d1f", "#5d63a8", "#b5609a"], dark: ["#7f8b97", "#6b9fe0", "#d39a52", "#5fb58f", "#b28bd0", "#5fb9c4", "#e07f92", "#bfb055", "#8f96dc", "#d98cc0"] };
  // The next ten lines have other marks: [plotly's name, the character in the legend, the same of an open one].
  const MARKS = [["circle", "●", "○"], ["square", "■", "□"], ["diamond", "◆", "◇"], ["triangle-up", "▲", "△"], ["x", "✖", "✕"], ["star", "★", "☆"]];
  const finite = (value) => typeof value === "number" && Number.isFinite(value);
  // Plotly reads a small HTML of its own in every label.
  const safe = (words) => String(words ?? "").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (words, most) => ([...words].length > most ? [...words].slice(0, most - 1).join("") + "…" : words);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const scheme = (colours) => colours[dark() ? "dark" : "light"];
  const hue = (place) => scheme(HUES)[place % 10];
  const mark = (place) => MARKS[Math.floor(place / 10) % MARKS.length];

  const UNITS = {
    seconds: [[1e-6, "us"], [1e-3, "ms"], [1, "s"], [60, "min", 300], [3600, "h", 10800]],
    bytes: [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"]],
  };
  // What the values of an axis are divided by, and the unit they are then in.
  function unitOf(axis, values) {
    if (axis.format === "percent") return { scale: 0.01, unit: "%" };
    const units = UNITS[axis.format];
    if (!units) return { scale: 1, unit: axis.unit };
    const largest = values.reduce((most, value) => (finite(value) ? Math.max(most, Math.abs(value)) : most), 0);
    const [scale, unit] = units.filter(([own, , from]) => largest >= (from ?? own)).pop() ?? units[0];
    return { scale, unit };
  }
  const written = (value, most) => Number(value.toPrecision(most)).toLocaleString("en", { maximumSignificantDigits: most, notation: value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9) ? "scientific" : "standard" });
  const digits = (value) => written(value, 4);
  function shown(value, axis, most = 4) {
    if (!finite(value)) return "–";
    if (axis.categories.length) return axis.categories[value] ?? digits(value);
    if (axis.format === "ratio") return value.toFixed(Math.abs(value) < 99.995 ? 2 : 0);
    const { scale, unit } = unitOf(axis, [value]);
    return written(value / scale, most) + (unit === "%" ? "%" : unit ? ` ${unit}` : "");
  }
  function titleOf(axis, unit) {
    const detail = [unit === "%" ? "" : unit, axis.log ? "logarithmic" : ""].filter(Boolean).join(", ");
    return axis.title && detail ? `${axis.title} (${detail})` : axis.title || detail;
  }

  function ticksOf(names, most, length) {
    const step = Math.ceil(names.length / most), places = names.map((_, place) => place).filter((place) => place % step === 0);
    return { tickmode: "array", tickvals: places, ticktext: places.map((place) => safe(short(names[place], length))) };
  }
  // Marks of a logarithmic axis as whole numbers: 0.1, 0.2, 0.5, 1 where it is short, powers of ten where it is long.
  function logTicks(values) {
    const above = values.filter((value) => finite(value) && value > 0);
    if (!above.length) return { type: "log" };
    const low = above.reduce((a, b) => Math.min(a, b)), high = above.reduce((a, b) => Math.max(a, b)), decades = Math.log10(high / low);
    const steps = decades < 0.7 ? [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8] : decades < 3 ? [1, 2, 5] : [1], every = Math.max(1, Math.ceil(decades / 8));
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)) - 1; power <= Math.ceil(Math.log10(high)) + 1; ++power)
      if (power % every === 0) for (const step of steps) ticks.push(Number(`${step}e${power}`));
    return { type: "log", tickmode: "array", tickvals: ticks, ticktext: ticks.map((value) => safe(digits(value))) };
  }
  // Few whole numbers, as epochs, have no marks between them.
  function wholeTicks(values) {
    const known = values.filter(finite);
    if (!known.length || !known.every(Number.isInteger)) return {};
    const length = known.reduce((a, b) => Math.max(a, b)) - known.reduce((a, b) => Math.min(a, b));
    return length < 12 ? { dtick: Math.max(1, Math.ceil(length / (narrow() ? 4 : 6))) } : {};
  }
  // Few whole numbers on a logarithmic axis, as batches 1, 2, 4, are its marks.
  function ownTicks(values) {
    const places = [...new Set(values)].filter((value) => finite(value) && value > 0).sort((a, b) => a - b);
    return places.length > 1 && places.length <= (narrow() ? 7 : 12) && places.every(Number.isInteger) ? { tickvals: places, ticktext: places.map((value) => safe(digits(value))) } : {};
  }
  // `values` are in the unit of the axis.
  function axisOf(axis, values, extra) {
    const places = axis.categories.length
      ? { ...ticksOf(axis.categories, narrow() ? 6 : 12, narrow() ? 12 : 20), range: [-0.5, axis.categories.length - 0.5] }
      : axis.log ? logTicks(values) : { type: "linear", exponentformat: "none", nticks: narrow() ? 5 : 7 };
    return {
      color: css("--soft"), gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), tickfont: { size: 12 }, automargin: true,
      fixedrange: narrow(), separatethousands: true, ...(axis.from_zero ? { rangemode: "tozero" } : {}), ...places, ...extra,
    };
  }
  function layoutOf(height, extra) {
    return {
      height, ...(printing ? { width: 680 } : {}), margin: { l: 8, r: 12, t: 2, b: 2 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("--ink") }, showlegend: false, hovermode: "closest",
      hoverlabel: { bgcolor: css("--tint"), bordercolor: css("--line"), font: { color: css("--ink") }, align: "left", namelength: -1 },
      dragmode: narrow() ? false : "zoom", ...extra,
    };
  }

  // Stretches of a line that have a band, each a polygon: there along the upper end and back along the lower one.
  function outline(line, y, floor) {
    const xs = [], ys = [];
    let from = 0;
    const known = (place) => finite(line.low[place]) && finite(line.high[place]);
    const value = (end) => Math.max(end, floor) / y.scale;
    for (let place = 0; place <= line.x.length; ++place) {
      if (place < line.x.length && known(place)) continue;
      const run = line.x.slice(from, place).map((_, i) => from + i);
      if (run.length) {
        xs.push(...run.map((i) => line.x[i]), ...run.toReversed().map((i) => line.x[i]), null);
        ys.push(...run.map((i) => value(line.high[i])), ...run.toReversed().map((i) => value(line.low[i])), null);
      }
      from = place + 1;
    }
    return [xs, ys];
  }

  // The traces of one line: its band, if it has one, and the line.
  function tracesOf(line, panel, x, y, axes, floor) {
    const colour = hue(line.colour), few = line.x.length <= 24, another = line.colour >= 10;
    const xs = line.x.map((value) => value / x.scale);
    const isPoints = line.marks || line.x.length < 2, labelled = line.shows_labels && line.labels && (!narrow() || line.labels.every((label) => label.length < 3));
    const words = line.x.map((place, i) => {
      const band = line.low && finite(line.low[i]) && finite(line.high[i]) ? ` (${shown(line.low[i], panel.y)} to ${shown(line.high[i], panel.y)})` : "";
      return safe(short(line.name, 60) + (line.labels?.[i] ? `, ${line.labels[i]}` : "")) + `<br>${safe(shown(line.y[i], panel.y) + band)}<br>${safe(`${panel.x.title} ${shown(place, panel.x)}`)}`;
    });
    const common = { type: "scatter", ...axes, meta: line.name, name: safe(line.name) };
    const traces = [];
    if (line.low && !isPoints) {
      const [bandX, bandY] = outline({ ...line, x: xs }, y, floor);
      traces.push({ ...common, mode: "lines", x: bandX, y: bandY, fill: "toself", fillcolor: `${colour}26`, line: { width: 0, color: colour }, hoverinfo: "skip" });
    }
    const ends = (sign, end) => end.map((value, i) => (finite(value) && finite(line.y[i]) ? (sign * (value - line.y[i])) / y.scale : null));
    traces.push({
      ...common, mode: (isPoints ? "markers" : few || another ? "lines+markers" : "lines") + (labelled ? "+text" : ""), x: xs,
      ...(labelled ? { text: line.labels.map((label) => safe(short(label, 24))), textposition: "top center", textfont: { size: 11, color: css("--soft") }, cliponaxis: false } : {}),
      y: line.y.map((value) => (finite(value) ? value / y.scale : null)),
      line: { color: colour, width: 1.8, dash: line.dashed ? "dash" : "solid" }, hovertext: words, hoverinfo: "text", ...(labelled ? {} : { cliponaxis: true }),
      marker: { color: colour, size: isPoints ? 8 : another ? 7 : 5, symbol: mark(line.colour)[0] + (line.dashed ? "-open" : ""), ...(few || isPoints ? {} : { maxdisplayed: 12 }) },
      ...(line.low && isPoints ? { error_y: { type: "data", symmetric: false, array: ends(1, line.high), arrayminus: ends(-1, line.low), color: colour, thickness: 1.2, width: 3 } } : {}),
    });
    return traces;
  }

  // Panels side by side where there is room, else below each other; titles stand above them, so that no width is lost.
  function lines(figure, canvas) {
    const panels = figure.panels.filter((panel) => panel.lines.some((line) => line.y.some(finite)));
    if (!panels.length) return null;
    const columns = narrow() || printing ? 1 : Math.min(2, panels.length), rows = Math.ceil(panels.length / columns);
    const head = 26, foot = 46, body = narrow() ? 220 : columns === 1 ? 320 : 270, height = rows * (head + body + foot) + 4;
    const width = Math.max(printing ? 680 : canvas.clientWidth, 200), gap = columns === 1 ? 0 : 72 / width;
    const traces = [], annotations = [], shapes = [], axes = {};
    panels.forEach((panel, place) => {
      const id = place ? place + 1 : "", column = place % columns, row = Math.floor(place / columns);
      const top = 1 - (row * (head + body + foot) + head) / height, bottom = top - body / height;
      const share = (1 - gap * (columns - 1)) / columns, left = column * (share + gap);
      const x = unitOf(panel.x, panel.lines.flatMap((line) => line.x));
      const y = unitOf(panel.y, panel.lines.flatMap((line) => line.y));
      const above = panel.lines.flatMap((line) => line.y).filter((value) => finite(value) && value > 0);
      const floor = panel.y.log ? above.reduce((least, value) => Math.min(least, value), Infinity) / 2 : -Infinity;
      const room = Math.floor((width / columns) / 7.5);
      const placed = panel.lines.flatMap((line) => line.x.map((value) => value / x.scale));
      axes[`xaxis${id}`] = axisOf(panel.x, placed, { ...(panel.x.categories.length ? {} : panel.x.log ? ownTicks(placed) : wholeTicks(placed)), domain: [left, left + share], anchor: `y${id}`, zeroline: false, showgrid: false, ticks: "outside", title: { text: safe(short(titleOf(panel.x, x.unit), room)), font: { size: 12 }, standoff: 6 } });
      axes[`yaxis${id}`] = axisOf(panel.y, panel.lines.flatMap((line) => line.y.map((value) => value / y.scale)), { domain: [bottom, top], anchor: `x${id}`, zeroline: false, ticksuffix: y.unit === "%" ? "%" : "" });
      for (const line of panel.lines) traces.push(...tracesOf(line, panel, x, y, { xaxis: `x${id}`, yaxis: `y${id}` }, floor));
      const across = { xref: `x${id}`, yref: `y${id} domain`, y0: 0, y1: 1, layer: "below" };
      for (const { from, to } of panel.shaded) shapes.push({ ...across, type: "rect", x0: from / x.scale, x1: to / x.scale, line: { width: 0 }, fillcolor: css("--bad"), opacity: 0.22 });
      for (const border of panel.borders) shapes.push({ ...across, type: "line", x0: border / x.scale, x1: border / x.scale, line: { width: 1, dash: "dot", color: css("--soft") } });
      const unit = titleOf(panel.y, y.unit);
      const title = panel.title && panel.title !== panel.y.title ? `<b>${safe(short(panel.title, room))}</b>  ` : "";
      const rest = room - (title ? panel.title.length + 2 : 0);
      const words = title ? (rest > 6 ? safe(short(unit, rest)) : "") : safe(short(unit, room));
      annotations.push({
        text: `${title}<span style="color:${css("--soft")}">${words}</span>`, showarrow: false, xref: "paper", yref: "paper", x: left, xanchor: "left", y: top, yanchor: "bottom", yshift: 4, font: { size: 13 },
      });
    });
    // In the order of the data, whatever the panel: [name, its first line].
    const names = new Map();
    for (const panel of panels) for (const line of panel.lines) if (!names.has(line.name)) names.set(line.name, line);
    return { traces, layout: layoutOf(height, { ...axes, annotations, shapes }), names };
  }

  // Stacked horizontal bars from zero, and marks beside them.
  function bars(figure) {
    const { rows, parts, marks, scale } = figure, some = ({ values }) => values.some(finite);
    if (!parts.some(some)) return null;
    const totals = rows.map((_, r) => parts.reduce((sum, { values }) => sum + (values[r] ?? 0), 0)), { scale: divisor, unit } = unitOf(scale, totals);
    const words = (name, values) => rows.map((row, r) => safe(`${short(row, 60)}, ${name}: ${shown(values[r], scale)}`));
    const at = (values) => values.map((value) => (finite(value) ? Math.max(0, value) / divisor : null)), y = rows.map((_, r) => r);
    const shades = scheme(STACKED), drawnParts = parts.filter(some), drawnMarks = marks.filter(some);
    const traces = [
      ...drawnParts.map(({ name, values }, place) => ({ type: "bar", orientation: "h", y, x: at(values), name: safe(name), marker: { color: shades[place % shades.length] }, hovertext: words(name, values), textposition: "none", hoverinfo: "text" })),
      ...drawnMarks.map(({ name, values }) => ({ type: "scatter", mode: "markers", y, x: at(values), name: safe(name), marker: { symbol: "diamond", size: 8, color: css("--ink") }, hovertext: words(name, values), hoverinfo: "text" })),
    ];
    return {
      traces, names: new Map(), swatches: [...drawnParts.map(({ name }, place) => ({ name, colour: shades[place % shades.length] })), ...drawnMarks.map(({ name }) => ({ name, colour: css("--ink"), sign: "◆" }))],
      layout: layoutOf(Math.max(112, rows.length * 28 + 60), {
        barmode: "stack", bargap: 0.35, yaxis: axisOf({ categories: rows }, [], { ...ticksOf(rows, 60, narrow() ? 14 : 32), range: [rows.length - 0.5, -0.5], showgrid: false, zeroline: false, ticks: "", fixedrange: true }),
        xaxis: axisOf({ ...scale, categories: [], from_zero: true }, totals, { title: { text: safe(titleOf(scale, unit)), font: { size: 12 }, standoff: 6 }, zeroline: true }),
      }),
    };
  }

  // A map of names: each has its colour, what has none is as the page; labels say it where there is room.
  function named(figure, canvas) {
    const { rows, columns, scale, labels, colours } = figure, count = colours.length;
    const width = printing ? 680 : canvas.clientWidth, room = Math.floor((width * 0.85) / columns.length / 7);
    const height = Math.min(1000, Math.max(60, rows.length * 34)) + (figure.column_title ? 24 : 0) + 40;
    const steps = colours.flatMap((place, i) => [[i / count, hue(place)], [(i + 1) / count, hue(place)]]);
    const label = (r, c) => labels[r]?.[c] ?? shown(figure.values[r][c], scale);
    const annotations = room < 4 ? [] : rows.flatMap((_, r) => columns.map((_, c) => ({
      x: c, y: r, text: safe(short(label(r, c), room)), showarrow: false, font: { size: 12, color: finite(figure.values[r][c]) ? css("--paper") || (dark() ? "#111" : "#fff") : css("--ink") },
    })));
    const axis = (own, most) => ({ ...axisOf({ categories: own }, []), ...ticksOf(own, most, narrow() ? 14 : 28), showgrid: false, zeroline: false, fixedrange: true, ticks: "", tickfont: { size: narrow() ? 11 : 12 }, ticklabeloverflow: "allow" });
    const trace = {
      type: "heatmap", z: figure.values, zmin: -0.5, zmax: Math.max(count, 1) - 0.5, xgap: 2, ygap: 2, colorscale: count ? steps : undefined, showscale: false,
      hovertext: figure.values.map((row, r) => row.map((_, c) => safe(`${rows[r]}, ${columns[c]}: ${label(r, c)}`))), hoverinfo: "text", hoverongaps: true,
    };
    return {
      traces: [trace], names: new Map(), swatches: scale.categories.map((name, i) => ({ name, colour: hue(colours[i]) })),
      layout: layoutOf(height, {
        margin: { l: 8, r: 12, t: 8, b: 2 }, annotations, plot_bgcolor: css("--tint"),
        xaxis: { ...axis(columns, narrow() ? 8 : 24), range: [-0.5, columns.length - 0.5], title: { text: safe(figure.column_title), font: { size: 12 }, standoff: 6 } },
        yaxis: { ...axis(rows, 40), range: [rows.length - 0.5, -0.5], title: { text: narrow() ? "" : safe(figure.row_title), font: { size: 12 }, standoff: 6 } },
      }),
    };
  }

  function heat(figure, canvas) {
    if (figure.colours.length) return named(figure, canvas);
    const { rows, columns, scale } = figure, all = figure.values.flat().filter((value) => finite(value) && (!scale.log || value > 0));
    if (!all.length) return null;
    const drawn = (value) => (!finite(value) || (scale.log && value <= 0) ? null : scale.log ? Math.log10(value) : value);
    let low = drawn(all.reduce((a, b) => Math.min(a, b))), high = drawn(all.reduce((a, b) => Math.max(a, b)));
    const middle = finite(figure.middle) ? drawn(figure.middle) : null;
    if (finite(middle)) {
      const far = Math.max(Math.abs(high - middle), Math.abs(middle - low)) || 1;
      [low, high] = [middle - far, middle + far];
    }
    const colours = scheme(finite(middle) ? PARTED : SHADES), places = [0, 1, 2, 3, 4].map((part) => low + ((high - low) * part) / 4);
    const width = printing ? 680 : canvas.clientWidth, fits = (width * 0.8) / columns.length >= 44 && rows.length <= 40;
    const head = figure.column_title ? 24 : 0, height = Math.min(1000, Math.max(60, rows.length * 30)) + head + (narrow() ? 104 : 40);
    const values = (word) => figure.values.map((row, r) => row.map((value, c) => word(value, r, c)));
    const bar = narrow() ? { orientation: "h", x: 0, xanchor: "left", xpad: 0, y: 1, yanchor: "bottom", ypad: 6, len: 1 } : { len: 1, x: 1.01, ypad: 0 };
    const trace = {
      type: "heatmap", z: values(drawn), zmin: low, zmax: high > low ? high : low + 1, xgap: 2, ygap: 2, colorscale: colours.map((colour, part) => [part / 2, colour]),
      text: values((value) => safe(shown(value, scale))), ...(fits ? { texttemplate: "%{text}" } : {}), textfont: { size: 12 },
      hovertext: values((value, r, c) => safe(`${rows[r]}, ${columns[c]}: ${shown(value, scale)}`)), hoverinfo: "text", hoverongaps: false,
      colorbar: {
        thickness: 12, outlinewidth: 0, tickmode: "array", tickvals: places, ticktext: places.map((value) => safe(shown(scale.log ? 10 ** value : value, scale, 3))), tickfont: { size: 12 }, ticklabeloverflow: "allow", ...bar,
      },
    };
    const names = (own, most) => ({ ...axisOf({ categories: own }, []), ...ticksOf(own, most, narrow() ? 14 : 28), showgrid: false, zeroline: false, fixedrange: true, ticks: "", tickfont: { size: narrow() ? 11 : 12 }, ticklabeloverflow: "allow" });
    return {
      traces: [trace], names: new Map(), caption: titleOf(scale, UNITS[scale.format] || scale.format === "ratio" ? "" : scale.unit),
      layout: layoutOf(height, {
        margin: { l: 8, r: narrow() ? 20 : 12, t: 8, b: 2 },
        xaxis: { ...names(columns, narrow() ? 8 : 24), title: { text: safe(short(figure.column_title, Math.floor(width / 9))), font: { size: 12 }, standoff: 6 } },
        yaxis: { ...names(rows, 40), range: [rows.length - 0.5, -0.5], title: { text: narrow() ? "" : safe(short(figure.row_title, Math.floor(rows.length * 4))), font: { size: 12 }, standoff: 6 } },
      }),
    };
  }

  // What a surface's maps and its picture in space share. `room`: characters that a field has room for.
  function planeOf(figure) {
    const { rows, columns, scale, layers } = figure;
    const known = (value) => finite(value) && (!scale.log || value > 0), drawn = (value) => (!known(value) ? null : scale.log ? Math.log10(value) : value);
    const all = layers.flatMap((layer) => layer.values.flat()).filter(known);
    const words = (layer) => rows.map((row, r) => columns.map((column, c) => {
      const place = [figure.row_title && `${figure.row_title} ${row}`, figure.column_title && `${figure.column_title} ${column}`].filter(Boolean).join(", ");
      return safe(`${short(layer.name, 60)}: ${layer.words[r][c] || "–"}`) + `<br>${safe(place)}`;
    }));
    return { drawn, words, low: all.reduce((a, b) => Math.min(a, b), Infinity), high: all.reduce((a, b) => Math.max(a, b), -Infinity), layers: layers.filter((layer) => layer.values.flat().some(known)) };
  }

  // A map a layer, side by side where there is room, all on one scale.
  function maps(figure, canvas) {
    const { rows, columns, scale, layers } = figure, plane = planeOf(figure);
    if (!plane.layers.length) return null;
    let [low, high] = [plane.drawn(plane.low), plane.drawn(plane.high)];
    const middle = finite(figure.middle) ? plane.drawn(figure.middle) : null;
    if (finite(middle)) {
      const far = Math.max(Math.abs(high - middle), Math.abs(middle - low)) || 1;
      [low, high] = [middle - far, middle + far];
    }
    const width = Math.max(printing ? 680 : canvas.clientWidth, 200), across = narrow() || columns.length > 12 ? 1 : Math.min(2, layers.length), down = Math.ceil(layers.length / across);
    const head = 26, foot = 42, bar = narrow() ? 48 : 0, body = Math.min(640, Math.max(34, rows.length * 27)), height = down * (head + body + foot) + bar + 6;
    const gap = across === 1 ? 0 : 56 / width, share = (1 - gap * (across - 1)) / across, room = Math.floor(((width - (narrow() ? 0 : 90)) * share - 40) / columns.length / 7);
    const traces = [], annotations = [], axes = {};
    const names = (own, most) => ({ ...axisOf({ categories: own }, []), ...ticksOf(own, most, narrow() ? 10 : 14), showgrid: false, zeroline: false, fixedrange: true, ticks: "", tickfont: { size: narrow() ? 11 : 12 }, ticklabeloverflow: "allow" });
    const places = [0, 1, 2, 3, 4].map((part) => low + ((high - low) * part) / 4);
    layers.forEach((layer, place) => {
      const id = place ? place + 1 : "", left = (place % across) * (share + gap), top = 1 - (bar + Math.floor(place / across) * (head + body + foot) + head) / height;
      axes[`xaxis${id}`] = { ...names(columns, narrow() ? 8 : 24), domain: [left, left + share], anchor: `y${id}`, range: [-0.5, columns.length - 0.5], title: { text: safe(short(figure.column_title, 24)), font: { size: 12 }, standoff: 4 } };
      axes[`yaxis${id}`] = { ...names(rows, 40), domain: [top - body / height, top], anchor: `x${id}`, range: [rows.length - 0.5, -0.5] };
      traces.push({
        type: "heatmap", xaxis: `x${id}`, yaxis: `y${id}`, z: layer.values.map((row) => row.map(plane.drawn)), coloraxis: "coloraxis", xgap: 2, ygap: 2,
        text: layer.labels.map((row) => row.map((label) => safe(short(label, Math.max(room, 1))))), ...(room >= 4 ? { texttemplate: "%{text}" } : {}), textfont: { size: 12 },
        hovertext: plane.words(layer), hoverinfo: "text", hoverongaps: true,
      });
      annotations.push({ text: `<b>${safe(short(layer.name, Math.floor((width * share) / 9)))}</b>`, showarrow: false, xref: "paper", yref: "paper", x: left, xanchor: "left", y: top, yanchor: "bottom", yshift: 3, font: { size: 13 } });
      // A field without a number has no text of Plotly's.
      if (room >= 4) layer.values.forEach((row, r) => row.forEach((value, c) => {
        if (!finite(plane.drawn(value)) && layer.labels[r][c]) annotations.push({ x: c, y: r, xref: `x${id}`, yref: `y${id}`, text: safe(short(layer.labels[r][c], room)), showarrow: false, font: { size: 11, color: css("--soft") } });
      }));
    });
    const colours = scheme(finite(middle) ? PARTED : SHADES), length = Math.min(220, height - bar - head - foot);
    const coloraxis = {
      cmin: low, cmax: high > low ? high : low + 1, colorscale: colours.map((colour, part) => [part / 2, colour]),
      colorbar: {
        thickness: 12, outlinewidth: 0, tickmode: "array", tickvals: places, ticktext: places.map((value) => safe(shown(scale.log ? 10 ** value : value, scale, 3))), tickfont: { size: 12 }, ticklabeloverflow: "allow",
        ...(narrow() ? { orientation: "h", x: 0, xanchor: "left", xpad: 0, y: 1, yanchor: "top", ypad: 2, len: 1 } : { lenmode: "pixels", len: Math.max(length, 70), x: 1.01, y: 1 - (bar + head) / height, yanchor: "top", ypad: 0 }),
      },
    };
    return {
      traces, names: new Map(), caption: titleOf(scale, UNITS[scale.format] || scale.format === "ratio" ? "" : scale.unit) + (figure.row_title ? `; rows: ${figure.row_title}` : ""),
      layout: layoutOf(height, { margin: { l: 8, r: narrow() ? 20 : 12, t: 2, b: 2 }, ...axes, annotations, coloraxis, plot_bgcolor: css("--tint") }),
    };
  }

  // The same as surfaces over the plane of both axes, in the colours of the layers; a dot a field.
  function space(figure) {
    const { rows, columns, scale } = figure, plane = planeOf(figure);
    if (!plane.layers.length) return null;
    const { scale: divisor, unit } = unitOf(scale, [plane.high]), height = (value) => (plane.drawn(value) === null ? null : scale.log ? Math.log10(value / divisor) : value / divisor);
    const traces = plane.layers.flatMap((layer) => {
      const colour = hue(layer.colour), z = layer.values.map((row) => row.map(height)), common = { meta: layer.name, name: safe(layer.name), hoverinfo: "text" };
      const fields = z.flatMap((row, r) => row.map((value, c) => [c, r, value])).filter(([, , value]) => value !== null), words = plane.words(layer);
      const grid = (count) => ({ show: true, start: 0, end: count - 1, size: 1, color: colour, width: 1 });
      return [
        { ...common, type: "surface", x: columns.map((_, c) => c), y: rows.map((_, r) => r), z, surfacecolor: z.map((row) => row.map(() => 0)), cmin: 0, cmax: 1, colorscale: [[0, colour], [1, colour]], showscale: false, opacity: 0.55, hoverinfo: "skip", connectgaps: false, contours: { x: grid(columns.length), y: grid(rows.length) }, lighting: { ambient: 0.8, diffuse: 0.4, specular: 0 } },
        { ...common, type: "scatter3d", mode: "markers", x: fields.map(([c]) => c), y: fields.map(([, r]) => r), z: fields.map(([, , value]) => value), hovertext: fields.map(([c, r]) => words[r][c]), marker: { size: 2.8, color: colour, symbol: layer.colour >= 10 ? "square" : "circle" } },
      ];
    });
    const ticks = scale.log ? logTicks([plane.low / divisor, plane.high / divisor]) : null;
    const face = { color: css("--soft"), gridcolor: css("--line"), zerolinecolor: css("--line"), showspikes: false, backgroundcolor: "rgba(0,0,0,0)", tickfont: { size: 11 } };
    const named = (own, title) => ({ ...face, ...ticksOf(own, 8, 10), range: [-0.1, own.length - 0.9], title: { text: safe(short(title, 24)), font: { size: 12 } } });
    const scene = {
      xaxis: named(columns, figure.column_title), yaxis: named(rows, figure.row_title), aspectmode: "manual", aspectratio: { x: 1.25, y: 1.1, z: 0.8 }, dragmode: "turntable", camera: { eye: narrow() ? { x: -1.75, y: -1.75, z: 0.95 } : { x: -1.35, y: -1.35, z: 0.75 }, center: { x: 0, y: 0, z: -0.08 } },
      zaxis: { ...face, ...(ticks ? { tickmode: "array", tickvals: ticks.tickvals.map(Math.log10), ticktext: ticks.ticktext, range: [Math.log10(plane.low / divisor) - 0.05, Math.log10(plane.high / divisor) + 0.05] } : { nticks: 6 }), title: { text: safe(narrow() ? unit : short(titleOf(scale, unit), 34)), font: { size: 12 } } },
    };
    return { traces, names: new Map(plane.layers.map((layer) => [layer.name, { colour: layer.colour, marks: true }])), layout: layoutOf(narrow() ? 340 : 480, { margin: { l: 0, r: 0, t: 0, b: 0 }, scene }) };
  }

  // Figures that stand for each other: one is seen, and a selector for each title says which; surfaces can be seen in space too.
  const MAP = "map", SPACE = "3D";
  const families = [...document.querySelectorAll(".family")].map((element) => {
    const members = [...element.querySelectorAll("figure.plot")].map((box) => ({ box, place: box.querySelector(".canvas").dataset.figure })).map((one) => ({ ...one, figure: data.figures[one.place] }));
    const titles = members[0].figure.choices.map((choice) => choice.title);
    return { element, members, titles, chosen: members[0].figure.choices.map((choice) => choice.option), view: MAP, seen: members[0] };
  });
  const familyOf = (canvas) => families.find((family) => family.element.contains(canvas));
  const optionsOf = (family, title) => [...new Set(family.members.map((one) => one.figure.choices[title].option))];
  const canStand = (figure) => figure.kind === "surface" && figure.rows.length > 1 && figure.columns.length > 1;
  // Asked only when it is needed: browsers warn of a slow one.
  let webgl;
  const hasWebGL = () => (webgl ??= !!document.createElement("canvas").getContext("webgl"));
  // The member that has what was chosen; where no such is, one that has what was chosen last.
  function settle(family, last) {
    const fits = (one) => one.figure.choices.every((choice, title) => choice.option === family.chosen[title]);
    family.seen = family.members.find(fits) ?? family.members.find((one) => one.figure.choices[last].option === family.chosen[last]) ?? family.members[0];
    family.chosen = family.seen.figure.choices.map((choice) => choice.option);
    for (const one of family.members) one.box.hidden = one !== family.seen;
    for (const select of family.element.querySelectorAll(".choices select[data-title]")) select.value = family.chosen[select.dataset.title];
  }
  function selector(title, options, chosen, choose) {
    const label = document.createElement("label"), select = document.createElement("select");
    select.append(...options.map((option) => Object.assign(document.createElement("option"), { value: option, textContent: short(option, 60) })));
    select.value = chosen;
    select.addEventListener("change", () => choose(select.value));
    label.append(`${short(title, 30)} `, select);
    return { label, select };
  }
  function choices(family) {
    const redraw = () => drawOne(family.seen.box.querySelector(".canvas"));
    const labels = family.titles.map((title, place) => {
      const { label, select } = selector(title, optionsOf(family, place), family.chosen[place], (option) => {
        family.chosen[place] = option;
        settle(family, place);
        redraw();
      });
      select.dataset.title = place;
      return select.options.length > 1 ? label : null;
    }).filter(Boolean);
    if (family.members.some((one) => canStand(one.figure)) && window.WebGLRenderingContext) {
      const { label, select } = selector("as", [MAP, SPACE], family.view, (view) => {
        family.view = view === SPACE && hasWebGL() ? SPACE : MAP;
        if (family.view !== view) {
          select.value = MAP;
          select.options[1].disabled = true;
          label.append(" 3D needs WebGL, which this browser lacks");
        }
        redraw();
      });
      label.className = "view";
      labels.push(label);
    }
    family.element.querySelector(".choices").replaceChildren(...labels);
    settle(family, 0);
  }

  // Names of lines that were switched off, kept while the page is drawn again; the same for all of a family.
  const hidden = data.figures.map(() => new Set());
  for (const family of families) for (const one of family.members) hidden[one.place] = hidden[family.members[0].place];
  function show(canvas, names) {
    const off = hidden[canvas.dataset.figure];
    Plotly.restyle(canvas, { visible: canvas.data.map((trace) => !off.has(trace.meta)) });
    for (const button of canvas.parentElement.querySelectorAll(".legend button")) button.setAttribute("aria-pressed", String(!off.has([...names.keys()][button.dataset.place])));
  }
  // The legend is of the page, where it wraps, scrolls and takes the keyboard. A click hides a line, two leave it alone.
  function legend(canvas, names) {
    const off = hidden[canvas.dataset.figure], all = [...names.keys()];
    const buttons = all.map((name, place) => {
      const line = names.get(name), button = document.createElement("button"), swatch = document.createElement("i");
      Object.assign(button, { type: "button", title: name });
      button.dataset.place = place;
      swatch.style.color = hue(line.colour);
      swatch.className = line.marks ? "" : line.dashed ? "dashed" : "solid";
      swatch.textContent = line.marks || line.colour >= 10 ? mark(line.colour)[line.dashed ? 2 : 1] : "";
      swatch.setAttribute("aria-hidden", "true");
      button.append(swatch, document.createTextNode(short(name, 80)));
      button.addEventListener("click", () => {
        if (!off.delete(name)) off.add(name);
        show(canvas, names);
      });
      button.addEventListener("dblclick", () => {
        const alone = all.every((other) => off.has(other) === (other !== name));
        off.clear();
        if (!alone) for (const other of all) if (other !== name) off.add(other);
        show(canvas, names);
      });
      return button;
    });
    canvas.parentElement.querySelector(".legend").replaceChildren(...buttons);
    show(canvas, names);
  }

  function swatches(canvas, all) {
    canvas.parentElement.querySelector(".legend").replaceChildren(...all.map(({ name, colour, sign }) => {
      const entry = document.createElement("span"), swatch = document.createElement("i");
      swatch.style.color = colour;
      swatch.textContent = sign ?? "■";
      swatch.setAttribute("aria-hidden", "true");
      entry.append(swatch, document.createTextNode(` ${short(name, 80)}`));
      return entry;
    }));
  }

  function drawOne(canvas) {
    const figure = data.figures[canvas.dataset.figure];
    const stands = canStand(figure) && familyOf(canvas)?.view === SPACE && !printing;  // paper shows no WebGL
    const made = ({ heat, bars, surface: stands ? space : maps }[figure.kind] ?? lines)(figure, canvas);
    if (!made) {
      canvas.textContent = "Nothing to draw: there is no number.";
      return;
    }
    if (canvas.dataset.stands && canvas.dataset.stands !== String(stands)) Plotly.purge(canvas);
    canvas.dataset.stands = stands;
    Plotly.react(canvas, made.traces, made.layout, { displayModeBar: false, responsive: !printing, doubleClick: "reset", scrollZoom: false });
    if (made.names.size) legend(canvas, made.names);
    else if (made.swatches) swatches(canvas, made.swatches);
    else canvas.parentElement.querySelector(".legend").textContent = made.caption ? `Colours: ${made.caption}` : "";
  }
  function draw() {
    for (const canvas of document.querySelectorAll(".canvas")) if (!canvas.closest("[hidden]")) drawOne(canvas);
    // Plotly measures text in a picture of its own, which is nothing to read.
    document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true");
    document.documentElement.dataset.drawn = dark() ? "dark" : "light";
  }
  function print(now) {
    printing = now;
    document.documentElement.classList.toggle("printing", now);
    draw();
  }
  for (const family of families) choices(family);
  let wasNarrow = narrow();
  darkScheme.addEventListener("change", draw);
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  window.addEventListener("resize", () => {
    if (printing || narrow() === wasNarrow) return;
    wasNarrow = narrow();
    draw();
  });
  draw();
})();
