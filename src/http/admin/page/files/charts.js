// Pictures. Each is drawn at the width that it has, and again where that changes.

import { el, setAttribute, svg } from "./dom.js";
import { count, dollars, percent } from "./format.js";
import { budgetScale, budgetTicks, linear, roundUp } from "./scale.js";

/** A place for a picture that is `height` pixels high. `draw(width, height, data)` gives the marks; `say(data)` tells it in words. */
function figure(height, draw, say) {
  const picture = svg("svg", { role: "img", height, width: "100%" });
  const node = el("div", { class: "figure" }, picture);
  let data = null;
  let width = 0;
  const redraw = () => {
    if (!data || width < 40) return;
    setAttribute(picture, "viewBox", `0 0 ${width} ${height}`);
    setAttribute(picture, "aria-label", say(data));
    picture.replaceChildren(...draw(width, height, data).flat());
  };
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now === width) return;
    width = now;
    redraw();
  }).observe(node);
  return { node, update(next) { data = next; redraw(); } };
}

const line = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });
const label = (x, y, text, kind = "", anchor = "start") =>
  svg("text", { x, y, class: `label ${kind}`, "text-anchor": anchor }, text);
const path = (points) => points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/**
 * The course of a rate over the last minutes: `{ points: [{ at, values }], kinds, format }`, the values on top of each other.
 */
export function course(height = 84) {
  const draw = (width, high, { points, kinds, format }) => {
    const floor = high - 16;
    if (points.length < 2) return [line(0, floor, width, floor, "axis"), label(0, high - 3, "a course shows after some seconds")];
    const [first, last] = [points[0].at, points.at(-1).at];
    const top = roundUp(Math.max(...points.map((point) => point.values.reduce((sum, value) => sum + value, 0))));
    const x = linear([first, last], [0, width]);
    const y = linear([0, top], [floor, 12]);
    const marks = [line(0, y(top), width, y(top), "grid"), line(0, floor, width, floor, "axis")];
    const below = points.map(() => 0);
    kinds.forEach((kind, layer) => {
      const base = points.map((point, place) => [x(point.at), y(below[place])]);
      points.forEach((point, place) => (below[place] += point.values[layer]));
      const edge = points.map((point, place) => [x(point.at), y(below[place])]);
      marks.push(svg("path", { class: `area ${kind}`, d: `${path([...edge, ...base.reverse()])}Z` }));
      marks.push(svg("path", { class: `line ${kind}`, d: path(edge) }));
    });
    const minutes = Math.max(1, Math.round((last - first) / 60_000));
    return [...marks, label(0, high - 3, `${minutes} min ago`), label(width, high - 3, "now", "", "end"), label(width, 9, format(top), "", "end")];
  };
  const say = ({ points, format }) => {
    const sums = points.map((point) => point.values.reduce((sum, value) => sum + value, 0));
    return sums.length ? `from ${format(sums[0])} to ${format(sums.at(-1))}, at most ${format(Math.max(...sums))}` : "nothing yet";
  };
  return figure(height, draw, say);
}

/** How many thoughts had which length: budgets given as an outline, what was used as bars. */
export function lengths(height = 260) {
  const draw = (width, high, { bounds, planned, used }) => {
    const floor = high - 24;
    const top = roundUp(Math.max(1, ...planned, ...used));
    const places = planned.length || 1;
    const step = width / places;
    const y = linear([0, top], [floor, 14]);
    const marks = [line(0, y(top), width, y(top), "grid"), label(width, 11, `${count(top)} thoughts`, "", "end")];
    used.forEach((value, place) =>
      marks.push(svg("rect", { class: "bar thought", x: place * step + step * 0.18, width: step * 0.64, y: y(value), height: floor - y(value) })));
    const outline = planned.flatMap((value, place) => [[place * step, y(value)], [(place + 1) * step, y(value)]]);
    marks.push(svg("path", { class: "outline", d: path([[0, floor], ...outline, [width, floor]]) }));
    const every = Math.ceil(44 / step);
    bounds.forEach((bound, place) => {
      if (place % every === 0 && place < places) marks.push(label((place + 0.5) * step, high - 8, count(bound), "", "middle"));
    });
    return [...marks, line(0, floor, width, floor, "axis")];
  };
  const say = ({ planned, used }) => {
    const sum = (values) => values.reduce((all, value) => all + value, 0);
    return `the lengths of ${sum(planned)} budgets that were given and of ${sum(used)} thoughts, in tokens`;
  };
  return figure(height, draw, say);
}

/** Budget against use, a dot for each thought: on the diagonal are those that used all of it. */
export function thoughts(height = 260) {
  const draw = (width, high, { latest }) => {
    const [left, floor] = [38, high - 26];
    const most = Math.max(64, ...latest.map((thought) => Math.max(thought.planned, thought.used)));
    const x = budgetScale(most, [left, width - 8]);
    const y = budgetScale(most, [floor, 10]);
    const marks = [];
    for (const tick of budgetTicks(most)) {
      marks.push(line(left, y(tick), width, y(tick), "grid"), label(left - 6, y(tick) + 4, count(tick), "", "end"));
      if (x(tick) < width - 84) marks.push(label(x(tick), high - 10, count(tick), "", "middle"));
    }
    marks.push(line(x(0), y(0), x(most), y(most), "diagonal"), label(width, high - 10, "budget →", "", "end"));
    for (const { planned, used, ended } of latest)
      marks.push(svg("circle", { class: `dot ${ended}`, cx: x(planned), cy: y(used), r: 3.5 }));
    return marks;
  };
  const say = ({ latest }) => {
    const cut = latest.filter((thought) => thought.ended === "cut").length;
    return `${latest.length} latest thoughts by budget and use, ${cut} of them cut`;
  };
  return figure(height, draw, say);
}

/** A model's predicted success and cost against its thinking budget, with the budgets that were chosen. */
export function curve(height = 210) {
  const draw = (width, high, { budgets, success, usd, chosen }) => {
    const [left, right, floor, roof] = [38, width - 58, high - 26, 16];
    const most = budgets.at(-1) || 16;
    const x = budgetScale(most, [left, right]);
    const y = linear([0, 1], [floor, roof]);
    const top = roundUp(Math.max(...usd, ...chosen.map((point) => point.usd), 1e-9));
    const cost = linear([0, top], [floor, roof]);
    const marks = [0, 0.5, 1].flatMap((share) => [
      line(left, y(share), right, y(share), share ? "grid" : "axis"),
      label(left - 6, y(share) + 4, percent(share), "", "end"),
    ]);
    marks.push(label(right + 6, cost(top) + 4, dollars(top), "money"), label(right + 6, floor + 4, "$0", "money"));
    for (const tick of budgetTicks(most)) if (x(tick) < right - 64 || tick === 0) marks.push(label(x(tick), high - 10, count(tick), "", "middle"));
    marks.push(label(right, high - 10, "tokens", "", "end"));
    marks.push(svg("path", { class: "line money dashed", d: path(budgets.map((budget, place) => [x(budget), cost(usd[place])])) }));
    marks.push(svg("path", { class: "line answer", d: path(budgets.map((budget, place) => [x(budget), y(success[place])])) }));
    for (const point of chosen)
      marks.push(svg("circle", { class: "dot chosen", cx: x(point.thinking_tokens), cy: y(point.success), r: 4 }));
    return marks;
  };
  const say = ({ model, budgets, success, usd, chosen }) =>
    `${model}: ${percent(success[0])} right for ${dollars(usd[0])} without a thought, ${percent(success.at(-1))} for ` +
    `${dollars(usd.at(-1))} with ${count(budgets.at(-1))} tokens; ${chosen.length} budgets were chosen on it`;
  return figure(height, draw, say);
}

/** The steps of a run, at their times and as long as they took: `{ steps, kinds }`. */
export function timeline(height = 34) {
  const draw = (width, high, { steps }) => {
    if (!steps.length) return [line(0, high / 2, width, high / 2, "axis")];
    const begin = Date.parse(steps[0].at);
    const ends = steps.map((step) => Date.parse(step.at) + step.seconds * 1000);
    const x = linear([begin, Math.max(...ends, begin + 1)], [2, width - 2]);
    const marks = [line(0, high / 2, width, high / 2, "axis")];
    steps.forEach((step, place) => {
      const start = x(Date.parse(step.at));
      const kind = step.ended === "finished" ? (step.answer_ended === "tool_calls" ? "answer" : "done") : "failed";
      const long = Math.max(4, x(ends[place]) - start - 1);
      marks.push(svg("rect", { class: `step ${kind}`, x: Math.min(start, width - long), y: 7, width: long, height: high - 14, rx: 2 },
        svg("title", {}, `step ${place + 1}: ${step.model}, ${count(step.thinking_tokens)} + ${count(step.solution_tokens)} tokens, ${dollars(step.usd)}`)));
    });
    return marks;
  };
  const say = ({ steps }) => `${steps.length} latest steps in their order`;
  return figure(height, draw, say);
}

/** Parts of a whole as one bar, with what each is: `[{ kind, name, value }]`. */
export function parts(what) {
  const bar = el("div", { class: "parts", "aria-hidden": "true" });
  const legend = el("dl", { class: "legend" });
  return {
    node: el("div", { class: "ended" }, el("h3", {}, what), bar, legend),
    update(items) {
      const all = items.reduce((sum, item) => sum + item.value, 0);
      bar.replaceChildren(...items.map(({ kind, value }) => el("span", { class: kind, vars: { "--share": all ? value / all : 0 } })));
      legend.replaceChildren(...items.map(({ kind, name, value }) =>
        el("div", {}, el("dt", { class: kind }, name), el("dd", { "data-stat": `${what} ${name}` }, count(value)))));
    },
  };
}

/** How much of something is taken: spent, reserved, and where its pace would be. */
export function gauge() {
  const node = el("div", { class: "gauge", role: "meter", "aria-valuemin": "0", "aria-valuemax": "100" },
    el("span", { class: "spent" }), el("span", { class: "held" }), el("span", { class: "mark" }));
  return {
    node,
    update({ spent, reserved = 0, pace = null, name, text, isTight = false }) {
      const share = (value) => String(Math.max(0, Math.min(1, value || 0)));
      node.style.setProperty("--spent", share(spent));
      node.style.setProperty("--held", share(reserved));
      node.style.setProperty("--pace", share(pace));
      node.classList.toggle("paced", pace !== null);
      node.classList.toggle("tight", isTight);
      setAttribute(node, "aria-valuenow", Math.round(Math.min(1, spent || 0) * 100));
      setAttribute(node, "aria-label", name);
      setAttribute(node, "aria-valuetext", text);
    },
  };
}
