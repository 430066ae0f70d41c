// The planner's controls and answers. mnmt.js loads this file, after laws.js, on the one page that
// has a planner; its chart is drawn by then, and this script replaces the chart's data sets.
"use strict";

(() => {
  const LETTERS = { "": 1, k: 1e3, M: 1e6, G: 1e9, B: 1e9 };
  const BEYOND = 10; // as figures.planner, whose chart this is
  const HATCHES = 16;
  const CURVE = Array.from({ length: 99 }, (_, i) => (i + 1) / 100);
  const DRAWS = 500;
  const OWN = "your own losses";
  const SAID = { alpha: "the exponent", l_inf: "the irreducible loss" };

  // A size such as "20k", "1.5M" or "20,000"; NaN for anything else.
  function readSize(text) {
    const found = /^(\d+(?:\.\d+)?(?:e\d+)?)\s*([kMGB]?)$/.exec(text.trim().replaceAll(",", ""));
    return found ? Number(found[1]) * LETTERS[found[2]] : NaN;
  }

  function writeSize(n) {
    const letter = ["G", "M", "k", ""].find((each) => n >= LETTERS[each]) ?? "";
    return `${Number((n / LETTERS[letter]).toPrecision(3))}${letter}`;
  }

  // Rows by pair of a table with the columns pair, p, n and loss; an error names its line.
  function readTable(text) {
    const lines = text.split(/\r?\n/).map((line) => line.trim());
    const head = lines[0];
    const separator = ["\t", ";", ","].find((each) => head.includes(each)) ?? ",";
    const names = head.split(separator).map((name) => name.trim().replaceAll('"', ""));
    const at = {};
    for (const name of ["pair", "p", "n", "loss"]) {
      at[name] = names.indexOf(name);
      if (at[name] < 0) throw new Error(`The first line has no column “${name}”. Name the columns pair, p, n and loss.`);
    }
    const pairs = {};
    lines.forEach((line, i) => {
      if (i === 0 || line === "") return;
      const cells = line.split(separator).map((cell) => cell.trim().replaceAll('"', ""));
      const row = { p: Number(cells[at.p] || NaN), n: readSize(cells[at.n] ?? ""), loss: Number(cells[at.loss] || NaN) };
      if (!(row.p >= 0 && row.p <= 1)) throw new Error(`Line ${i + 1}: the weight p must lie between 0 and 1.`);
      if (!(row.n > 0)) throw new Error(`Line ${i + 1}: the size n must be a number above 0, such as 20000 or 20k.`);
      if (!(row.loss > 0 && row.loss < Infinity)) throw new Error(`Line ${i + 1}: the loss must be a number above 0.`);
      (pairs[cells[at.pair]] ??= []).push(row);
    });
    const count = Object.keys(pairs).length;
    if (count !== 2)
      throw new Error(`The table has ${count} pair(s). The planner compares two; the command line takes more.`);
    return pairs;
  }

  // The laws of a table: [first, second], in the order of the pairs' codes.
  function fitTable(text) {
    return Object.entries(readTable(text))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([pair, rows]) => ({ pair, draws: [], ...mnmtLaws.fitFraction(rows) }));
  }

  // Weights of the first pair at which both laws interpolate.
  function covered([first, second]) {
    const below = (law) => law.p.filter((p) => p < 1);
    return [
      Math.max(Math.min(...below(first)), 1 - Math.max(...below(second))),
      Math.min(Math.max(...below(first)), 1 - Math.min(...below(second))),
    ];
  }

  const fittedSizes = (laws) => [
    Math.max(...laws.map((law) => Math.min(...law.n))),
    Math.min(...laws.map((law) => Math.max(...law.n))),
  ];

  // Whether a size, written in three digits, lies outside the trained ones.
  function beyondSizes(laws, n) {
    const [least, most] = fittedSizes(laws);
    return n < 0.995 * least || n > 1.005 * most;
  }

  // As figures.planner.loss_axis.
  function lossAxis(laws, n) {
    const losses = laws.flatMap((law) => [
      ...law.loss,
      mnmtLaws.predict(law.params, 1, BEYOND * Math.max(...law.n)),
      ...law.p.filter((p) => p > 0).map((p) => mnmtLaws.predict(law.params, p, n)),
    ]);
    return [0.95 * Math.min(...losses), 1.02 * Math.max(...losses)];
  }

  function hatch(outside, [low, high]) {
    const step = (high - low) / HATCHES;
    return outside.flatMap(([a, b]) => {
      const first = a === 0 && b === 1 ? -20 : 0;
      return Array.from({ length: HATCHES - first }, (_, i) => {
        const y = low + (i + first) * step;
        return { x: a, x2: b, y, y2: y + (b - a) * 20 * step };
      });
    });
  }

  // What the chart draws; as figures.planner.datasets.
  function datasets(laws, names, { n, importance, baseline }, found) {
    const [low, high] = covered(laws);
    const share = (i, p) => (i === 0 ? p : 1 - p);
    const mean = (p) =>
      importance * mnmtLaws.predict(laws[0].params, p, n) +
      (1 - importance) * mnmtLaws.predict(laws[1].params, 1 - p, n);
    return {
      curve: laws.flatMap((law, i) =>
        CURVE.map((p) => {
          const band = mnmtLaws.interval(law.draws.map((each) => mnmtLaws.predict(each, share(i, p), n)));
          const loss = mnmtLaws.predict(law.params, share(i, p), n);
          const [bottom, top] = law.draws.length ? band : [loss, loss];
          return { p, name: names[i], loss, low: bottom, high: top };
        }),
      ),
      mean: CURVE.map((p) => ({ p, loss: mean(p) })),
      points: laws.flatMap((law, i) => {
        const far = law.n.map((size) => Math.abs(Math.log(size / n)));
        const nearest = law.n[far.indexOf(Math.min(...far))];
        return law.p.map((p, k) => ({
          p: share(i, p), name: names[i], loss: law.loss[k], n: law.n[k], near: law.n[k] === nearest,
        }));
      }),
      chosen: found.inside
        ? [{ p: found.weights[0], low: found.weightIntervals[0][0], high: found.weightIntervals[0][1] }]
        : [],
      baseline: [{ p: baseline }],
      hatch: hatch(beyondSizes(laws, n) ? [[0, 1]] : [[0, low], [high, 1]], lossAxis(laws, n)),
    };
  }

  const shown = (value, digits = 3) => (Number.isFinite(value) ? value.toFixed(digits) : "–");
  const interval = ([low, high], digits = 3) =>
    Number.isFinite(low) ? ` (${shown(low, digits)} to ${shown(high, digits)})` : "";

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    made.append(...children);
    return made;
  }

  // What a reader should know of the recommendation.
  function notesOn(laws, names, { n }, found) {
    const notes = [];
    const [low, high] = covered(laws);
    if (!found.inside)
      notes.push(
        `No recommendation: the best weight of ${names[0]} is ${shown(found.weights[0], 2)}, outside ` +
          `the trained weights ${shown(low, 2)} to ${shown(high, 2)}.`,
      );
    const [least, most] = fittedSizes(laws);
    if (beyondSizes(laws, n))
      notes.push(`Extrapolated: the trained sizes are ${writeSize(least)} to ${writeSize(most)}.`);
    laws.forEach((law, i) => {
      const faults = law.r2 < mnmtLaws.GOOD_R2 ? [`R² is ${shown(law.r2, 2)}`] : [];
      if (law.bounds.length) faults.push(`the fit puts ${law.bounds.map((name) => SAID[name] ?? name).join(" and ")} at its limit`);
      const sizes = new Set(law.n).size;
      if (sizes < 3) faults.push(`${sizes} sizes cannot test a power law, so add some`);
      if (faults.length) notes.push(`The law of ${names[i]} is of low quality: ${faults.join("; ")}.`);
    });
    return notes;
  }

  function answer(laws, names, settings, found) {
    const { n, baseline, importance } = settings;
    const at = [baseline, 1 - baseline];
    const before = laws.map((law, i) => mnmtLaws.predict(law.params, at[i], n));
    const weighted = ([one, other]) => shown(importance * one + (1 - importance) * other);
    const heads = [["pair"], ["weight", " (95 %)"], ["loss", " (95 %)"], ["loss at", " baseline"]];
    const rows = laws.map((law, i) => [
      [names[i]],
      [shown(found.weights[i]), interval(found.weightIntervals[i])],
      [shown(found.losses[i]), interval(found.lossIntervals[i])],
      [shown(before[i]), ` at ${shown(at[i], 2)}`],
    ]);
    rows.push([["weighted mean"], ["–"], [weighted(found.losses)], [weighted(before)]]);
    const cell = (tag, parts) => element(tag, {}, ...parts.map((part) => element("span", {}, part)));
    const cells = (tag, texts) => element("tr", {}, ...texts.map((parts) => cell(tag, parts)));
    const table = element(
      "table",
      { "data-weights": JSON.stringify(found.weights), "data-losses": JSON.stringify(found.losses) },
      element("thead", {}, cells("th", heads)),
      element("tbody", {}, ...rows.map((row) => cells("td", row))),
    );
    const notes = notesOn(laws, names, settings, found).map((note) => element("p", {}, note));
    return found.inside ? [table, ...notes] : notes;
  }

  function start(planner) {
    const { tables, settings, names } = JSON.parse(planner.querySelector(".mnmt-planner-tables").textContent);
    const chart = planner.querySelector(".mnmt-chart");
    const template = chart.querySelector("script").textContent;
    const input = (attributes) => element("input", attributes);
    const table = element("select", {}, ...[...Object.keys(tables), OWN].map((label) => element("option", {}, label)));
    const own = element("textarea", { rows: 6, spellcheck: "false", placeholder: "pair,p,n,loss\neng-deu,0.5,20k,3.41\n…" });
    const size = input({ type: "text", size: 8, value: writeSize(settings.n) });
    const importance = input({ type: "range", min: 0.05, max: 0.95, step: 0.05, value: settings.importance });
    const baseline = input({ type: "range", min: 0.05, max: 0.95, step: 0.05, value: settings.baseline });
    const labelled = (text, control) => element("label", {}, element("span", {}, text), control);
    const ownLabel = labelled("One row a model and pair, with the columns pair, p (its weight), n (size) and loss", own);
    const importanceLabel = labelled("", importance);
    const baselineLabel = labelled("", baseline);
    const form = element(
      "form", { class: "mnmt-planner-form" },
      labelled("losses of", table), labelled("size N", size), importanceLabel, baselineLabel, ownLabel,
    );
    const result = element("div", { class: "mnmt-planner-result", "aria-live": "polite" });
    form.addEventListener("submit", (event) => event.preventDefault());
    planner.prepend(form, result);
    let laws = null;
    let frame = null; // pairs and loss axis of the chart as drawn
    const caption = planner.querySelector("figcaption");
    let turn = 0; // of the last change: an older one stops

    const say = (...content) => result.replaceChildren(...content);
    const named = () => laws.map(({ pair }) => names[pair] ?? pair);

    function nameSliders(first) {
      const name = (label, what, { value }) =>
        (label.firstChild.textContent = `${what} of ${first}: ${Number(value).toFixed(2)}`);
      name(importanceLabel, "importance", importance);
      name(baselineLabel, "baseline weight", baseline);
    }

    function update() {
      if (!laws || laws.some((law) => law.reason)) return;
      const now = { n: readSize(size.value), importance: Number(importance.value), baseline: Number(baseline.value) };
      const labels = named();
      nameSliders(labels[0]);
      if (!(now.n > 0)) return say(element("p", {}, "Write the size as 20k, 1.5M or 20000."));
      const [low, high] = covered(laws);
      const found = mnmtLaws.recommend(laws, now.n, now.importance);
      found.inside = found.weights[0] >= low - 1e-6 && found.weights[0] <= high + 1e-6;
      say(...answer(laws, labels, now, found));
      caption.hidden = !found.inside; // it explains the recommended weight
      return redraw(labels, lossAxis(laws, now.n), datasets(laws, labels, now, found));
    }

    // New data alone leave the axes where they are. Other pairs or another loss axis need other room,
    // so the chart is drawn anew, with its data.
    async function redraw(labels, axis, data) {
      const spec = { ...JSON.parse(template), datasets: data };
      const [losses, mean] = spec.vconcat.map((panel) => panel.layer);
      for (const { encoding } of losses) if (encoding.y?.scale?.domain) encoding.y.scale.domain = axis;
      for (const { encoding } of [...losses, ...mean]) {
        if (encoding.x?.title) encoding.x.title = `weight of ${labels[0]}`;
      }
      chart.querySelector("script").textContent = JSON.stringify(spec);
      const last = frame;
      frame = JSON.stringify([labels, axis]);
      if (frame !== last) return window.mnmt.draw(chart);
      await chart.mnmtDrawn;
      Object.entries(data).forEach(([name, rows]) => chart.mnmtView.data(name, rows));
      return chart.mnmtView.runAsync();
    }

    async function fit(changed) {
      const mine = ++turn;
      ownLabel.hidden = table.value !== OWN;
      for (const source of planner.querySelectorAll("figcaption a, .mnmt-between, .mnmt-provenance"))
        source.hidden = table.value !== Object.keys(tables)[0]; // they are of that table alone
      const text = table.value === OWN ? own.value : tables[table.value];
      const refuse = (...messages) => {
        laws = null;
        chart.hidden = caption.hidden = true;
        nameSliders("the first pair");
        say(...messages.map((message) => element("p", {}, message)));
      };
      if (text.trim() === "") return refuse("Paste a table of losses.");
      try {
        laws = fitTable(text);
      } catch (error) {
        return refuse(error.message);
      }
      const unknown = laws.filter((law) => law.reason);
      const doubtful = laws.filter((law) => law.doubts?.length);
      const each = (found, said) => found.map((law) => `${names[law.pair] ?? law.pair}: ${said(law)}.`);
      if (unknown.length)
        return refuse("No recommendation: the law is not identified.", ...each(unknown, (law) => law.reason));
      if (doubtful.length)
        return refuse(
          "No recommendation: the effective fraction is not identified.",
          ...each(doubtful, (law) => law.doubts.join(". ")),
        );
      if (changed) size.value = writeSize(fittedSizes(laws)[1]);
      chart.hidden = false;
      await update();
      for (const [i, law] of laws.entries()) {
        await new Promise((resolve) => setTimeout(resolve)); // the page answers meanwhile
        if (mine !== turn) return;
        law.draws = mnmtLaws.bootstrap(law, { draws: DRAWS, seed: 1 + i });
      }
      await update();
      planner.dataset.done = String(turn); // for tests
    }

    const complain = (promise) => Promise.resolve(promise).catch((error) => console.error(error));
    table.addEventListener("change", () => complain(fit(true)));
    own.addEventListener("input", () => complain(fit(true)));
    for (const control of [size, importance, baseline]) control.addEventListener("input", () => complain(update()));
    complain(fit(false));
  }

  document.querySelectorAll(".mnmt-planner").forEach(start);
})();
