"use strict";
(() => {
  // The page as it was printed is whole; what follows adds charts that answer to a pointer
  // and to the keyboard, tables that sort and filter, and one trial selected everywhere.
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, attributes = {}, text = "") => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const figure = (v) => v.toLocaleString("en-US", { maximumSignificantDigits: 4 });

  let selected = 0;
  const drawn = [];

  // select marks a trial in every table and chart; the same trial again unmarks it.
  function select(trial) {
    selected = trial === selected ? 0 : trial;
    for (const row of all("tr[data-trial]")) {
      const on = selected > 0 && Number(row.dataset.trial) === selected;
      row.classList.toggle("selected", on);
      if (row.tabIndex >= 0) row.setAttribute("aria-selected", String(on));
    }
    for (const chart of drawn) chart.plot && chart.plot.redraw(false);
  }

  // draw paints what uPlot does not: bands, fitted lines, errors, points and marks.
  function paint(plot, data) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    const px = (x) => plot.valToPos(x, "x", true);
    const py = (y) => plot.valToPos(y, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    data.series.forEach((line) => paintLines(ctx, line, px, py, ratio));
    data.series.forEach((line, i) => paintPoints(ctx, line, i, px, py, ratio));
    paintMarks(plot, data, px, py, ratio);
    ctx.restore();
  }

  function paintLines(ctx, line, px, py, ratio) {
    const trace = (part) => part.forEach(({ X, Y }, k) => (k ? ctx.lineTo(px(X), py(Y)) : ctx.moveTo(px(X), py(Y))));
    ctx.strokeStyle = ctx.fillStyle = color(line.color);
    if (line.upper && line.upper.length > 1) {
      ctx.globalAlpha = 0.19;
      ctx.beginPath();
      trace([...line.upper, ...[...line.lower].reverse()]);
      ctx.fill();
      ctx.globalAlpha = 1;
    }
    for (const [parts, dash] of [[line.fit, []], [line.beyond, [5 * ratio, 5 * ratio]]]) {
      ctx.lineWidth = 2 * ratio;
      ctx.setLineDash(dash);
      for (const part of parts || []) {
        ctx.beginPath();
        trace(part);
        ctx.stroke();
      }
    }
    ctx.setLineDash([]);
  }

  function paintPoints(ctx, line, series, px, py, ratio) {
    for (const p of line.points || []) {
      const x = px(p.X), y = py(p.Y), chosen = selected > 0 && p.Trial === selected;
      const radius = (chosen ? 7 : 4) * ratio;
      ctx.strokeStyle = ctx.fillStyle = color(line.color);
      ctx.lineWidth = 1.5 * ratio;
      if (p.High > p.Low) {
        ctx.beginPath();
        ctx.moveTo(x, py(p.Low));
        ctx.lineTo(x, py(p.High));
        ctx.stroke();
      }
      ctx.beginPath();
      if (series % 2) ctx.rect(x - radius, y - radius, 2 * radius, 2 * radius);
      else ctx.arc(x, y, radius, 0, 2 * Math.PI);
      if (p.Overload) {
        ctx.fillStyle = color("paper");
        ctx.fill();
        ctx.stroke();
        continue;
      }
      ctx.fill();
      if (chosen) {
        ctx.strokeStyle = color("ink");
        ctx.stroke();
      }
    }
  }

  function paintMarks(plot, data, px, py, ratio) {
    const { ctx, bbox } = plot;
    ctx.font = 12 * ratio + "px system-ui, sans-serif";
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    const mark = (stroke, dash, from, to, label, x, y) => {
      ctx.strokeStyle = ctx.fillStyle = stroke;
      ctx.lineWidth = ratio;
      ctx.setLineDash(dash.map((d) => d * ratio));
      ctx.beginPath();
      ctx.moveTo(...from);
      ctx.lineTo(...to);
      ctx.stroke();
      const width = ctx.measureText(label).width;
      const left = Math.max(bbox.left + 4 * ratio, Math.min(x + 5 * ratio, bbox.left + bbox.width - width - 4 * ratio));
      ctx.save();
      ctx.globalAlpha = 0.8;
      ctx.fillStyle = color("paper");
      ctx.fillRect(left - 2 * ratio, y - 11 * ratio, width + 4 * ratio, 15 * ratio);
      ctx.restore();
      ctx.fillText(label, left, y);
    };
    for (const { at, label } of data.limits || []) {
      const y = py(at);
      mark(color("bad"), [6, 3], [bbox.left, y], [bbox.left + bbox.width, y], label, bbox.left, Math.max(y - 4 * ratio, bbox.top + 12 * ratio));
    }
    (data.rates || []).forEach(({ at, label }, i) => {
      const x = px(at);
      mark(color("soft"), [2, 3], [x, bbox.top], [x, bbox.top + bbox.height], label, x, bbox.top + (15 + 16 * i) * ratio);
    });
  }

  // options are those of uPlot, which brings axes, the pointer and zooming.
  function options(chart, data, width) {
    const axis = (a, side) => ({
      scale: side, stroke: color("ink"), grid: { stroke: color("rule"), width: 1, show: side === "y" }, ticks: { stroke: color("rule"), width: 1 },
      font: "12px system-ui, sans-serif", labelFont: "13px system-ui, sans-serif", label: a.label, labelSize: 20, size: side === "y" ? 56 : 36,
      ...(side === "y" || a.log ? { splits: () => a.ticks } : { space: 60 }),
      values: (_, splits) => splits.map((v) => (v === null ? "" : figure(v))),
    });
    const scale = (a) => ({ time: false, distr: a.log ? 3 : 1 });
    return {
      width, height: Math.round(Math.max(260, Math.min(400, width * 0.55))), padding: [8, 12, 0, 0], legend: { show: false },
      scales: { x: { ...scale(data.x), range: (_, low, high) => [low, high] }, y: { ...scale(data.y), range: () => [data.y.low, data.y.high] } },
      axes: [axis(data.x, "x"), axis(data.y, "y")],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      cursor: { points: { show: false }, drag: { x: true, y: false, dist: 8 } },
      hooks: { draw: [(plot) => paint(plot, data)], setCursor: [(plot) => point(chart, plot)] },
    };
  }

  // point shows the figures of the measured point next to the pointer.
  function point(chart, plot) {
    const { left, top } = plot.cursor;
    let best = null, least = 40;
    for (const p of chart.points) {
      const off = Math.hypot(plot.valToPos(p.X, "x") - left, plot.valToPos(p.Y, "y") - top);
      if (left >= 0 && off < least) [best, least] = [p, off];
    }
    tell(chart, best, best || left < 0 ? "" : lines(chart, plot.posToVal(left, "x")));
  }

  // lines says what the lines of a chart are at a place.
  function lines(chart, x) {
    const off = (p) => Math.abs(p.X - x);
    const told = chart.data.series.flatMap((line) => {
      const all = [...(line.fit || []), ...(line.beyond || [])].flat();
      const best = all.reduce((a, b) => (a && off(a) <= off(b) ? a : b), null);
      return best ? [line.name + " " + figure(best.Y)] : [];
    });
    return figure(x) + ": " + told.join(", ");
  }

  function tell(chart, p, otherwise = "") {
    chart.at = p ? chart.points.indexOf(p) : -1;
    chart.told.textContent = p ? p.Note : otherwise || chart.hint;
  }

  // steer moves from point to point by the arrow keys and selects a trial by Enter.
  function steer(chart, event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step && chart.points.length) {
      const start = chart.at < 0 && step < 0 ? 0 : chart.at;
      const p = chart.points[(start + step + chart.points.length) % chart.points.length];
      tell(chart, p);
      chart.plot.setCursor({ left: chart.plot.valToPos(p.X, "x"), top: chart.plot.valToPos(p.Y, "y") }, false);
      event.preventDefault();
    } else if (event.key === "Enter" && chart.at >= 0 && chart.points[chart.at].Trial) {
      select(chart.points[chart.at].Trial);
    }
  }

  function chartOf(element) {
    const data = JSON.parse(element.querySelector("script").textContent);
    const box = make("div", { class: "live", tabindex: "0", role: "application", "aria-label": data.title + ": arrow keys go from point to point" });
    const chart = { data, box, plot: null, at: -1, hint: "Point at a measurement for its figures; drag to zoom, double-click to zoom out." };
    chart.points = data.series.flatMap((line) => line.points || []).sort((a, b) => a.X - b.X);
    chart.told = make("p", { class: "told quiet", role: "status" }, chart.hint);
    const legend = make("ul", { class: "legend" });
    data.series.forEach((line, i) => legend.append(make("li", { class: !line.points ? "line" : i % 2 ? "square" : "", style: "--c:var(--" + line.color + ")" }, line.name)));
    if (chart.points.some((p) => p.Overload)) legend.append(make("li", { class: "hollow" }, "overloaded"));
    if (data.series.some((line) => line.beyond)) legend.append(make("li", { class: "dashed" }, "not measured there"));
    element.querySelector("svg").before(legend, box, chart.told);
    element.classList.add("alive");
    box.addEventListener("keydown", (event) => steer(chart, event));
    box.addEventListener("click", () => chart.at >= 0 && chart.points[chart.at].Trial && select(chart.points[chart.at].Trial));
    new ResizeObserver(() => fit(chart)).observe(box);
    drawn.push(chart);
  }

  // fit draws a chart as wide as its place, or again where that has changed.
  function fit(chart, again = false) {
    const width = Math.floor(chart.box.clientWidth);
    if (width < 50 || (!again && chart.plot && chart.plot.width === width)) return;
    if (chart.plot) chart.plot.destroy();
    const { x, y } = chart.data;
    chart.plot = new uPlot(options(chart, chart.data, width), [[x.low, x.high], [y.low, y.high]], chart.box);
    chart.box.dataset.drawn = String(width);
  }

  // worth is what a cell sorts by: its number, times of all units in seconds.
  function worth(cell) {
    const text = cell.textContent.trim().replace(/,/g, "");
    const found = text.match(/^[^\d-]{0,12}?(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(ms|min|h\b|s\b)?/);
    if (!found) return text === "-" || text === "" ? -Infinity : text.toLowerCase();
    return Number(found[1]) * ({ ms: 1e-3, min: 60, h: 3600 }[found[2]] || 1);
  }

  function sort(table, column, button) {
    const body = table.tBodies[0], heads = all("th", table);
    const down = heads[column].getAttribute("aria-sort") === "ascending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    button.parentElement.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = [...body.rows].map((row) => [worth(row.cells[column]), row]);
    const order = ([a], [b]) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
    keyed.sort((a, b) => (down ? -order(a, b) : order(a, b)));
    body.append(...keyed.map(([, row]) => row));
  }

  function filter(table, text, said) {
    const rows = [...table.tBodies[0].rows], words = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    said.textContent = rows.filter((row) => !row.hidden).length + " of " + rows.length + " rows";
  }

  function tableOf(table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 3 || rows.some((row) => row.cells.length !== table.tHead.rows[0].cells.length)) return;
    all("th", table).forEach((head, column) => {
      if (!head.textContent) return;
      const button = make("button", { type: "button", title: "Sort by this column" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => sort(table, column, button));
    });
    for (const row of rows) {
      if (!row.dataset.trial) continue;
      row.tabIndex = 0;
      row.title = "Trial " + row.dataset.trial + ": select to mark it in the charts";
      row.addEventListener("click", () => getSelection().isCollapsed && select(Number(row.dataset.trial)));
      row.addEventListener("keydown", (event) => event.key === "Enter" && select(Number(row.dataset.trial)));
    }
    if (rows.length < 6) return;
    const said = make("span", { class: "quiet", role: "status" });
    const input = make("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter the rows of this table" });
    input.addEventListener("input", () => filter(table, input.value, said));
    const bar = make("div", { class: "filter" });
    bar.append(input, said);
    table.parentElement.before(bar);
  }

  // reveal opens the section that the address names.
  function reveal() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  }

  // onOneSheet makes the first page so small that it prints on one sheet: it is measured
  // as wide as A4 is within its margins, by the rules of the style sheet for paper.
  function onOneSheet() {
    const page = document.querySelector(".page"), millimetre = 96 / 25.4;
    const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.media && rule.media.mediaText === "print");
    const paper = make("style", {}, rules.flatMap((rule) => [...rule.cssRules]).map((rule) => rule.cssText).join("\n"));
    page.style.zoom = 1;
    document.head.append(paper);
    page.style.width = "186mm";
    page.style.zoom = Math.min(1, (268 * millimetre) / page.getBoundingClientRect().height);
    page.style.width = "";
    paper.remove();
  }

  all("figure").filter((element) => element.querySelector("svg")).forEach(chartOf);
  all("table").forEach(tableOf);
  const contents = document.querySelector("nav details");
  if (contents) contents.open = matchMedia("(min-width: 92rem)").matches;
  addEventListener("hashchange", reveal);
  reveal();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((chart) => fit(chart, true)));
  addEventListener("beforeprint", () => {
    all("details.section").forEach((section) => (section.open = true));
    onOneSheet();
  });
  addEventListener("afterprint", () => (document.querySelector(".page").style.zoom = 1));
})();
