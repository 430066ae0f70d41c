// Enlivens the displays of mnmt_repro.figures.house: draws charts, sorts tables.
// Without it a page still shows every chart (as an image) and every table.
"use strict";

(() => {
  // Vega is loaded from beside this file, and only on pages that hold a chart.
  const vega = new URL("vega.js", document.currentScript.src).href;

  function loadVega() {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = vega;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${vega}`));
      document.head.append(script);
    });
  }

  const OPTIONS = {
    mode: "vega-lite",
    renderer: "svg",
    actions: { export: true, source: false, compiled: false, editor: false },
  };

  // The same chart with its panels in rows of at most so many.
  function wrapped(spec, columns) {
    if (spec.vconcat) return { ...spec, vconcat: spec.vconcat.map((row) => wrapped(row, columns)) };
    if (!spec.hconcat) return spec;
    const { hconcat, ...rest } = spec;
    return { ...rest, concat: hconcat, columns };
  }

  const panels = (spec) =>
    Math.max(spec.hconcat?.length ?? 1, ...(spec.vconcat ?? []).map((row) => panels(row)));

  async function draw(chart) {
    const live = chart.querySelector(".mnmt-live");
    const still = chart.querySelector(".mnmt-static");
    const spec = JSON.parse(chart.querySelector("script").textContent);
    live.hidden = false; // Vega measures text, so it must be laid out
    try {
      const tooWide = ({ view }) =>
        view.container().querySelector("svg").width.baseVal.value > chart.clientWidth;
      let columns = panels(spec);
      let drawn = await window.vegaEmbed(live, spec, OPTIONS);
      while (columns > 1 && tooWide(drawn)) {
        drawn.finalize();
        columns -= 1;
        drawn = await window.vegaEmbed(live, wrapped(spec, columns), OPTIONS);
      } // one that is still too wide is scaled by the style sheet
      still.hidden = true;
    } catch (error) {
      live.hidden = true; // the static chart stays
      throw error;
    }
  }

  async function drawAll() {
    const charts = [...document.querySelectorAll(".mnmt-chart")];
    if (charts.length > 0) await loadVega();
    const drawn = await Promise.allSettled(charts.map(draw));
    drawn.filter((each) => each.reason).forEach((each) => console.error(each.reason));
    document.documentElement.dataset.mnmtCharts = "done"; // for tests
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

  function enliven() {
    for (const table of document.querySelectorAll(".mnmt-table")) {
      table.classList.add("mnmt-sortable");
      [...table.tHead.rows[0].cells].forEach((cell, column) =>
        cell.querySelector("button").addEventListener("click", () => sortBy(table, column)),
      );
    }
    // The theme, whose turn comes later, folds its list of contents away beside what is so named;
    // on a page without that list it would fail.
    if (document.querySelector(".bd-sidebar-secondary"))
      document.querySelectorAll(".mnmt-figure").forEach((each) => each.classList.add("full-width"));
    drawAll().catch((error) => console.error(error));
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", enliven);
  else enliven();
})();
