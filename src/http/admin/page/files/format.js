// Numbers as people read them.

const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** So many digits that count, without an exponent. */
function digits(value, most) {
  const text = Number(value).toPrecision(most);
  return text.includes("e") ? String(Number(text)) : text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A count: 812, 1,234, 45.1 k, 3.02 M. */
export function count(value) {
  const size = Math.abs(value);
  if (size < 10_000) return whole.format(value);
  const [unit, name] = size < 1e6 ? [1e3, "k"] : size < 1e9 ? [1e6, "M"] : [1e9, "G"];
  return `${digits(value / unit, 3)} ${name}`;
}

/** A number of requests, in words. */
export function requests(value) {
  return `${count(value)} ${value === 1 ? "request" : "requests"}`;
}

/** A rate: 0, 0.4, 12.3, 450. */
export function rate(value) {
  if (value < 0.005) return "0";
  if (value < 10) return value.toFixed(value < 1 ? 2 : 1);
  return value < 1000 ? digits(value, 3) : count(value);
}

/** Dollars: $0, $0.0000154, $1.20, $14.2 k. */
export function dollars(value) {
  if (value === null || value === undefined) return "–";
  const [sign, size] = value < 0 ? ["−", -value] : ["", value];
  if (size === 0) return "$0";
  if (size >= 10_000) return `${sign}$${count(size)}`;
  if (size >= 1) return `${sign}$${cents.format(size)}`;
  const places = Math.min(9, 2 - Math.floor(Math.log10(size)));
  return `${sign}$${size.toFixed(places).replace(/0+$/, "").replace(/\.$/, "")}`;
}

/** A share of one. */
export function percent(share) {
  const value = share * 100;
  return `${value > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

/** A length of time. */
export function span(seconds) {
  const size = Math.abs(seconds);
  if (size < 1) return `${Math.round(size * 1000)} ms`;
  if (size < 60) return `${digits(size, size < 10 ? 2 : 3)} s`;
  if (size < 3600) return `${Math.round(size / 60)} min`;
  if (size < 86_400) {
    const minutes = Math.round(size / 60);
    return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
  }
  return size < 864_000 ? `${digits(size / 86_400, 2)} d` : `${Math.round(size / 86_400)} d`;
}

/** How long ago something was. */
export function ago(then, now = Date.now()) {
  const seconds = Math.max(0, (now - Date.parse(then)) / 1000);
  return seconds < 2 ? "now" : `${span(Math.floor(seconds))} ago`;
}

/** A moment, as the reader's clock has it. */
export function clock(moment) {
  const date = new Date(moment);
  const isToday = date.toDateString() === new Date().toDateString();
  const time = { hour: "2-digit", minute: "2-digit" };
  return date.toLocaleString([], isToday ? time : { ...time, month: "short", day: "numeric" });
}

/** What an amount of a limit is. */
export function amount(value, unit) {
  return unit === "money" ? dollars(value) : count(value);
}
