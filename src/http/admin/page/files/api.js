// Asks the server. The token is held here and nowhere else: it ends with the page.

let token = "";

/** An answer that is an error, in the API's own words. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Holds a token for what is asked from now on. */
export function hold(text) {
  token = text;
}

/** True where a token is held. */
export function isHeld() {
  return token !== "";
}

/** The headers of every request. */
export function headers(more = {}) {
  return token ? { authorization: `Bearer ${token}`, ...more } : more;
}

async function answer(response) {
  const body = await response.json().catch(() => null);
  if (response.ok) return body;
  throw new Refusal(response.status, body?.error?.message ?? `the server answered ${response.status}`);
}

const OPTIONS = { credentials: "omit", cache: "no-store", redirect: "error" };

/** One part of what the page shows. */
export async function get(part, query = {}) {
  const asked = new URLSearchParams(query).toString();
  const path = `/admin/page/${part}${asked ? `?${asked}` : ""}`;
  return answer(await fetch(path, { ...OPTIONS, headers: headers() }));
}

/** Changes a run of an agent. */
export async function changeRun(account, id, verb, body) {
  const path = `/admin/episodes/${encodeURIComponent(id)}/${verb}?${new URLSearchParams({ account })}`;
  const sent = { method: "POST", headers: headers({ "content-type": "application/json" }), body: JSON.stringify(body) };
  return answer(await fetch(path, { ...OPTIONS, ...sent }));
}

/** Asks a model by the playground: the answer streams. */
export async function ask(body, key, signal) {
  const own = headers({ "content-type": "application/json", accept: "text/event-stream" });
  if (key) own["x-playground-key"] = key;
  const sent = { method: "POST", headers: own, body: JSON.stringify(body), signal };
  const response = await fetch("/admin/try", { ...OPTIONS, ...sent });
  return response.ok ? response : answer(response);
}
