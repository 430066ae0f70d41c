// The laws of one language pair, fitted in the browser: what mnmt_repro.laws does in Python.
// Eq. 7, one exponent for all weights, gives starts; Eq. 11 with the fraction of Eq. 12 is fitted
// from them by damped Gauss-Newton steps in a box. A test compares both with Python.
// Rows are objects {p, n, loss}; `recommend` is for two pairs.
"use strict";

const mnmtLaws = (() => {
  const ALPHA = [1e-3, 10]; // exponents searched, as laws.projection.ALPHA_BOUNDS
  const TREND_LEVEL = 0.003; // as laws.shared_exponent
  const MIN_WEIGHT = 0.01; // least share of a pair, as laws.recommendation
  const GOOD_R2 = 0.95; // likewise
  const MOST_FRACTION = 1.02; // as laws.joint_law
  const STEPS = 400; // of the weights among which the best is sought

  const sum = (list) => list.reduce((total, value) => total + value, 0);
  const mean = (list) => sum(list) / list.length;
  function dot(a, b) {
    let total = 0;
    for (let i = 0; i < a.length; i++) total += a[i] * b[i];
    return total;
  }
  const distinct = (list) => [...new Set(list)].sort((a, b) => a - b);
  const range = (count) => Array.from({ length: count }, (_, i) => i);
  const clip = (value, low, high) => Math.min(Math.max(value, low), high);

  // Share `q` of the sorted values lies below; between two values as numpy.quantile does.
  function quantile(sorted, q) {
    const at = q * (sorted.length - 1);
    const low = Math.floor(at);
    return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  }

  // Least value of a function of one variable between two points that enclose it.
  function golden(f, low, high) {
    const ratio = (Math.sqrt(5) - 1) / 2;
    let [a, b] = [high - ratio * (high - low), low + ratio * (high - low)];
    let [fa, fb] = [f(a), f(b)];
    while (high - low > 1e-9 * (1 + Math.abs(low))) {
      if (fa < fb) [high, b, fb, a] = [b, a, fa, b - ratio * (b - low)], (fa = f(a));
      else [low, a, fa, b] = [a, b, fb, a + ratio * (high - a)], (fb = f(b));
    }
    return (low + high) / 2;
  }

  // Solution x of a x = b, by elimination with pivots; NaN where a is singular.
  function solve(a, b) {
    const rows = a.map((row, i) => [...row, b[i]]);
    const size = b.length;
    for (let k = 0; k < size; k++) {
      let best = k;
      for (let i = k; i < size; i++) if (Math.abs(rows[i][k]) > Math.abs(rows[best][k])) best = i;
      [rows[k], rows[best]] = [rows[best], rows[k]];
      for (let i = k + 1; i < size; i++) {
        const factor = rows[i][k] / rows[k][k];
        for (let j = k; j <= size; j++) rows[i][j] -= factor * rows[k][j];
      }
    }
    const x = Array(size).fill(0);
    for (let k = size - 1; k >= 0; k--)
      x[k] = (rows[k][size] - dot(rows[k].slice(0, size), x)) / rows[k][k];
    return x;
  }

  // Whether some direction among the columns (k lists of m) leaves the law unchanged: Gram-Schmidt,
  // the longest column first.
  function rankDeficient(columns, tolerance = 1e-7) {
    if (columns.length > (columns[0]?.length ?? 0)) return true;
    let left = columns.map((column) => {
      const norm = Math.sqrt(dot(column, column));
      return column.map((value) => value / norm);
    });
    let longest = null;
    while (left.length) {
      const norms = left.map((column) => Math.sqrt(dot(column, column)));
      const best = norms.indexOf(Math.max(...norms));
      longest ??= norms[best];
      if (!(norms[best] >= tolerance * longest)) return true; // also for NaN
      const unit = left[best].map((value) => value / norms[best]);
      left = left
        .filter((_, i) => i !== best)
        .map((column) => {
          const along = dot(column, unit);
          return column.map((value, i) => value - along * unit[i]);
        });
    }
    return false;
  }

  // Probability that Student's t with whole degrees of freedom exceeds t (Abramowitz and Stegun
  // 26.7.3 and 26.7.4).
  function studentTail(t, dof) {
    const angle = Math.atan(t / Math.sqrt(dof));
    const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
    let term = dof % 2 ? cosine : 1;
    let series = dof === 1 ? 0 : term;
    for (let k = dof % 2 ? 3 : 2; k < dof; k += 2) {
      term *= ((k - 1) / k) * cosine * cosine;
      series += term;
    }
    const inside = dof % 2 ? (2 / Math.PI) * (angle + sine * series) : sine * series;
    return (1 - inside) / 2;
  }

  // Eq. 7: loss = beta[p] n^-alpha + l_inf with beta and l_inf at least 0. For each exponent the
  // rest is linear, and only the exponent is searched. Sizes are divided by their mean.
  function fitJoint(rows) {
    const weights = distinct(rows.map((row) => row.p));
    const group = rows.map((row) => weights.indexOf(row.p));
    const centre = mean(rows.map((row) => Math.log(row.n)));
    const logs = rows.map((row) => Math.log(row.n) - centre);
    const loss = rows.map((row) => row.loss);
    const reason = cannotFit(rows, weights.length);
    if (reason) return { reason };

    function best(alpha) {
      const z = logs.map((x) => Math.exp(-alpha * x));
      const of = (values) => {
        const totals = Array(weights.length).fill(0);
        values.forEach((value, i) => (totals[group[i]] += value));
        return totals;
      };
      const [s, t, zy] = [of(z.map((v) => v * v)), of(z), of(z.map((v, i) => v * loss[i]))];
      let active = weights.map(() => true);
      let constant, raw;
      for (let step = 0; step <= weights.length; step++) {
        const share = (values) => sum(values.map((v, g) => (active[g] ? (v * t[g]) / s[g] : 0)));
        const found = (sum(loss) - share(zy)) / (loss.length - share(t));
        constant = Number.isFinite(found) ? Math.max(found, 0) : 0;
        raw = zy.map((v, g) => (v - constant * t[g]) / s[g]);
        const now = raw.map((v) => v > 0);
        if (now.every((v, g) => v === active[g])) break;
        active = now;
      }
      const beta = raw.map((v) => Math.max(v, 0));
      const residual = z.map((v, i) => loss[i] - beta[group[i]] * v - constant);
      return { alpha, beta, l_inf: constant, z, rss: dot(residual, residual) };
    }

    const count = 40;
    const grid = range(count).map((i) => ALPHA[0] * (ALPHA[1] / ALPHA[0]) ** (i / (count - 1)));
    const errors = grid.map((alpha) => best(alpha).rss);
    const at = errors.indexOf(Math.min(...errors));
    const ends = [grid[Math.max(at - 1, 0)], grid[Math.min(at + 1, count - 1)]];
    const alpha = golden((a) => best(a).rss, ...ends);
    const fit = best(alpha);
    const atEnd = ALPHA.some((end) => Math.abs(alpha / end - 1) < 1e-6);
    return { ...fit, reason: noAnswer(fit, { logs, loss, group, weights, atEnd }) };
  }

  // Why no fit should be tried, from the rows alone; empty when one may be.
  function cannotFit(rows, groups) {
    const sizes = distinct(rows.map((row) => row.n)).length;
    const cells = new Set(rows.map((row) => `${row.p} ${row.n}`)).size;
    const short = `cannot determine ${2 + groups} parameters; train more sizes`;
    if (sizes < 2 || (groups === 1 && sizes < 3)) return `${sizes} distinct size(s) ${short}`;
    if (cells < 2 + groups) return `${cells} distinct rows ${short}`;
    const loss = rows.map((row) => row.loss);
    if (Math.max(...loss) - Math.min(...loss) <= 1e-10 * Math.max(...loss))
      return "the loss is flat: it does not change with size";
    return "";
  }

  // Why the optimum of Eq. 7 is no answer; empty when it is one.
  function noAnswer(fit, { logs, loss, group, weights, atEnd }) {
    const within = (values) => {
      const means = weights.map((_, g) => mean(values.filter((_, i) => group[i] === g)));
      return values.map((value, i) => value - means[group[i]]);
    };
    const worse = within(loss);
    if (dot(worse, within(logs)) >= 0) return "the loss rises with size: train larger models longer";
    const curve = fit.z.map((v, i) => fit.beta[group[i]] * v);
    const columns = [curve.map((v, i) => v * logs[i])];
    if (fit.l_inf > 0) columns.push(curve.map(() => 1));
    fit.beta.forEach((beta, g) => {
      if (beta > 0) columns.push(fit.z.map((v, i) => (group[i] === g ? v : 0)));
    });
    if (fit.beta.every((beta) => beta <= 0) || rankDeficient(columns))
      return "several parameter sets fit equally well: the sizes do not separate them";
    if (loss.length > 2 + weights.length) {
      const power = within(curve);
      const r = dot(worse, power) / Math.sqrt(dot(worse, worse) * dot(power, power));
      const dof = loss.length - weights.length - 1;
      const t = r * Math.sqrt(dof / Math.max(1 - r * r, 1e-300));
      if (studentTail(t, dof) >= TREND_LEVEL)
        return "the loss does not change with size beyond its noise";
    }
    return atEnd ? `the exponent ran to an end of its range (${ALPHA.join(", ")})` : "";
  }

  // Eq. 12.
  const fraction = (p, [c1, c2, c3]) => p + c1 * p ** c2 * (1 - p) ** c3;

  // The boxes of c1, c2, c3 in which the fraction stays above 0, as laws.fraction.
  const BOXES = [
    [[0, 0.01, 0.01], [50, 10, 10]],
    [[-1 + 1e-6, 1, 0.01], [0, 10, 10]],
  ].map(([low, high]) => ({
    low: [1e-3, 0, -300, ...low],
    high: [10, Infinity, 300, ...high],
  }));

  // Residuals and their derivatives at theta = alpha, l_inf, log beta', c1, c2, c3. `data` has
  // logs: of the sizes, centred; p, logP and logRest: a weight, log p and log(1 - p).
  function residuals([alpha, constant, height, c1, c2, c3], { p, logP, logRest, logs }, loss) {
    const residual = new Float64Array(p.length);
    const slopes = p.map((weight, i) => {
      const g = Math.exp(c2 * logP[i] + c3 * logRest[i]);
      const f = Math.max(weight + c1 * g, 1e-12);
      const logX = Math.log(f) + logs[i];
      const t = Math.exp(Math.min(height - alpha * logX, 300));
      residual[i] = t + constant - loss[i];
      const byF = (-alpha * t) / f;
      const byRest = weight < 1 ? byF * c1 * g * logRest[i] : 0;
      return [-t * logX, 1, t, byF * g, byF * c1 * g * logP[i], byRest];
    });
    return { residual, slopes };
  }

  // Least half sum of squares in a box, by damped Gauss-Newton steps; as laws.newton.
  function minimise(start, data, loss, { low, high }, tolerance) {
    const size = start.length;
    let theta = start.map((value, k) => clip(value, low[k], high[k]));
    let now = residuals(theta, data, loss);
    let objective = dot(now.residual, now.residual) / 2;
    let damping = 1e-3, quiet = 0, held;
    for (let step = 0; step < 200 && quiet < 4 && damping < 1e16; step++) {
      const gradient = Array(size).fill(0);
      const hessian = range(size).map(() => Array(size).fill(0));
      for (let i = 0; i < loss.length; i++) {
        const slope = now.slopes[i];
        for (let a = 0; a < size; a++) {
          gradient[a] += slope[a] * now.residual[i];
          for (let b = 0; b <= a; b++) hessian[a][b] += slope[a] * slope[b];
        }
      }
      held = theta.map(
        (v, k) => (v <= low[k] && gradient[k] > 0) || (v >= high[k] && gradient[k] < 0),
      );
      const largest = Math.max(...range(size).map((k) => hessian[k][k]));
      const matrix = range(size).map((a) =>
        range(size).map((b) => {
          if (held[a] || held[b]) return a === b ? 1 : 0;
          const damped = a === b ? damping * Math.max(hessian[a][a], 1e-12 * largest) : 0;
          return hessian[Math.max(a, b)][Math.min(a, b)] + damped;
        }),
      );
      const right = gradient.map((g, k) => (held[k] ? 0 : -g));
      let move = solve(matrix, right);
      if (!(dot(move, gradient) < 0)) move = right.map((g, k) => g / Math.abs(matrix[k][k]));
      const trial = theta.map((value, k) => clip(value + move[k], low[k], high[k]));
      const next = residuals(trial, data, loss);
      const value = dot(next.residual, next.residual) / 2;
      const still = trial.every((v, k) => Math.abs(v - theta[k]) <= 1e-11 * (1 + Math.abs(theta[k])));
      const small = Math.abs(objective - value) <= tolerance * objective + 1e-25 * loss.length;
      quiet = still || small ? quiet + 1 : 0;
      const better = value <= objective;
      if (better) [theta, now, objective] = [trial, next, value];
      damping = clip(damping * (better ? 0.2 : 5), 1e-12, 1e16);
    }
    return { theta, held, slopes: now.slopes, objective };
  }

  const least = (found) => found.reduce((a, b) => (b.objective < a.objective ? b : a));

  // Eq. 11 with Eq. 12, of one pair; `reason` says why there is no answer, and is empty else.
  function fitFraction(all) {
    const rows = all
      .filter((row) => row.p > 0) // zero-shot rows are left out
      .map((row) => ({ ...row, p: Number(row.p.toFixed(9)) }));
    const joint = fitJoint(rows);
    const [p, n, loss] = ["p", "n", "loss"].map((name) => rows.map((row) => row[name]));
    const centre = mean(n.map(Math.log));
    const logs = n.map((value) => Math.log(value) - centre);
    const data = { p, logP: p.map(Math.log), logRest: p.map((w) => Math.log1p(-w)), logs };
    const law = { p, n, loss, data, centre, reason: joint.reason };
    const others = distinct(p.filter((value) => value < 1)).length;
    if (!law.reason && others < 3)
      law.reason = `${others} weights below 1 cannot determine 3 coefficients of the fraction; train more weights`;
    if (law.reason) return law;

    const found = [];
    for (const c1 of [0.2, 1, -0.3])
      for (const c2 of [0.3, 1])
        for (const c3 of [0.5, 1.5]) {
          const heights = loss.map((value, i) => {
            const x = Math.log(Math.max(fraction(p[i], [c1, c2, c3]), 1e-3)) + data.logs[i];
            const reducible = Math.max(value - joint.l_inf, 1e-3 * value);
            return Math.log(reducible) + joint.alpha * x;
          });
          const start = [joint.alpha, joint.l_inf, Math.log(mean(heights.map(Math.exp))), c1, c2, c3];
          for (const box of BOXES) found.push(minimise(start, data, loss, box, 1e-13));
        }
    const best = least(found);
    const held = [...best.held];
    const straight = Math.abs(best.theta[3]) < 1e-6; // f(p) = p, where the two boxes meet
    if (straight) {
      best.theta[3] = 0;
      held.splice(3, 3, false, true, true);
    }
    const free = range(6).filter((k) => !held[k]);
    if (rankDeficient(free.map((k) => best.slopes.map((slope) => slope[k])))) {
      law.reason = "several parameter sets fit equally well: the rows do not separate them";
      if (!p.includes(1)) law.reason += "; add rows of the pair alone (p = 1)";
    } else if (best.held[0])
      law.reason = "the exponent ran to an end of its range: no power law in these sizes";
    if (law.reason) return law;

    const rss = 2 * best.objective;
    const middle = mean(loss);
    const r2 = 1 - rss / sum(loss.map((value) => (value - middle) ** 2));
    const dof = loss.length - free.length;
    const names = ["alpha", "l_inf", "beta", "c1", "c2", "c3"];
    const bounds = names.filter((_, k) => held[k]);
    const params = inUnits(best.theta, centre);
    const doubts = doubtsOf(law, params, held[3]);
    return { ...law, theta: best.theta, params, rss, r2, dof, bounds, doubts };
  }

  // Why the fraction is not identified, and which runs would identify it, as FractionFit.doubts.
  function doubtsOf({ p, n }, { c1, c2, c3 }, bounded) {
    if (!p.includes(1)) {
      const ends = [...new Set([Math.min(...n), Math.max(...n)])];
      return [`no row has p = 1; add runs of this pair alone at size${ends.length > 1 ? "s from" : ""} ${ends.join(" to ")}`];
    }
    const found = [];
    const least = Math.min(...p);
    const weights = range(200).map((i) => least + ((1 - least) * i) / 199);
    const fractions = weights.map((weight) => fraction(weight, [c1, c2, c3]));
    const highest = Math.max(...fractions);
    if (bounded)
      found.push(`c1 ${c1 < 0 ? ">= -0.999999" : "<= 50"} is at its bound; add runs at three or more further weights`);
    else if (highest > MOST_FRACTION)
      found.push(
        `f(${weights[fractions.indexOf(highest)].toFixed(2)}) is ${highest.toFixed(2)}, more than the whole model; ` +
          "add seeds at p = 1 and at weights near it",
      );
    return found;
  }

  function inUnits([alpha, l_inf, height, c1, c2, c3], centre) {
    return { alpha, l_inf, beta: Math.exp(height + alpha * centre), c1, c2, c3 };
  }

  // Eq. 11 at a weight and a size.
  const predict = ({ alpha, l_inf, beta, c1, c2, c3 }, p, n) =>
    l_inf + beta * (fraction(p, [c1, c2, c3]) * n) ** -alpha;

  // Numbers from 0 to 1 that a seed determines (mulberry32).
  function random(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let x = Math.imul(state ^ (state >>> 15), state | 1);
      x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
      return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  // Parameters refitted to the law's own curve plus resampled residuals, as
  // laws.uncertainty.residual_bootstrap; empty for a law without rows to spare.
  function bootstrap(law, { draws = 500, seed = 1 } = {}) {
    if (law.dof < 1) return [];
    const next = random(seed);
    const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
    const count = law.loss.length;
    const fitted = law.p.map((p, i) => predict(law.params, p, law.n[i]));
    const raw = law.loss.map((value, i) => value - fitted[i]);
    const inflate = Math.sqrt(count / law.dof);
    const residual = raw.map((value) => (value - mean(raw)) * inflate);
    const [positive, negative] = BOXES;
    const [own, other] = law.theta[3] >= 0 ? [positive, negative] : [negative, positive];
    return range(draws).map(() => {
      const scale = Math.sqrt(law.dof / sum(range(law.dof).map(() => normal() ** 2)));
      const loss = fitted.map((value) => value + scale * residual[Math.floor(next() * count)]);
      let found = minimise(law.theta, law.data, loss, own, 1e-9);
      if (Math.abs(found.theta[3]) < 1e-6)
        found = least([found, minimise(found.theta, law.data, loss, other, 1e-13)]);
      return inUnits(found.theta, law.centre);
    });
  }

  const interval = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted.length ? [quantile(sorted, 0.025), quantile(sorted, 0.975)] : [NaN, NaN];
  };

  // The mixture of two pairs with the least weighted mean loss, as laws.recommend_weights.
  // `laws` is [first, second], each with `draws` from `bootstrap`; `importance` is of the first.
  function recommend(laws, n, importance) {
    const cost = (p, [a, b]) => importance * predict(a, p, n) + (1 - importance) * predict(b, 1 - p, n);
    const grid = range(STEPS + 1).map((i) => MIN_WEIGHT + ((1 - 2 * MIN_WEIGHT) * i) / STEPS);
    const lowest = (params) => {
      let at = 0, least = Infinity;
      grid.forEach((p, i) => {
        const value = cost(p, params);
        if (value < least) [at, least] = [i, value];
      });
      return at;
    };
    const params = laws.map((law) => law.params);
    const at = lowest(params);
    const p = golden((x) => cost(x, params), grid[Math.max(at - 1, 0)], grid[Math.min(at + 1, STEPS)]);
    const draws = range(Math.min(...laws.map((law) => law.draws.length)));
    const bests = draws.map((b) => grid[lowest(laws.map((law) => law.draws[b]))]);
    const [low, high] = interval(bests);
    return {
      weights: [p, 1 - p],
      weightIntervals: [[low, high], [1 - high, 1 - low]],
      losses: laws.map((law, i) => predict(law.params, [p, 1 - p][i], n)),
      lossIntervals: laws.map((law, i) =>
        interval(law.draws.map((each) => predict(each, [p, 1 - p][i], n))),
      ),
    };
  }

  return { GOOD_R2, studentTail, fitJoint, fitFraction, bootstrap, predict, interval, recommend };
})();

if (typeof module === "object") module.exports = mnmtLaws;
