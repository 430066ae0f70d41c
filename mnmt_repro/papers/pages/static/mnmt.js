// Enlivens the displays of mnmt_repro.figures.display: draws charts, sorts tables.
// Without it a page still shows every chart (as an image) and every table.
"use strict";

(() => {
  // Vega, for pages that hold a chart, lies beside this file.
  const here = document.currentScript.src;

  function load(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(name, here).href;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${script.src}`));
      document.head.append(script);
    });
  }

  const OPTIONS = {
    mode: "vega-lite",
    renderer: "svg",
    actions: { export: true, source: false, compiled: false, editor: false },
  };

  const GROWTH = 1.25; // most by which a chart is enlarged to fill its room
  const SLACK = 16; // pixels by which a chart's room may change before it is drawn anew

  // The same chart with its panels in rows of at most so many.
  function wrapped(spec, columns) {
    if (spec.vconcat) return { ...spec, vconcat: spec.vconcat.map((row) => wrapped(row, columns)) };
    if (spec.columns) return { ...spec, columns: Math.min(spec.columns, columns) };
    if (!spec.hconcat) return spec;
    const { hconcat, ...rest } = spec;
    return { ...rest, concat: hconcat, columns };
  }

  const panels = (spec) =>
    Math.max(
      spec.hconcat?.length ?? spec.columns ?? 1,
      ...(spec.vconcat ?? []).map((row) => panels(row)),
    );

  // The label of a row, in lines: a colon, a comma or a bar ends a line.
  const LINES = "length(datum.label) > 14 ? split(datum.label, regexp('[:,]?[|]|[:,] ')) : datum.label";
  const namesRows = (part) => part.encoding?.y?.type === "nominal" && part.encoding.y.axis !== null;

  // The same chart with no panel wider than the room, long names of rows in lines, and its legends
  // below, in so many columns.
  function narrowed(spec, room, legendColumns) {
    const within = (part) => {
      const changed = { ...part };
      if (typeof part.width === "number") changed.width = Math.min(part.width, room);
      if (namesRows(part)) {
        const y = { ...part.encoding.y, axis: { ...part.encoding.y.axis, labelExpr: LINES, labelLimit: 150 } };
        changed.encoding = { ...part.encoding, y };
      }
      if (part.mark?.type === "text") changed.mark = { ...part.mark, limit: room };
      if (typeof part.height === "number" && [part, ...(part.layer ?? [])].some(namesRows))
        changed.height = Math.round(part.height * 1.7);
      for (const key of ["vconcat", "hconcat", "concat", "layer"])
        if (part[key]) changed[key] = part[key].map(within);
      if (part.spec) changed.spec = within(part.spec);
      return changed;
    };
    const config = { ...spec.config };
    config.legend = { ...config.legend, orient: "bottom", columns: legendColumns };
    if (config.view?.continuousWidth > room)
      config.view = { ...config.view, continuousWidth: room };
    return { ...within(spec), config };
  }

  // Draws a chart once its last drawing has ended, and says on it how that went.
  function draw(chart) {
    const last = (chart.mnmtDrawn ?? Promise.resolve()).catch(() => {});
    return (chart.mnmtDrawn = last.then(() => drawNow(chart)));
  }

  async function drawNow(chart) {
    try {
      await drawInside(chart);
      chart.dataset.drawn = "yes";
    } catch (error) {
      chart.dataset.drawn = "no";
      throw error;
    }
  }

  async function drawInside(chart) {
    const live = chart.querySelector(".mnmt-live");
    const still = chart.querySelector(".mnmt-static");
    const spec = JSON.parse(chart.querySelector("script").textContent);
    live.hidden = false; // Vega measures text, so it must be laid out
    try {
      const tooWide = ({ view }) =>
        view.container().querySelector("svg").width.baseVal.value > chart.clientWidth;
      let columns = panels(spec);
      let drawn = await window.vegaEmbed(live, spec, OPTIONS);
      chart.mnmtNarrowed = tooWide(drawn);
      while (columns > 1 && tooWide(drawn)) {
        drawn.finalize();
        columns -= 1;
        drawn = await window.vegaEmbed(live, wrapped(spec, columns), OPTIONS);
      }
      for (let spare = 70; spare < 200 && tooWide(drawn); spare += 40) {
        drawn.finalize();
        const room = Math.max(chart.clientWidth - spare, 120);
        const narrow = narrowed(wrapped(spec, columns), room, spare === 70 ? 2 : 1);
        drawn = await window.vegaEmbed(live, narrow, OPTIONS);
      } // one that is still too wide is scaled by the style sheet, or scrolled to keep text legible
      const svg = drawn.view.container().querySelector("svg");
      const wide = svg.width.baseVal.value;
      live.classList.toggle("mnmt-wide", wide > 1.08 * chart.clientWidth);
      if (wide < chart.clientWidth)
        svg.style.width = `${Math.min(chart.clientWidth, GROWTH * wide)}px`;
      if (live.classList.contains("mnmt-wide")) live.tabIndex = 0; // so that keys scroll it
      // Marks that no field describes have no label; the chart as a whole has one.
      live
        .querySelectorAll("[role='graphics-symbol']:not([aria-label])")
        .forEach((mark) => {
          mark.setAttribute("role", "presentation");
          mark.removeAttribute("aria-roledescription");
        });
      still.hidden = true;
    } catch (error) {
      live.hidden = true; // the static chart stays
      throw error;
    }
  }

  // A chart that is folded away, or in another tab, is drawn when it is first laid out. One that no
  // longer fits, or that may have more room, is drawn anew.
  function follow(chart) {
    let width = chart.clientWidth;
    let pause = null;
    const observer = new ResizeObserver(() => {
      const room = chart.clientWidth;
      if (room === 0 || Math.abs(room - width) < SLACK) return;
      width = room;
      const svg = chart.querySelector(".mnmt-live svg");
      if (svg && !chart.mnmtNarrowed && svg.width.baseVal.value <= room) return;
      clearTimeout(pause);
      pause = setTimeout(() => draw(chart).catch((error) => console.error(error)), svg ? 150 : 0);
    });
    observer.observe(chart);
  }

  async function drawAll() {
    const charts = [...document.querySelectorAll(".mnmt-chart")];
    if (charts.length > 0) await load("vega.js");
    const shown = charts.filter((chart) => chart.clientWidth > 0);
    charts.forEach(follow);
    const drawn = await Promise.allSettled(shown.map(draw));
    drawn.filter((each) => each.reason).forEach((each) => console.error(each.reason));
    document.documentElement.dataset.mnmtCharts = "done"; // for tests
  }

  // Of the figures of a group one shows at a time; arrow keys move between the tabs.
  function makeTabs(group) {
    const panels = [...group.children];
    const list = document.createElement("div");
    list.setAttribute("role", "tablist");
    list.className = "mnmt-tablist";
    const buttons = panels.map((panel, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = panel.getAttribute("aria-label");
      button.setAttribute("role", "tab");
      button.addEventListener("click", () => choose(i));
      panel.setAttribute("role", "tabpanel");
      panel.querySelector(".mnmt-tab-label").remove();
      return button;
    });
    function choose(chosen) {
      panels.forEach((panel, i) => (panel.hidden = i !== chosen));
      buttons.forEach((button, i) => {
        button.setAttribute("aria-selected", String(i === chosen));
        button.tabIndex = i === chosen ? 0 : -1;
      });
    }
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
      choose(next);
      buttons[next].focus();
    });
    list.append(...buttons);
    group.prepend(list);
    choose(0);
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

  const SHORT_WORD = 30; // characters, which fit on a line of a phone

  // Lets a command wrap between its words, not after the hyphens of an option.
  function keepWords(code) {
    const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    const hyphened = [];
    while (texts.nextNode()) if (texts.currentNode.data.includes("-")) hyphened.push(texts.currentNode);
    for (const text of hyphened) {
      const parts = text.data.split(/(\S*-\S*)/).map((part, i) => {
        if (i % 2 === 0 || part.length > SHORT_WORD) return part;
        const word = document.createElement("span");
        word.className = "mnmt-word";
        word.textContent = part;
        return word;
      });
      text.replaceWith(...parts);
    }
  }

  // Indents what wraps of a command, so that it does not look like a command of its own.
  function hangLines(code) {
    const lines = [[]];
    for (const node of [...code.childNodes])
      if (node.nodeType !== Node.TEXT_NODE) lines.at(-1).push(node);
      else
        node.data.split("\n").forEach((text, i) => {
          if (i > 0) lines.push([]);
          lines.at(-1).push(document.createTextNode(text));
        });
    code.replaceChildren(
      ...lines.flatMap((nodes, i) => {
        const line = document.createElement("span");
        line.className = "mnmt-line";
        line.append(...nodes);
        return [...(i > 0 ? ["\n"] : []), ...(line.textContent ? [line] : [])];
      }),
    );
  }

  // The claims that the chosen filters leave. An address may choose them, as in
  // `?verdict=reproduced`; one with an anchor opens that claim.
  function makeFilters(list) {
    const bar = list.querySelector(".mnmt-filters");
    const choices = [...bar.querySelectorAll("select")];
    const rows = [...list.querySelectorAll("tbody[data-paper]")];
    const asked = new URLSearchParams(location.search);
    choices.forEach((choice) => (choice.value = asked.get(choice.dataset.filter) ?? ""));
    function apply() {
      for (const row of rows)
        row.hidden = choices.some(({ value, dataset }) => value && row.dataset[dataset.filter] !== value);
      const shown = rows.filter((row) => !row.hidden).length;
      bar.querySelector("output").textContent = `${shown} of ${rows.length} claims`;
    }
    function openNamed() {
      const row = rows.find(({ id }) => `#${id}` === location.hash);
      if (!row) return;
      choices.forEach((choice) => (choice.value = ""));
      apply();
      row.querySelector("details").open = true;
      row.scrollIntoView();
    }
    choices.forEach((choice) => choice.addEventListener("change", apply));
    window.addEventListener("hashchange", openNamed);
    bar.hidden = false;
    apply();
    openNamed();
  }

  // A page's own table of three columns or more, with sentences in its cells: a narrow screen shows
  // its rows as blocks, and each cell names its column.
  const SENTENCE = 60; // characters
  function labelCells(frame) {
    const [head, ...rows] = frame.querySelector("table").rows;
    const names = [...head.cells].map((cell) => cell.textContent.trim());
    const cells = rows.flatMap((row) => [...row.cells]);
    if (names.length < 3 || !cells.some((cell) => cell.textContent.length > SENTENCE)) return;
    cells.forEach((cell) => (cell.dataset.label = names[cell.cellIndex]));
    frame.classList.add("mnmt-sentences");
  }

  // Sphinx gives a page the score of its best word alone, so that most pages tie and stand by name.
  // Here each word of the search counts, more where the page's title or its index entries hold it.
  function ranked([page, , , , score]) {
    const { docnames, titles, terms, titleterms, indexentries } = Search._index;
    const stemmer = new Stemmer();
    const words = (text) => splitQuery(text.toLowerCase()).filter((word) => !stopwords.includes(word));
    const stems = (text) => words(text).map((word) => stemmer.stemWord(word));
    const place = docnames.indexOf(page);
    const holds = (index, word) => Object.hasOwn(index, word) && [index[word]].flat().includes(place);
    const own = Object.keys(indexentries).filter((entry) =>
      indexentries[entry].some(([where]) => where === place),
    );
    const said = new Set([titles[place], ...own].flatMap(stems));
    const points = stems(new URLSearchParams(location.search).get("q") ?? "").map((word) =>
      said.has(word) ? 20 : holds(titleterms, word) ? 10 : holds(terms, word) ? 2 : 0,
    );
    const reference = /^book\/(api|methods\/glossary)/.test(page) ? -15 : 0; // hold every word
    return points.reduce((sum, each) => sum + each, score + reference);
  }
  if (window.Scorer) window.Scorer.score = ranked; // on the page of the search, which now waits

  // Below the first hit of each page that a search finds, what that page says first. The pages
  // themselves cannot be asked: from a folder, a browser reads no other file.
  async function showOpenings(results) {
    await load("openings.js");
    const shown = new Set();
    const add = (hit) => {
      const link = hit.querySelector("a");
      const name = link?.getAttribute("href").replace(/\.html.*$/, "");
      const said = window.mnmtOpenings[name];
      if (!said || shown.has(name)) return;
      shown.add(name);
      hit.append(Object.assign(document.createElement("p"), { className: "context", textContent: said }));
    };
    const addAll = () => results.querySelectorAll(".search > li:not(:has(> .context))").forEach(add);
    new MutationObserver(addAll).observe(results, { childList: true, subtree: true });
    addAll();
  }

  function enliven() {
    const results = document.querySelector("#search-results");
    if (results) showOpenings(results).catch((error) => console.error(error));
    document.querySelectorAll(".pst-scrollable-table-container:has(thead)").forEach(labelCells);
    for (const code of document.querySelectorAll(".highlight-bash pre")) {
      keepWords(code);
      hangLines(code);
    }
    for (const word of document.querySelectorAll(".bd-article code .pre")) // such as --force, whole
      if (word.textContent.length <= SHORT_WORD) word.style.whiteSpace = "nowrap";
    document.querySelectorAll(".mnmt-claims").forEach(makeFilters);
    for (const table of document.querySelectorAll(".mnmt-table")) {
      table.classList.add("mnmt-sortable");
      [...table.tHead.rows[0].cells].forEach((cell, column) =>
        cell.querySelector("button").addEventListener("click", () => sortBy(table, column)),
      );
    }
    document.querySelectorAll(".mnmt-tabs").forEach(makeTabs);
    // The theme, whose turn comes later, folds its list of contents away beside what is so named;
    // on a page without that list it would fail.
    if (document.querySelector(".bd-sidebar-secondary"))
      document.querySelectorAll(".mnmt-figure").forEach((each) => each.classList.add("full-width"));
    drawAll().catch((error) => console.error(error));
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", enliven);
  else enliven();
})();
