// Plan: what the next apply would do.

import { h } from "./dom.js";
import { clock, counted } from "./format.js";
import { address, badge, distinct, empty, filters, heading, matches, tabs } from "./parts.js";

const SIGNS = { create: "+", update: "~", replace: "±", delete: "−", hold: "!" };
const COLOURS = { create: "ok", update: "warn", replace: "warn", delete: "bad", hold: "none" };
const MOST = 200;

export function planView({ store, route, change }) {
  const shown = store.plan;
  if (!shown) return [heading("Plan"), empty("The plan is not read yet.")];
  const isText = route.query.show === "text";
  const choice = tabs("Form", [
    { href: address("plan", { ...route.query, show: "" }), text: "Changes", isChosen: !isText },
    { href: address("plan", { ...route.query, show: "text" }), text: "Text", isChosen: isText },
  ]);
  if (!shown.plan) return [heading("Plan"), empty(`The plan is unknown: ${shown.problem || "none was made"}.`)];
  return [
    heading("Plan", choice),
    h("p", { class: "muted", key: "made" }, `Made at ${clock(shown.madeAt)} for ${shown.plan.revision ? `revision ${shown.plan.revision.slice(0, 12)}` : "the working tree"}.`, shown.problem ? ` A newer plan could not be made: ${shown.problem}` : ""),
    isText ? null : affected(shown.effects),
    isText ? null : quotas(shown.effects),
    isText ? h("pre", { class: "panel text", tabindex: 0, key: "text", role: "region", "aria-label": "The plan as text" }, shown.text) : changes(shown.plan, route, change),
  ];
}

function changes(plan, route, change) {
  const counts = Object.entries(plan.summary).filter(([action, number]) => number && action !== "keep");
  const clusters = plan.clusters.filter((cluster) => !route.query.cluster || cluster.name === route.query.cluster);
  const isQuiet = !counts.length && !plan.placements.length;
  return [
    h("p", { class: "summary", key: "summary" },
      isQuiet ? badge("ok", "no changes") : counts.map(([action, number]) => badge(COLOURS[action] || "none", `${number} to ${action}`)),
      h("span", { class: "muted" }, `${plan.summary.keep || 0} unchanged`)),
    isQuiet ? null : filters(route, change, [{ name: "cluster", all: "all clusters", options: distinct(plan.clusters.map((cluster) => cluster.name)) }]),
    problems("Refused", "bad", plan.refusals.map((one) => `${one.object || one.cluster}: ${one.problem}`)),
    problems("Not observed", "warn", plan.gaps.map((gap) => `${gap.cluster}: ${gap.what}: ${gap.why}`)),
    problems("Preflight", "warn", plan.preflightIssues.map((one) => `${one.cluster}: ${one.problem} ${one.remedy}`)),
    problems("Waiting", "none", plan.waiting.map((one) => `${one.cluster}: ${one.why}`)),
    problems("Placements", "none", plan.placements.map((one) => `${one.verb} ${one.object} ${one.cluster} ${one.why}`)),
    clusterSections(clusters, route),
  ];
}

// Harm first, as the plan sorts them.
function affected(effects) {
  if (!effects) return null;
  const lines = effects.workloads.slice(0, MOST).map((one) => `${one.impact}: ${one.cluster}/${one.kind}/${one.namespace}/${one.name} (queue ${one.queue}${one.tenant ? `, tenant ${one.tenant}` : ""}): ${one.why}${one.by.length ? `; by ${one.by.join(", ")}` : ""}`);
  const more = effects.workloads.length > MOST ? [`and ${effects.workloads.length - MOST} more`] : [];
  return problems("Who is affected", "warn", [...lines, ...more, ...effects.unknown.map((one) => `unknown: ${one}`)]);
}

function quotas(effects) {
  if (!effects) return null;
  const lines = effects.quotas.slice(0, MOST).map((one) => `${one.cluster}/${one.queue}${tenants(one)}, ${one.resource} of flavor ${one.flavor}: ${amounts(one).join(", ")}`);
  const more = effects.quotas.length > MOST ? [`and ${effects.quotas.length - MOST} more`] : [];
  return problems("Quota", "none", [...lines, ...more]);
}

// A queue is often named like its only tenant.
function tenants(quota) {
  return quota.tenants.filter((name) => name !== quota.queue).length ? ` (${quota.tenants.join(", ")})` : "";
}

function amounts(quota) {
  const changed = [["with borrowing", quota.withBorrowing], ["lends up to", quota.lendsUpTo], ["fits now", quota.fitsNow]].filter(([, step]) => step.before !== step.after);
  return [...[["nominal", quota.nominal], ...changed].map(([name, step]) => `${name} ${steps(step)}`), `${quota.inUse} in use`];
}

function steps({ before, after }) {
  return before === after ? before : `${before ?? "none"} → ${after ?? "none"}`;
}

function problems(title, kind, lines) {
  if (!lines.length) return null;
  return h("section", { class: `panel problems ${kind}`, key: title }, h("h2", null, title), h("ul", { class: "lines" }, lines.map((line) => h("li", { key: line }, line))));
}

/** At most so many changes in all: those of 20 clusters would be 50,000 elements. */
function clusterSections(clusters, route) {
  let left = MOST;
  const sections = clusters.map((cluster) => {
    const found = cluster.changes.filter((one) => matches(route.query.q, [one.object, one.reason, one.action]));
    const shown = found.slice(0, left);
    left -= shown.length;
    return found.length ? clusterChanges(cluster.name, shown, found.length) : null;
  });
  const isFiltered = route.query.q || route.query.cluster;
  return isFiltered && !sections.some(Boolean) ? empty("No change matches.") : sections;
}

function clusterChanges(name, shown, number) {
  return h(
    "details",
    { class: "cluster-section", key: name, open: true },
    h("summary", null, h("h2", null, name), h("span", { class: "muted" }, counted(number, "change"))),
    h("ul", { class: "changes" }, shown.map(changeEntry)),
    number > shown.length ? h("p", { class: "muted" }, `and ${number - shown.length} more; choose a cluster, search, or read the text`) : null,
  );
}

function changeEntry(one) {
  return h(
    "li",
    { key: one.object },
    h("p", { class: "change-head" }, h("span", { class: `sign ${COLOURS[one.action] || "none"}`, "aria-hidden": "true" }, SIGNS[one.action] || "·"), h("span", { class: "visually-hidden" }, `${one.action} `), h("span", { class: "object" }, one.object), badge("none", one.reason.replaceAll("_", " "))),
    one.notes.map((note) => h("p", { class: "muted small", key: note }, note)),
    one.fields.length ? h("ul", { class: "fields" }, one.fields.map((field) => h("li", { key: field.path }, h("code", null, field.path), " ", value(field.old), " → ", value(field.new), h("span", { class: "muted" }, ` ${field.cause}${field.owner ? ` (${field.owner})` : ""}`)))) : null,
  );
}

function value(content) {
  return h("code", { class: "value" }, content === null || content === undefined ? "–" : typeof content === "string" ? content : JSON.stringify(content));
}
