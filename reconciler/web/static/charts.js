// Bars and sparklines as inline SVG. Each has a text that says the same.

import { h } from "./dom.js";
import { amount, clock, isKnown, quantity, shortName } from "./format.js";

const WIDTH = 100;

/** The quota of one flavor and resource: used, reserved, borrowed beyond the nominal quota, and lent. */
export function quotaBar(entry) {
  const facts = quotaFacts(entry);
  if (!isKnown(facts.used)) return svg("bar", facts.text, rect("unknown-fill", 0, WIDTH));
  const { nominal, used, reserved, lent } = facts;
  const largest = Math.max(nominal, reserved, used) || 1;
  const at = (number) => (WIDTH * number) / largest;
  const own = Math.min(used, nominal);
  const held = Math.min(reserved, nominal);
  const lentFrom = Math.max(held, nominal - lent);
  return svg(
    "bar", facts.text,
    rect("track", 0, at(nominal)),
    rect("used", 0, at(own)),
    rect("reserved", at(own), at(held) - at(own)),
    rect("lent", at(lentFrom), at(nominal) - at(lentFrom)),
    rect("borrowed", at(nominal), at(Math.max(reserved, used)) - at(nominal)),
    largest > nominal && h("line", { class: "nominal", x1: `${at(nominal)}%`, x2: `${at(nominal)}%`, y1: 0, y2: "100%" }),
  );
}

/** The same as text: what a screen reader says, and what stands beside the bar. */
export function quotaFacts(entry) {
  const nominal = quantity(entry.nominal);
  const used = quantity(entry.used);
  const reserved = quantity(entry.reserved) ?? used;
  const [borrowed, lent] = [quantity(entry.borrowed), quantity(entry.lent)];
  const show = (number) => amount(entry.resource, number);
  const parts = isKnown(used) && isKnown(nominal)
    ? [`${show(used)} of ${show(nominal)} ${entry.word || "used"}`]
    : [isKnown(nominal) ? `usage unknown, ${show(nominal)} nominal` : "unknown"];
  if (reserved > used) parts.push(`${show(reserved - used)} reserved`);
  if (borrowed) parts.push(`${show(borrowed)} borrowed${sources(entry, entry.borrowedFrom, "from")}`);
  if (lent) parts.push(`${show(lent)} lent${sources(entry, entry.lentTo, "to")}`);
  const extra = parts.slice(1).join(", ");
  const text = `${entry.flavor ? `${entry.flavor} ` : ""}${shortName(entry.resource)}: ${parts.join(", ")}`;
  return { nominal: nominal ?? 0, used: isKnown(nominal) ? used : null, reserved: reserved ?? 0, lent: lent ?? 0, first: parts[0], extra, text };
}

function sources(entry, shares, word) {
  const names = (shares || []).map((share) => `${share.queue || share.cohort} (${amount(entry.resource, quantity(share.amount))})`);
  return names.length ? ` ${word} ${names.join(", ")}` : "";
}

function rect(kind, x, width) {
  return width > 0.001 ? h("rect", { class: kind, x: `${x.toFixed(2)}%`, width: `${width.toFixed(2)}%`, height: "100%" }) : null;
}

function svg(kind, text, ...content) {
  return h("svg", { class: kind, role: "img", "aria-label": text }, ...content);
}

/** Amounts over time, and their range; a time whose amount was unknown is a gap in the line. */
export function sparkline(resource, times, texts) {
  const numbers = texts.map(quantity);
  const known = numbers.filter(isKnown);
  if (known.length < 2) return [h("span", { class: "muted small" }, "too few samples")];
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const height = (number) => (most === least ? 15 : 27 - (24 * (number - least)) / (most - least));
  // By time: while no page is open there is no sample.
  const [first, last] = [Date.parse(times[0]), Date.parse(times.at(-1))];
  const at = (index) => (WIDTH * (Date.parse(times[index]) - first)) / (last - first);
  const points = numbers.map((number, index) => (isKnown(number) ? `${at(index).toFixed(2)},${height(number).toFixed(2)}` : null));
  const label = `${shortName(resource)}: ${amount(resource, known.at(-1))} now, from ${amount(resource, least)} to ${amount(resource, most)} since ${clock(times[0])}`;
  const props = { class: "sparkline", role: "img", "aria-label": label, viewBox: "0 0 100 30", preserveAspectRatio: "none" };
  const range = most === least ? amount(resource, most) : `${amount(resource, least)} to ${amount(resource, most)}`;
  return [
    h("svg", props, h("title", null, label), runs(points).map((run) => h("polyline", { points: run.join(" ") }))),
    h("span", { class: "muted small", "aria-hidden": "true" }, range),
  ];
}

function runs(points) {
  const found = [[]];
  for (const point of points) {
    if (point) found.at(-1).push(point);
    else if (found.at(-1).length) found.push([]);
  }
  return found.filter((run) => run.length);
}
