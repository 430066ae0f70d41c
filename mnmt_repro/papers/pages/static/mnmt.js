// Draws the charts of a page with Vega, and sorts its tables.
// Without this script a page still shows every chart (as an image) and every table.
"use strict";

(() => {
  const here = document.currentScript.src; // Vega lies beside this file
  const OPTIONS = {
    mode: "vega-lite",
    renderer: "svg",
    actions: { export: true, source: false, compiled: false, editor: false },
  };
  const GROWTH = 1.25; // most by which a chart is enlarged to fill its room
  const PHONE = 600; // pixels, below which names stand above their marks
  const SLACK = 16; // pixels by which a chart's room may change before it is drawn again

  function load(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(name, here).href;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${script.src}`));
      document.head.append(script);
    });
  }

  const panels = (spec) =>
    Math.max(spec.hconcat?.length ?? spec.columns ?? 1, ...(spec.vconcat ?? []).map(panels));

  // The same chart with its panels in rows of at most so many; one alone in its row names its rows.
  function wrapped(spec, columns) {
    const naming = (key, value) =>
      key === "y" && value?.axis ? { ...value, axis: { ...value.axis, labels: true } } : value;
    if (columns === 1) spec = JSON.parse(JSON.stringify(spec), naming);
    if (spec.vconcat) return { ...spec, vconcat: spec.vconcat.map((row) => wrapped(row, columns)) };
    if (spec.columns) return { ...spec, columns: Math.min(spec.columns, columns) };
    if (!spec.hconcat) return spec;
    const { hconcat, ...rest } = spec;
    return { ...rest, concat: hconcat, columns };
  }

  // The same chart with no panel wider than the room, and its legends below.
  function narrowed(spec, room) {
    const within = (part) => {
      const changed = { ...part };
      if (part.width > room) changed.width = room;
      if (part.mark?.type === "text") changed.mark = { ...part.mark, limit: room };
      for (const key of ["vconcat", "concat", "layer"])
        if (part[key]) changed[key] = part[key].map(within);
      if (part.spec) changed.spec = within(part.spec);
      return changed;
    };
    const legend = { ...spec.config?.legend, orient: "bottom", columns: room < PHONE / 2 ? 1 : 2 };
    const view = { ...spec.config?.view };
    view.continuousWidth = Math.min(view.continuousWidth ?? 300, room);
    return { ...within(spec), config: { ...spec.config, legend, view } };
  }

  // Whether the chart has rows with names.
  const named = (part) =>
    part.encoding?.y?.type === "nominal" ||
    ["vconcat", "concat", "layer"].some((key) => part[key]?.some(named)) ||
    Boolean(part.spec && named(part.spec));

  // The same chart with the name of each row above its marks, and numbers from beyond the axis below.
  // Names and marks have a strip each, so that none covers another.
  function stacked(spec, room) {
    const [letters, most] = [room, room + 40].map((width) => Math.floor(width / 6.5)); // in a line
    const split = `split(trim(replace(datum.label, regexp('(.{1,${most}})( +|$)', 'g'), '$1\\n')), '\\n')`;
    const breaking = (title) =>
      [title].flat().flatMap((line) => line.match(new RegExp(`\\S.{0,${letters - 1}}(?=\\s|$)`, "g")) ?? [line]);
    const beyond = (part) => part.mark?.type === "text" && part.encoding?.x?.value === "width";
    const within = (part, rows) => {
      const changed = { ...part };
      const { height, mark, encoding } = part;
      const layers = part.layer ?? [part];
      if (height && layers.some(named)) {
        const domain = layers.find(named).encoding?.y?.scale?.domain;
        const marks = height.step ?? height / (domain?.length ?? Math.round(height / 20));
        const long = domain?.some((name) => name.length > most) ?? false;
        const [above, below] = [15 * (1 + long), 15 * layers.some(beyond)];
        const step = marks + above + below;
        rows = { marks, above, long, padding: (above + below) / step, align: above / (above + below) };
        changed.height = height.step ? { step } : (height * step) / marks;
      }
      if (typeof part.title === "string") changed.title = breaking(part.title);
      for (const key of ["vconcat", "concat", "layer"])
        if (part[key]) changed[key] = part[key].map((each) => within(each, rows));
      if (part.spec) changed.spec = within(part.spec, rows);
      if (!encoding) return changed;
      changed.encoding = { ...encoding };
      if (encoding.x?.title) changed.encoding.x = { ...encoding.x, title: breaking(encoding.x.title) };
      if (encoding.y?.type !== "nominal" || !rows) return changed;
      const { padding, align } = rows;
      const scale = { ...encoding.y.scale, type: "band", paddingInner: padding, paddingOuter: padding / 2, align };
      const name = { labelAlign: "left", labelBaseline: "top", labelPadding: 0, labelLimit: room + 40, zindex: 1 };
      const axis = encoding.y.axis === null ? null : { ...encoding.y.axis, ...name };
      if (axis) axis.labelOffset = -(rows.marks / 2 + rows.above) + 2;
      if (axis && rows.long) axis.labelExpr = `length(datum.label) > ${most} ? ${split} : ["", datum.label]`;
      changed.encoding.y = { ...encoding.y, scale, axis };
      if (beyond(part)) {
        changed.mark = { ...mark, dx: 0, dy: 13 };
        changed.encoding.x = { value: 0 };
      }
      return changed;
    };
    return within(spec);
  }

  // What is tried in turn until the chart fits. One that never does is scrolled.
  function* forms(spec, room) {
    yield spec;
    for (let columns = panels(spec) - 1; columns > 0; columns--) yield wrapped(spec, columns);
    for (const spare of [70, 150]) yield narrowed(wrapped(spec, 1), Math.max(room - spare, 120));
    if (room < PHONE && named(spec)) yield stacked(narrowed(wrapped(spec, 1), room - 40), room - 40);
  }

  async function draw(chart) {
    const live = chart.querySelector(".mnmt-live");
    const still = chart.querySelector(".mnmt-static");
    const spec = JSON.parse(chart.querySelector("script").textContent);
    live.hidden = false; // Vega measures text, so it must be laid out
    try {
      let drawn, svg, tries = 0;
      for (const form of forms(spec, chart.clientWidth)) {
        drawn?.finalize();
        drawn = await window.vegaEmbed(live, form, OPTIONS);
        svg = live.querySelector("svg");
        tries += 1;
        if (svg.width.baseVal.value <= chart.clientWidth) break;
      }
      // Vega writes the number of a slider without separators. Its own listener comes first.
      live.querySelectorAll(".vega-bind input").forEach((slider) => {
        const write = () => (slider.nextSibling.textContent = Number(slider.value).toLocaleString("en"));
        slider.addEventListener("input", write);
        slider.addEventListener("change", write);
        write();
      });
      const wide = svg.width.baseVal.value;
      chart.mnmtFits = tries === 1;
      live.classList.toggle("mnmt-wide", wide > 1.08 * chart.clientWidth);
      if (live.classList.contains("mnmt-wide")) live.tabIndex = 0; // so that keys scroll it
      else svg.style.width = `${Math.min(chart.clientWidth, GROWTH * wide)}px`;
      // Marks that no field describes have no label; the chart as a whole has one.
      live.querySelectorAll("[role='graphics-symbol']:not([aria-label])").forEach((mark) => {
        mark.setAttribute("role", "presentation");
        mark.removeAttribute("aria-roledescription");
      });
      still.hidden = true;
      chart.dataset.drawn = "yes";
    } catch (error) {
      live.hidden = true; // the static chart stays
      chart.dataset.drawn = "no";
      console.error(error);
    }
  }

  // Draws a chart when it is first laid out, which one that is folded away or in another tab is
  // not, and again when it no longer fits or may have more room. One drawing follows another.
  function follow(chart) {
    let [width, pause, last] = [0, null, Promise.resolve()];
    new ResizeObserver(() => {
      const room = chart.clientWidth;
      if (room === 0 || Math.abs(room - width) < SLACK) return;
      const first = width === 0;
      width = room;
      const svg = chart.querySelector(".mnmt-live svg");
      if (svg && chart.mnmtFits && svg.width.baseVal.value <= room) return;
      clearTimeout(pause);
      pause = setTimeout(() => (last = last.then(() => draw(chart))), first ? 0 : 150);
    }).observe(chart);
  }

  async function drawAll() {
    const charts = [...document.querySelectorAll(".mnmt-chart")];
    if (charts.length > 0) await load("vega.js");
    charts.forEach(follow);
    document.documentElement.dataset.mnmtCharts = "followed"; // for tests
  }

  // A link to a chart or table opens the folds and the tab that hide it.
  function reveal() {
    const target = document.getElementById(location.hash.slice(1));
    for (let at = target; at; at = at.parentElement) {
      if (at.matches("details")) at.open = true;
      if (at.matches(".sd-tab-content")) at.previousElementSibling.click();
    }
    target?.scrollIntoView();
  }

  // The number that a cell shows, or the first of an interval, its separators, percent sign and mark
  // aside; else NaN.
  const number = (text) => {
    const bare = text.replace(/\sto\s.*/, "").replace(/[,%*()\s≤]/g, "").replace("−", "-");
    return bare === "" ? NaN : Number(bare);
  };

  function compare(a, b) {
    const [x, y] = [number(a), number(b)];
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.localeCompare(b, undefined, { numeric: true });
  }

  function sortBy(table, column) {
    const head = table.tHead.rows[0].cells[column];
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const text = (body) => body.rows[0].cells[column].textContent.trim();
    const bodies = [...table.tBodies].sort((a, b) => {
      const missing = (text(a) === "–") - (text(b) === "–"); // dashes stay last
      return missing || (descending ? -1 : 1) * compare(text(a), text(b));
    });
    table.append(...bodies);
  }

  for (const table of document.querySelectorAll(".mnmt-table")) {
    table.classList.add("mnmt-sortable");
    [...table.tHead.rows[0].cells].forEach((cell, column) =>
      cell.querySelector("button").addEventListener("click", () => sortBy(table, column)),
    );
  }
  // The theme, whose turn comes later, folds its list of contents away beside what is so named; on a
  // page without that list it would fail.
  if (document.querySelector(".bd-sidebar-secondary"))
    document.querySelectorAll(".mnmt-figure").forEach((each) => each.classList.add("full-width"));
  addEventListener("hashchange", reveal);
  reveal();
  drawAll().catch((error) => console.error(error));
})();
