// Try it: one question to two models, whose thoughts, cuts and answers are shown as they stream.

import { ask, get } from "./api.js";
import { gauge } from "./charts.js";
import { el, setAttribute, setText } from "./dom.js";
import { count, dollars, span } from "./format.js";
import { events } from "./stream.js";

export const id = "try";
export const title = "Try it";

/** The places of the slider: 0, then in even ratios to the most that the model may think. */
const PLACES = 60;
const LEAST = 4;
const LETTERS_MAX = 40_000;

// The key is held here as long as the page is open, and nowhere else.
let key = "";
let question = "";

/** Opens the panel in this place. */
export function open(root) {
  const text = el("textarea", { id: "question", rows: "3", maxlength: String(LETTERS_MAX), required: true });
  text.value = question;
  text.addEventListener("input", () => (question = text.value));
  const secret = el("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false" });
  secret.value = key;
  secret.addEventListener("input", () => (key = secret.value.trim()));
  const needsKey = el("p", { hidden: true }, el("label", { for: "key" }, "Key"), secret, el("span", { class: "note" }, "What is asked here is paid by this key, under its limits. It stays in this page's memory."));
  const sides = [side("A"), side("B")];
  const [go, stop] = [el("button", { type: "submit" }, "Ask both"), el("button", { type: "button", hidden: true }, "Stop")];
  let running = null;
  const submit = async (event) => {
    event.preventDefault();
    running?.abort();
    const mine = (running = new AbortController());
    stop.hidden = false;
    await Promise.all(sides.map((one) => one.run(text.value, mine.signal)));
    if (running === mine) stop.hidden = true;
  };
  stop.addEventListener("click", () => running?.abort());
  root.append(el("form", { class: "ask", on: { submit } }, el("p", {}, el("label", { for: "question" }, "Question"), text), needsKey,
    el("div", { class: "pair" }, sides.map((one) => one.node)), el("p", { class: "go" }, go, stop)));
  return {
    interval: 0,
    async refresh() {
      const { models, needs_key, example } = await get("models");
      needsKey.hidden = !needs_key;
      setAttribute(text, "placeholder", example);
      if (!text.value) text.value = question = example;
      sides.forEach((one, place) => one.offer(models, place));
    },
    close: () => running?.abort(),
  };
}

function budgetAt(place, most) {
  if (place <= 0) return 0;
  return Math.round(LEAST * (Math.max(most, LEAST) / LEAST) ** ((place - 1) / (PLACES - 1)));
}

function side(letter) {
  const select = el("select", { id: `model ${letter}` });
  const planned = el("input", { type: "checkbox", id: `planned ${letter}`, checked: letter === "B" ? null : true });
  const slider = el("input", { type: "range", id: `budget ${letter}`, min: "0", max: String(PLACES), value: "20" });
  const value = el("output", { for: `budget ${letter}` });
  const [thought, cut, said, line] = [el("p", { class: "thought-text" }), el("p", { class: "cut-line", hidden: true }), el("p", { class: "answer-text" }), el("p", { class: "budget-line", role: "status" })];
  const fill = gauge();
  let models = [];
  const most = () => models.find((model) => model.id === select.value)?.thinking_max || 2048;
  const budget = () => (planned.checked ? null : budgetAt(Number(slider.value), most()));
  const show = () => {
    slider.disabled = planned.checked;
    setText(value, planned.checked ? "as planned" : `${count(budget())} tokens`);
    setAttribute(slider, "aria-valuetext", value.textContent);
  };
  [select, planned, slider].forEach((input) => input.addEventListener("input", show));
  const places = { thought, cut, said, line, fill };
  return {
    node: el("section", { class: "card side", "aria-label": `Side ${letter}`, "data-side": letter },
      el("p", {}, el("label", { for: `model ${letter}` }, `Model ${letter}`), select),
      el("p", { class: "thinks" }, el("label", { for: `budget ${letter}` }, "Thinking budget"), value, slider),
      el("p", { class: "check" }, planned, el("label", { for: `planned ${letter}` }, "let the plan decide")),
      fill.node, thought, cut, said, line),
    offer(known, place) {
      const before = select.value;
      models = known;
      if (select.options.length !== known.length) select.replaceChildren(...known.map((model) => el("option", { value: model.id }, model.id)));
      const thinkers = known.filter((model) => model.thinking_max);
      select.value = before || (place === 1 && thinkers.length ? thinkers[0].id : known[0]?.id ?? "");
      show();
    },
    run: (text, signal) => run({ model: select.value, text, budget: budget(), signal }, places),
  };
}

/** Asks one side, and shows what comes. */
async function run({ model, text, budget, signal }, places) {
  const { thought, cut, said, line, fill } = places;
  [thought, said].forEach((place) => place.replaceChildren());
  cut.hidden = true;
  setText(line, "asked");
  fill.update({ spent: 0, name: "thinking budget", text: "nothing used yet" });
  const body = { model, stream: true, messages: [{ role: "user", content: text }], stream_options: { include_usage: true } };
  if (budget !== null) body.budget = { thinking_tokens: budget };
  const began = performance.now();
  let pieces = 0;
  try {
    for await (const event of events(await ask(body, key, signal))) {
      if (event.error) throw new Error(event.error.message);
      const delta = event.choices?.[0]?.delta ?? {};
      if (delta.reasoning_content) {
        thought.append(delta.reasoning_content);
        pieces += 1;
        if (budget) fill.update({ spent: pieces / budget, name: "thinking budget", text: `${pieces} tokens` });
      }
      if (delta.content) said.append(delta.content);
      if (event.budget) end(event.budget, (performance.now() - began) / 1000, places);
    }
  } catch (error) {
    setText(line, signal.aborted ? "stopped" : error.message);
  }
}

/** What was given, used and paid. */
function end({ model, thinking, solution, cost_usd, why, enforced }, seconds, { cut, line, fill }) {
  const isCut = thinking.ended === "cut";
  cut.hidden = !thinking.used;
  setText(cut, isCut ? `cut after ${count(thinking.used)} tokens` : `closed by the model after ${count(thinking.used)} tokens`);
  setAttribute(cut, "class", isCut ? "cut-line cut" : "cut-line");
  const share = thinking.budget ? thinking.used / thinking.budget : 0;
  fill.update({ spent: share, name: "thinking budget", text: `${thinking.used} of ${thinking.budget} tokens`, isTight: isCut });
  const cost = cost_usd === undefined ? "no price" : dollars(Number(cost_usd));
  line.replaceChildren(
    el("strong", { "data-stat": "budget" }, `${count(thinking.used)} of ${count(thinking.budget)} tokens of thought, ${count(solution.used)} of answer, ${cost}, ${span(seconds)}`),
    el("span", { class: "note" }, ` ${model}, held ${enforced}. ${why ?? ""}`));
}
