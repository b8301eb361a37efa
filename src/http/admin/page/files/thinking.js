// Thinking: budgets given and used, how thoughts and answers ended, and each model's curve.

import { get } from "./api.js";
import { curve, lengths, parts, thoughts } from "./charts.js";
import { el, keyed, setText, stat } from "./dom.js";
import { count, percent, requests } from "./format.js";

export const id = "thinking";
export const title = "Thinking";

/** How an ending looks: by itself, at a limit, or badly. */
const THOUGHTS = { closed: "answer", cut: "cut", stopped: "soft", none: "none" };
const ANSWERS = { stop: "answer", tool_calls: "thought", caller: "soft", operator: "soft", model: "soft", deadline: "soft", none: "none" };

/** Opens the panel in this place. */
export function open(root) {
  const stats = {
    planned: stat("planned", "tokens given"), used: stat("used", "tokens used"), share: stat("share", "of what was given"),
    over: stat("over", "thoughts beyond their budget"), overshoot: stat("overshoot", "tokens beyond"),
  };
  const [spread, dots] = [lengths(), thoughts()];
  const [ends, answers] = [parts("Thoughts"), parts("Answers")];
  const curves = el("div", { class: "curves" });
  const none = el("p", { class: "note" });
  const models = el("tbody");
  const showCurves = keyed(curves, (one) => one.model, curveCard);
  const showModels = keyed(models, (one) => one.model, modelRow);
  root.append(
    el("dl", { class: "stats" }, Object.values(stats).map((one) => one.node)),
    el("div", { class: "pair" },
      el("section", { class: "card" }, el("h2", {}, "Planned against used"),
        el("p", { class: "note" }, el("span", { class: "key outline" }, "budgets given"), el("span", { class: "key thought" }, "thoughts, by length in tokens")), spread.node),
      el("section", { class: "card" }, el("h2", {}, "The latest thoughts"),
        el("p", { class: "note" }, el("span", { class: "key answer" }, "closed by the model"), el("span", { class: "key cut" }, "cut at the budget"), "tokens used against tokens given"), dots.node)),
    el("div", { class: "pair" }, el("section", { class: "card" }, el("h2", {}, "How they ended"), ends.node, answers.node), el("section", { class: "card" }, el("h2", {}, "By model"),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "By model" }, el("table", {}, el("thead", {}, el("tr", {}, ["model", "thoughts", "given", "used", "cut"].map((name) => el("th", { scope: "col" }, name)))), models)))),
    el("h2", {}, "What thinking buys"),
    el("p", { class: "note" }, "Predicted on average over each model's latest requests, with the budgets that were chosen: ",
      el("span", { class: "key answer" }, "right answers"), el("span", { class: "key money dashed" }, "cost"), el("span", { class: "key chosen" }, "chosen")),
    none, curves,
  );
  return {
    interval: 5_000,
    async refresh() {
      const now = await get("thinking");
      const { planned, used, overshoot } = now;
      stats.planned.set(count(planned.tokens));
      stats.used.set(count(used.tokens));
      stats.share.set(planned.tokens ? percent(used.tokens / planned.tokens) : "–");
      stats.over.set(count(overshoot.over));
      stats.overshoot.set(count(overshoot.tokens));
      spread.update({ bounds: now.bounds, ...trimmed(planned.buckets, used.buckets) });
      dots.update({ latest: now.latest });
      ends.update(endings(now.thoughts, THOUGHTS));
      answers.update(endings(now.answers, ANSWERS));
      showCurves(now.curves);
      setText(none, now.curves.length ? "" : "There is a curve as soon as a model that thinks was weighed.");
      showModels(now.models);
    },
  };
}

/** Without the buckets at the long end that nothing is in. */
function trimmed(planned, used) {
  const last = Math.max(planned.findLastIndex((value) => value > 0), used.findLastIndex((value) => value > 0), 4);
  return { planned: planned.slice(0, last + 2), used: used.slice(0, last + 2) };
}

function endings(counts, kinds) {
  return Object.entries(counts).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1])
    .map(([name, value]) => ({ kind: kinds[name] ?? "cut", name: name.replace("_", " "), value }));
}

function curveCard() {
  const [name, about] = [el("h3"), el("p", { class: "note" })];
  const picture = curve();
  return {
    node: el("section", { class: "card" }, name, picture.node, about),
    update(one) {
      setText(name, one.model);
      setText(about, `over ${requests(one.requests)}, chosen for ${count(one.chosen.length)}`);
      picture.update(one);
    },
  };
}

function modelRow() {
  const name = el("th", { scope: "row" });
  const cells = [0, 1, 2, 3].map(() => el("td"));
  return {
    node: el("tr", {}, name, cells),
    update(one) {
      setText(name, one.model);
      const cut = one.ended.cut ?? 0;
      [count(one.thoughts), count(one.planned_tokens), count(one.used_tokens), one.thoughts ? percent(cut / one.thoughts) : "–"]
        .forEach((text, place) => setText(cells[place], text));
    },
  };
}
