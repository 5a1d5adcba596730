// Amounts, times and counts as text. What was not observed is "unknown", never 0 and never empty.

import { h } from "./dom.js";

const FACTORS = {
  n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};
const BINARY = [["Pi", 2 ** 50], ["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];
const BYTES = /memory|storage|hugepages/;
const TIME_OPTIONS = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const TIME = new Intl.DateTimeFormat("en", TIME_OPTIONS);
const DAY_AND_TIME = new Intl.DateTimeFormat("en", { ...TIME_OPTIONS, year: "numeric", month: "short", day: "numeric" });
const NUMBERS = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

export function isKnown(value) {
  return value !== null && value !== undefined;
}

/** A quantity of Kubernetes as a number; null stays null. */
export function quantity(text) {
  if (!isKnown(text)) return null;
  const found = /^(-?[0-9.]+)(e[0-9]+)?([KMGTPE]i|[numkMGTPE])?$/.exec(text);
  return found ? Number(found[1] + (found[2] || "")) * FACTORS[found[3] || ""] : null;
}

/** A number of a resource, as short as a person reads it. */
export function amount(resource, number) {
  if (!BYTES.test(resource)) return NUMBERS.format(number);
  const [unit, factor] = BINARY.find(([, size]) => Math.abs(number) >= size) || ["", 1];
  return `${NUMBERS.format(number / factor)}${unit}`;
}

export function amounts(map) {
  if (!isKnown(map)) return unknown();
  const texts = Object.entries(map).map(([name, text]) => `${amount(name, quantity(text))} ${shortName(name)}`);
  return texts.length ? texts.join(", ") : h("span", { class: "muted" }, "none");
}

export function shortName(resource) {
  return resource.replace(/^[^/]*\//, "");
}

export function count(value) {
  return isKnown(value) ? NUMBERS.format(value) : unknown();
}

export function unknown(why = "not observed") {
  return h("span", { class: "unknown", title: why }, "unknown");
}

export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** How long ago a time was, by the clock of the server. */
export function since(time, now) {
  if (!isKnown(time)) return unknown();
  return h("time", { datetime: time, title: clock(time) }, duration((now - Date.parse(time)) / 1000));
}

export function clock(time) {
  const at = new Date(time);
  const isToday = at.toDateString() === new Date().toDateString();
  return (isToday ? TIME : DAY_AND_TIME).format(at);
}

export function counted(number, one, many = `${one}s`) {
  return `${NUMBERS.format(number)} ${number === 1 ? one : many}`;
}
