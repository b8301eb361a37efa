// Decisions: the last ones, why they were made, and the offers that lost.

import { get } from "./api.js";
import { gauge } from "./charts.js";
import { el, keyed, setText } from "./dom.js";
import { ago, count, dollars, percent, span } from "./format.js";

export const id = "decisions";
export const title = "Decisions";

/** Opens the panel in this place. */
export function open(root) {
  const list = el("ol", { class: "decisions" });
  const none = el("p", { class: "note" });
  const show = keyed(list, (one) => one.id, decisionRow);
  root.append(el("p", { class: "note" }, "The last ones of this process. Of a request its numbers are remembered, none of its words."), none, list);
  return {
    interval: 3_000,
    async refresh() {
      const { remembered, decisions } = await get("decisions");
      show(decisions);
      const empty = remembered ? "Nothing was decided yet." : "Nothing is remembered where nothing is learned: [learn] enabled = true.";
      setText(none, decisions.length ? "" : empty);
    },
  };
}

function decisionRow(one) {
  const [when, came, thought] = [el("span", { class: "when" }), el("span", { class: "came" }), gauge()];
  const { chosen, outcome } = one;
  const summary = el("summary", {}, when, el("span", { class: "who" }, chosen?.model ?? outcome.model), thought.node, came, el("span", { class: "why" }, one.why));
  const detail = el("div", { class: "detail" });
  const node = el("li", { "data-decision": one.id, "data-model": outcome.model }, el("details", { on: { toggle: () => fillIn(detail, one) } }, summary, detail));
  return {
    node,
    update(now) {
      one = now;
      setText(when, ago(now.at));
      setText(came, endings(now.outcome));
      const { budget, used, ended } = now.outcome.thinking;
      thought.update({ spent: budget ? (used ?? 0) / budget : 0, name: "thinking budget", text: `${used ?? 0} of ${budget} tokens`, isTight: ended === "cut" });
      if (detail.firstChild) fillIn(detail, now);
    },
  };
}

function endings({ ended, error, thinking, solution, usd }) {
  if (ended !== "finished") return error ? `${ended}: ${error}` : ended.replace("_", " ");
  const thought = thinking.used ? `thought ${count(thinking.used)} of ${count(thinking.budget)}, ${thinking.ended}` : "no thought";
  return `${thought} · answer ${count(solution.used ?? 0)}, ${(solution.ended ?? "").replace("_", " ")} · ${dollars(usd)}`;
}

function fillIn(place, one) {
  const { outcome } = one;
  const facts = [
    ["request", one.id], ["account", one.account], ["route", one.route], ["run", one.episode],
    ["work", `${one.class}, difficulty ${one.difficulty}`], ["held", outcome.enforced],
    ["answered by", outcome.fell_back ? `${outcome.model}, not the one that was chosen` : outcome.model],
    ["took", `${span(outcome.seconds)}${outcome.first_token_seconds ? `, first token after ${span(outcome.first_token_seconds)}` : ""}`],
    ["set aside", dollars(outcome.reserved_usd)], ["a dollar counted", one.shadow_price?.toFixed(2)],
    ["verdicts", one.verdicts.map((verdict) => `${verdict.source} ${percent(verdict.success)}`).join(", ")],
  ];
  const offers = [...(one.chosen ? [{ ...one.chosen, isChosen: true }] : []), ...one.lost];
  const hidden = one.lost_count - one.lost.length;
  place.replaceChildren(
    el("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Offers" },
      el("table", {}, el("caption", {}, one.explored ? "Drawn, to learn: it was not the best on average" : "Offers, the chosen one first"),
        el("thead", {}, el("tr", {}, ["offer", "right", "cost", "time", "value", "chance"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, offers.map(offerRow)))),
    hidden > 0 ? el("p", { class: "note" }, `and ${count(hidden)} more that lost`) : "",
  );
}

function offerRow(offer) {
  const more = `${offer.samples > 1 ? ` × ${offer.samples}` : ""}${offer.escalates ? ", then a stronger one" : ""}`;
  const cells = [percent(offer.success), dollars(offer.usd), span(offer.seconds), dollars(offer.value_usd), percent(offer.propensity)];
  return el("tr", { class: offer.isChosen ? "chosen" : "lost" },
    el("th", { scope: "row" }, `${offer.model}, ${count(offer.thinking_tokens)} tokens${more}`), cells.map((text) => el("td", {}, text)));
}
