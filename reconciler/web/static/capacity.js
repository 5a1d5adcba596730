// Capacity: where amounts come from, how old they are, and what they were in the last hours.

import { h } from "./dom.js";
import { sparkline } from "./charts.js";
import { amounts, duration, isKnown, shortName, unknown } from "./format.js";
import { badge, cell, distinct, empty, filters, firstOf, heading, matches, row, table } from "./parts.js";

const COLUMNS = ["Source", "State", "Counted", "Becomes", "History"];
const SOURCES = { nats: "NATS", nodes: "nodes", clusterMetrics: "ClusterMetrics" };

export function capacityView(page) {
  const { store, route, change } = page;
  const pools = store.list("pools");
  if (pools === null) return [heading("Capacity"), empty(store.scope.fleet ? "Capacity is unknown: it was not observed." : "Capacity is shown to readers of the whole fleet.")];
  const shown = pools.filter((pool) => (!route.query.state || pool.state === route.query.state) && (!route.query.source || pool.source === route.query.source) &&
    matches(route.query.q, [pool.name, pool.cluster, pool.flavor, ...(pool.becomes || [])]));
  const [first, more] = firstOf(page, "sources", shown);
  return [
    heading("Capacity"),
    pools.length ? filters(route, change, [
      { name: "state", all: "all states", options: distinct(pools.map((pool) => pool.state)) },
      { name: "source", all: "all sources", options: distinct(pools.map((pool) => pool.source)) },
    ]) : null,
    shown.length ? [table("pools", "Sources of capacity", COLUMNS, first.map((pool) => poolRow(pool, store.history))), more] : empty(pools.length ? "No source matches." : "No quota of this fleet depends on live capacity."),
  ];
}

function poolRow(pool, history) {
  const place = [SOURCES[pool.source], pool.cluster, pool.flavor && `flavor ${pool.flavor}`].filter(Boolean).join(" · ");
  return row(`${pool.cluster}\n${pool.source}\n${pool.name}\n${pool.flavor}`, [
    cell("Source", h("span", { class: "name" }, pool.name), h("span", { class: "muted" }, place)),
    cell("State", state(pool)),
    cell("Counted", amounts(pool.counted)),
    cell("Becomes", quotas(pool)),
    cell("History", lines(pool, history)),
  ]);
}

function quotas(pool) {
  if (!isKnown(pool.becomes)) return unknown("the source was never seen");
  if (!pool.becomes.length) return h("span", { class: "muted" }, "no quota");
  return h("ul", { class: "lines" }, pool.becomes.map((text) => h("li", { key: text }, text)));
}

function state(pool) {
  if (pool.state === "unknown") return unknown();
  const age = isKnown(pool.age) ? h("span", { class: "muted" }, `${duration(pool.age)} old`) : null;
  return [badge(pool.state === "fresh" ? "ok" : "bad", pool.state), age];
}

function lines(pool, history) {
  const series = history.series.filter((one) => one.name === pool.name);
  if (!series.length) return h("span", { class: "muted" }, "no samples yet");
  return series.map((one) => h("div", { class: "series", key: one.resource }, h("span", { class: "muted small" }, shortName(one.resource)), sparkline(one.resource, history.times, one.amounts)));
}
