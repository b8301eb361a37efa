// Money: what each account has spent of its limits against their pace, what is reserved, and what runs out when.

import { get } from "./api.js";
import { gauge } from "./charts.js";
import { el, keyed, setAttribute, setText, stat } from "./dom.js";
import { amount, clock, count, dollars, percent, requests, span } from "./format.js";

export const id = "money";
export const title = "Money";

const UNITS = { money: "money", thinking: "thinking tokens", requests: "requests", tool_calls: "tool calls", concurrency: "requests at once" };

/** Opens the panel in this place. */
export function open(root) {
  const stats = { reserved: stat("reserved", "reserved now"), open: stat("open", "requests hold it"), overrun: stat("overrun", "billed beyond reservations") };
  const accounts = el("div", { class: "accounts" });
  const [none, more] = [el("p", { class: "note" }), el("p", { class: "note" })];
  const [spenders, models] = [bars("spender"), bars("model")];
  const show = keyed(accounts, (one) => one.account, accountCard);
  root.append(
    el("dl", { class: "stats" }, Object.values(stats).map((one) => one.node)),
    el("h2", {}, "Limits, what runs out first on top"),
    el("p", { class: "note" }, el("span", { class: "key money" }, "spent"), el("span", { class: "key held" }, "reserved"), el("span", { class: "key mark" }, "the pace: how much of the time is gone")),
    none, accounts, more,
    el("div", { class: "pair" },
      el("section", { class: "card" }, el("h2", {}, "Accounts, over all time"), spenders.node),
      el("section", { class: "card" }, el("h2", {}, "Models, since the start"), models.node)),
  );
  return {
    interval: 5_000,
    async refresh() {
      const money = await get("money");
      stats.reserved.set(dollars(money.reserved_usd));
      stats.open.set(count(money.open_reservations));
      stats.overrun.set(dollars(money.overrun_usd));
      show(money.accounts.map((account) => ({ ...account, now: Date.parse(money.now) })));
      setText(none, money.accounts.length ? "" : "No account and no key has a limit.");
      const hidden = money.accounts_count - money.accounts.length;
      setText(more, hidden > 0 ? `and ${count(hidden)} more accounts with limits, which last longer` : "");
      spenders.update(money.spenders.map((one) => ({ name: one.account, usd: one.spent_usd, note: requests(one.requests) })));
      models.update(money.models.map((one) => ({ name: one.model, usd: one.usd, note: "" })));
    },
  };
}

function accountCard() {
  const name = el("h3");
  const limits = el("ul", { class: "limits" });
  const show = keyed(limits, (one) => [one.unit, one.window, one.about].join(" "), limitRow);
  const node = el("section", { class: "card account" }, name, limits);
  return {
    node,
    update(account) {
      setText(name, account.account);
      setAttribute(node, "data-account", account.account);
      show(account.limits.map((limit) => ({ ...limit, now: account.now })));
    },
  };
}

function limitRow() {
  const [what, spent, left, end, price] = ["what", "number", "left", "note end", "price"].map((kind) => el("span", { class: kind }));
  const bar = gauge();
  return {
    node: el("li", {}, what, spent, bar.node, left, price, end),
    update(limit) {
      const { unit, max, now } = limit;
      setText(what, `${UNITS[unit] ?? unit}${limit.window ? (limit.window === "total" ? " in all" : ` a ${limit.window}`) : ""}${limit.about ? `, ${limit.about}` : ""}`);
      setText(spent, `${amount(limit.spent, unit)} of ${amount(max, unit)}`);
      setText(left, `${amount(limit.left, unit)} left`);
      const gone = elapsed(limit);
      const share = max ? limit.spent / max : 1;
      const runsOut = limit.runs_out_at ? Date.parse(limit.runs_out_at) : null;
      bar.update({
        spent: share, reserved: max ? limit.reserved / max : 0, pace: gone, name: what.textContent, isTight: runsOut !== null || limit.left === 0,
        text: `${percent(share)} spent${gone === null ? "" : `, ${percent(gone)} of the time is gone`}`,
      });
      setText(price, limit.pace ? `shadow price ${limit.pace.shadow_price.toFixed(2)}` : "");
      setText(end, ending(limit, runsOut, now));
      setAttribute(end, "class", runsOut !== null ? "end wrong" : "note end");
    },
  };
}

function elapsed({ starts_at, resets_at, now }) {
  if (!resets_at || !starts_at) return null;
  const [start, end] = [Date.parse(starts_at), Date.parse(resets_at)];
  return (now - start) / (end - start);
}

function ending(limit, runsOut, now) {
  if (limit.left === 0 && limit.resets_at) return `spent, resets ${clock(limit.resets_at)}`;
  if (runsOut !== null) return `runs out in ${span((runsOut - now) / 1000)}${limit.resets_at ? `, resets ${clock(limit.resets_at)}` : ""}`;
  return limit.resets_at ? `lasts until it resets, ${clock(limit.resets_at)}` : "";
}

/** Names and dollars, the longest bar for the most. */
function bars(kind) {
  const node = el("ul", { class: "bars" });
  let most = 0;
  const show = keyed(node, (one) => one.name, () => {
    const [name, usd, note] = ["name", "number", "note"].map((part) => el("span", { class: part }));
    const row = el("li", {}, name, el("span", { class: "bar" }), usd, note);
    return {
      node: row,
      update(one) {
        setText(name, one.name);
        setText(usd, dollars(one.usd));
        setText(note, one.note);
        setAttribute(row, `data-${kind}`, one.name);
        row.style.setProperty("--share", most ? one.usd / most : 0);
      },
    };
  });
  return { node, update(items) { most = Math.max(0, ...items.map((one) => one.usd)); show(items); } };
}
