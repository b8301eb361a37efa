// Episodes: runs of agents, what is left of each budget, their steps, and how to raise or end one.

import { changeRun, get } from "./api.js";
import { gauge, timeline } from "./charts.js";
import { el, keyed, setAttribute, setText } from "./dom.js";
import { ago, count, dollars, percent } from "./format.js";

export const id = "episodes";
export const title = "Episodes";

/** What a run may be limited in, and how it is raised. */
const MEMBERS = [["cost_usd", "dollars", "0.01"], ["thinking_tokens", "thinking tokens", "1"], ["turns", "turns", "1"]];

/** Opens the panel in this place. */
export function open(root) {
  const account = el("input", { id: "account", type: "search", placeholder: "every account", autocomplete: "off", spellcheck: "false" });
  const list = el("div", { class: "runs" });
  const [none, more] = [el("p", { class: "note", role: "status" }), el("p", { class: "note" })];
  const panel = {
    interval: 4_000,
    async refresh() {
      const runs = await get("episodes", account.value.trim() ? { account: account.value.trim() } : {});
      show(runs.episodes.map((run) => ({ ...run, now: Date.parse(runs.now) })));
      setText(none, runs.episodes.length ? "" : "No agent has run here yet, or not of that account.");
      setText(more, runs.has_more ? "and more, which were used before these" : "");
    },
  };
  const show = keyed(list, (run) => `${run.account}\n${run.id}`, (run) => runCard(run, panel));
  account.addEventListener("change", () => panel.refresh().catch((error) => setText(none, error.message)));
  root.append(el("p", { class: "filter" }, el("label", { for: "account" }, "Account"), account), none, list, more);
  return panel;
}

function runCard(first, panel) {
  const [name, whose, state, steps] = [el("h3"), el("p", { class: "note" }), el("p", { class: "badge" }), timeline()];
  const budgets = el("ul", { class: "budgets" });
  const showBudgets = keyed(budgets, (budget) => budget.name, budgetRow);
  const answer = el("p", { class: "answer-line", role: "status" });
  const change = changes(first, answer, panel);
  const node = el("article", { class: "card run", "data-run": first.id }, el("header", {}, name, state), whose, budgets, steps.node, change.node, answer);
  return {
    node,
    update(run) {
      const ended = run.is_ended;
      setText(name, run.id);
      setText(whose, `${run.account} · ${count(run.steps)} steps · ${run.model ?? "no model yet"} · ${ago(run.used_at, run.now)}${run.raised ? ` · changed ${run.raised}×` : ""}`);
      setText(state, ended ? "ended" : { open: "calls tools", answered: "answered", capped: "made to answer" }[run.state] ?? "begun");
      setAttribute(state, "class", `badge ${ended ? "ended" : run.state ?? ""}`);
      showBudgets(budgetsOf(run));
      steps.update({ steps: run.latest_steps });
      change.update(ended);
    },
  };
}

/** Every budget that is limited, or of which something was used. */
function budgetsOf(run) {
  const budget = (name, used, left, show = count) => ({ name, used, left, show });
  const number = (text) => (text === undefined ? undefined : Number(text));
  const found = [
    budget("money", number(run.cost_usd) ?? 0, number(run.left_usd), dollars),
    budget("thinking", run.thinking_tokens?.used ?? 0, run.thinking_tokens?.left),
    budget("turns", run.turns?.used ?? 0, run.turns?.left ?? run.turns?.route?.left),
  ];
  const { tools = {}, ...calls } = run.tool_calls ?? {};
  if (calls.used || calls.left !== undefined) found.push(budget("tool calls", calls.used ?? 0, calls.left));
  for (const [tool, { used, left }] of Object.entries(tools)) if (left !== undefined) found.push(budget(`calls of ${tool}`, used, left));
  return found.filter((one) => one.used || one.left !== undefined);
}

function budgetRow() {
  const [name, left] = [el("span", { class: "what" }), el("span", { class: "number" })];
  const bar = gauge();
  const node = el("li", {}, name, bar.node, left);
  return {
    node,
    update(budget) {
      const isLimited = budget.left !== undefined;
      const all = budget.used + (budget.left ?? 0);
      const share = isLimited ? (all ? budget.used / all : 1) : 0;
      setText(name, budget.name);
      setText(left, isLimited ? `${budget.show(budget.left)} left of ${budget.show(all)}` : `${budget.show(budget.used)} used, no limit`);
      setAttribute(node, "data-budget", budget.name);
      bar.update({ spent: share, name: budget.name, text: isLimited ? `${percent(1 - share)} left` : "no limit", isTight: isLimited && share > 0.9 });
    },
  };
}

/** Raising and ending a run. Each is an entry in the ledger's database. */
function changes(run, answer, panel) {
  const inputs = MEMBERS.map(([member, name, step]) => {
    const field = `${member} of ${run.account} ${run.id}`;
    const input = el("input", { id: field, type: "number", min: "0", step, inputmode: "decimal" });
    return { member, input, node: el("p", {}, el("label", { for: field }, `more ${name}`), input) };
  });
  const send = async (verb, body, told) => {
    try {
      await changeRun(run.account, run.id, verb, body);
      inputs.forEach((one) => (one.input.value = ""));
      setText(answer, told);
      await panel.refresh();
    } catch (error) {
      setText(answer, error.message);
    }
  };
  const raise = (event) => {
    event.preventDefault();
    const stated = inputs.filter((one) => Number(one.input.value) > 0);
    const value = ({ member, input }) => (member === "cost_usd" ? input.value : Number(input.value));
    send("raise", Object.fromEntries(stated.map((one) => [one.member, value(one)])), "raised, from its next step on");
  };
  const end = el("button", { type: "button", class: "grave" }, "End it");
  const sure = el("span", { class: "sure", hidden: true }, "For good? ",
    el("button", { type: "button", class: "grave", on: { click: () => send("end", {}, "ended: it takes no step any more") } }, "Yes, end it"),
    el("button", { type: "button", on: { click: () => ask(false) } }, "No"));
  const ask = (isAsked) => {
    sure.hidden = !isAsked;
    end.hidden = isAsked;
    (isAsked ? sure.querySelector("button") : end).focus();
  };
  end.addEventListener("click", () => ask(true));
  const form = el("form", { on: { submit: raise } }, inputs.map((one) => one.node), el("p", {}, el("button", { type: "submit" }, "Raise"), end, sure));
  const node = el("details", {}, el("summary", {}, "Raise or end"), form);
  return { node, update: (isEnded) => (node.hidden = isEnded) };
}
