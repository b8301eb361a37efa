// Now: how much is asked, written and spent, and how those stand who answer.

import { get } from "./api.js";
import { course, gauge } from "./charts.js";
import { el, keyed, setAttribute, setText, stat } from "./dom.js";
import { count, dollars, rate } from "./format.js";

export const id = "now";
export const title = "Now";

/** Over how long a rate is taken, and how long a course is. */
const RATE_OVER = 10_000;
const COURSE = 15 * 60_000;
const STEP = 5_000;

/** What was counted, at its times. It outlives the panel, so that its course stays. */
let readings = [];

/** Opens the panel in this place. */
export function open(root) {
  const instruments = [
    instrument("requests", "Requests", "a second", ["answer"], (a) => [a.requests], rate),
    instrument("tokens", "Tokens", "a second", ["thought", "answer"], (a) => [a.thinking_tokens, a.solution_tokens], rate),
    instrument("money", "Money", "an hour", ["money"], (a) => [a.usd * 3600], dollars),
  ];
  const stats = {
    in_flight: stat("in_flight", "under way"), queued: stat("queued", "waiting"),
    reserved: stat("reserved", "reserved"), refused: stat("refused", "refused"), connections: stat("connections", "connections"),
  };
  const refusals = el("p", { class: "note", "data-stat": "refusals" });
  const alarms = el("div", { class: "alarms", role: "status" });
  const targets = el("ul", { class: "targets" });
  const more = el("p", { class: "note" });
  const models = el("tbody");
  const showTargets = keyed(targets, (target) => `${target.model}\n${target.target}`, targetRow);
  const showModels = keyed(models, (model) => model.model, modelRow);
  root.append(
    alarms,
    el("div", { class: "instruments" }, instruments.map((one) => one.node)),
    el("p", { class: "note keys" }, el("span", { class: "key thought" }, "thought"), el("span", { class: "key answer" }, "answer"), el("span", { class: "key money" }, "money")),
    el("dl", { class: "stats" }, Object.values(stats).map((one) => one.node)), refusals,
    el("h2", {}, "Backends"), targets, more,
    el("h2", {}, "Models, since the start"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Models, since the start" },
      el("table", {}, el("thead", {}, el("tr", {}, ["model", "requests", "thought", "answer", "money"].map((name) => el("th", { scope: "col" }, name)))), models)),
  );
  return {
    interval: 2_000,
    async refresh() {
      if (!readings.length || Date.now() - readings.at(-1).at > 3 * STEP) readings = await get("history");
      const now = await get("now");
      remember(now.counters);
      instruments.forEach((one) => one.update());
      stats.in_flight.set(count(now.in_flight));
      stats.queued.set(count(now.queued));
      stats.reserved.set(dollars(now.reserved_usd));
      stats.refused.set(count(now.counters.refused));
      stats.connections.set(count(now.connections));
      const why = Object.entries(now.refusals).sort((a, b) => b[1] - a[1]).slice(0, 4);
      setText(refusals, why.length ? `Refused by: ${why.map(([limit, times]) => `${limit} (${count(times)})`).join(", ")}` : "");
      showAlarms(alarms, now);
      showTargets(now.targets);
      const hidden = now.targets_count - now.targets.length;
      setText(more, hidden > 0 ? `and ${count(hidden)} more, all of them available and less busy` : "");
      showModels(now.models);
    },
  };
}

/** A gateway that starts again begins to count anew. */
function remember(reading) {
  const last = readings.at(-1);
  if (last && reading.requests < last.requests) readings = [];
  if (!last || reading.at > last.at) readings.push(reading);
  readings = readings.filter((one) => reading.at - one.at < COURSE + STEP);
}

/** What was counted a second, from one reading to the next. */
function rates(take) {
  const points = [];
  let before = readings[0];
  for (const reading of readings.slice(1)) {
    const seconds = (reading.at - before.at) / 1000;
    if (seconds * 1000 < STEP - 500) continue;
    const [now, then] = [take(reading), take(before)];
    points.push({ at: reading.at, values: now.map((value, place) => Math.max(0, value - then[place]) / seconds) });
    before = reading;
  }
  return points;
}

function instrument(name, heading, unit, kinds, take, format) {
  const value = el("strong", { "data-stat": `${name} rate` }, "–");
  const total = el("span", { "data-stat": `${name} total` });
  const picture = course();
  return {
    node: el("section", { class: `instrument ${name}` },
      el("h2", {}, heading), el("p", { class: "figure-value" }, value, el("span", {}, unit)), picture.node, el("p", { class: "note" }, total, " since the start")),
    update() {
      const last = readings.at(-1);
      const before = readings.findLast((one) => last.at - one.at >= RATE_OVER) ?? readings[0];
      const seconds = (last.at - before.at) / 1000;
      const sum = (reading) => take(reading).reduce((all, part) => all + part, 0);
      setText(value, seconds > 0 ? format((sum(last) - sum(before)) / seconds) : format(0));
      setText(total, name === "money" ? dollars(last.usd) : count(sum(last)));
      picture.update({ points: rates(take), kinds, format });
    },
  };
}

function showAlarms(place, now) {
  const texts = [];
  if (now.not_ready) texts.push(`Not ready: ${now.not_ready}`);
  if (now.configuration_refused) texts.push("The configuration was refused when it was last read; the one before is in force.");
  if (place.textContent !== texts.join("")) place.replaceChildren(...texts.map((text) => el("p", {}, text)));
}

const words = (counts) => Object.entries(counts).map(([word, times]) => `${word} ${count(times)}`).join(", ");

function targetRow() {
  const [name, state, notes] = [el("span", { class: "name" }), el("span", { class: "state" }), el("span", { class: "note" })];
  const busy = gauge();
  const calls = el("span", { class: "number" });
  const node = el("li", {}, el("span", { class: "light", "aria-hidden": "true" }), name, state, busy.node, calls, notes);
  return {
    node,
    update(target) {
      setAttribute(node, "class", target.available ? "" : "away");
      setAttribute(node, "data-target", `${target.model}/${target.target}`);
      setText(name, target.target === "0" || target.target === target.model ? target.model : `${target.model} · ${target.target}`);
      setText(state, target.available ? (target.loaded === false ? "not loaded" : "available") : "left alone");
      const of = target.limit ? ` of ${count(target.limit)}` : "";
      const waits = target.queue ? `, ${count(target.queue)} waiting` : "";
      setText(calls, `${count(target.in_flight)}${of} under way${waits}`);
      busy.update({ spent: target.limit ? target.in_flight / target.limit : 0, name: "calls under way", text: calls.textContent });
      const told = [target.why, words(target.trips) && `left alone for ${words(target.trips)}`, words(target.failures) && `failed: ${words(target.failures)}`, target.retries ? `asked again ${count(target.retries)}` : ""];
      setText(notes, told.filter(Boolean).join(" · "));
    },
  };
}

function modelRow() {
  const cells = ["requests", "thinking_tokens", "solution_tokens", "usd"].map(() => el("td"));
  const name = el("th", { scope: "row" });
  return {
    node: el("tr", {}, name, cells),
    update(model) {
      setText(name, model.model);
      [count(model.requests), count(model.thinking_tokens), count(model.solution_tokens), dollars(model.usd)].forEach((text, place) => setText(cells[place], text));
    },
  };
}
