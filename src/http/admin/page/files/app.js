// The page: who may see it, which panel is shown, and when it is asked again.

import { Refusal, get, hold, isHeld } from "./api.js";
import { el, setAttribute, setText } from "./dom.js";
import * as decisions from "./decisions.js";
import * as episodes from "./episodes.js";
import * as money from "./money.js";
import * as now from "./now.js";
import * as thinking from "./thinking.js";
import * as tryIt from "./try.js";

const PANELS = [now, thinking, money, episodes, decisions, tryIt];

const main = document.getElementById("main");
const state = document.getElementById("state");
const pause = document.getElementById("pause");
const leave = document.getElementById("leave");

let shown = null;
let timer = 0;
let isPaused = false;
let failures = 0;

/** The login, which is all there is without a token. */
function login(message) {
  stop();
  hold("");
  shown = null;
  document.getElementById("top").hidden = true;
  document.title = "Stint";
  const problem = el("p", { id: "problem", role: "alert" }, message ?? "");
  // Password managers want a name beside the secret.
  const name = el("input", { type: "text", name: "username", value: "stint-admin", autocomplete: "username", hidden: true });
  const input = el("input", {
    type: "password", id: "token", name: "password", autocomplete: "current-password", required: true,
    "aria-describedby": "problem", spellcheck: "false",
  });
  const submit = async (event) => {
    event.preventDefault();
    hold(input.value.trim());
    input.value = "";
    try {
      enter(await get("now"));
    } catch (error) {
      login(error instanceof Refusal ? error.message : "the server cannot be reached");
    }
  };
  main.replaceChildren(
    el("form", { class: "login", on: { submit } },
      el("h1", {}, "Stint"),
      el("p", { class: "note" }, "What this gateway does now is shown to who has the admin API's token, or a key that may administer."),
      el("label", { for: "token" }, "Token"), name, input,
      el("button", { type: "submit" }, "Look"),
      problem,
      el("p", { class: "note small" }, "The token stays in this page's memory and goes when you close or reload it.")),
  );
  input.focus();
}

/** The panels, for somebody who may see them. */
function enter(first) {
  document.getElementById("top").hidden = false;
  leave.hidden = !isHeld();
  setText(document.getElementById("version"), first.version);
  route();
}

function navigation() {
  const links = PANELS.map((panel) => el("a", { href: `#${panel.id}` }, panel.title));
  document.getElementById("panels").replaceChildren(...links);
}

/** Shows the panel that the address names. */
function route() {
  const asked = location.hash.slice(1);
  if (asked === "main") return;
  const panel = PANELS.find((known) => known.id === asked) ?? now;
  stop();
  for (const link of document.querySelectorAll("#panels a"))
    setAttribute(link, "aria-current", link.hash === `#${panel.id}` ? "page" : null);
  document.title = `${panel.title} · Stint`;
  const heading = el("h1", { id: "heading", tabindex: "-1" }, panel.title);
  const root = el("section", { class: `panel panel-${panel.id}`, "aria-labelledby": "heading" }, heading);
  const isFirst = shown === null;
  shown = panel.open(root);
  main.replaceChildren(root);
  if (!isFirst) heading.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  refresh();
}

/** Asks for what the panel shows, and again after a while. */
async function refresh() {
  const panel = shown;
  clearTimeout(timer);
  if (!panel || document.hidden) return;
  try {
    await panel.refresh();
    failures = 0;
    if (panel === shown) tell(isPaused ? "paused" : "live");
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) return login("the token is not taken any more");
    failures += 1;
    tell(error instanceof Refusal ? error.message : "the server cannot be reached", true);
  }
  if (panel === shown && !isPaused && !document.hidden && panel.interval)
    timer = setTimeout(refresh, Math.min(panel.interval * 2 ** failures, 30_000));
}

function stop() {
  clearTimeout(timer);
  shown?.close?.();
}

function tell(text, isWrong = false) {
  setText(state, text);
  setAttribute(state, "class", isWrong ? "wrong" : text);
}

pause.addEventListener("click", () => {
  isPaused = !isPaused;
  setAttribute(pause, "aria-pressed", String(isPaused));
  setText(pause, isPaused ? "Go on" : "Pause");
  if (isPaused) tell("paused");
  refresh();
});
leave.addEventListener("click", () => login());
window.addEventListener("hashchange", () => shown && route());
document.addEventListener("visibilitychange", () => !document.hidden && refresh());

navigation();
// Where nobody needs a token, there is none to ask for.
get("now").then(enter, (error) => login(error.status === 401 ? "" : error.message));
