// Jobs: what waits, in order and with its reason; what runs, and where. Only the rows on the screen are elements.

import { h } from "./dom.js";
import { amounts, count, isKnown, since, unknown } from "./format.js";
import { address, badge, cell, columnHeader, distinct, empty, filters, heading, link, matches, tabs } from "./parts.js";

const GROUPS = {
  pending: "waiting", evicted: "waiting", reserved: "waiting", admitted: "running", running: "running",
  finished: "ended", failed: "ended", inactive: "inactive", unknown: "unknown",
};
const ORDER = ["unknown", "waiting", "inactive", "running", "ended"];
const COLOURS = { waiting: "warn", running: "ok", ended: "none", inactive: "none", unknown: "none unknown" };
const COLUMNS = ["Job", "State", "Queue", "Why or where", "Requests", "Priority", "Since"];
const TALL = 130;
const FLAT = 60;
const BEYOND = 8;

export function groupOf(job) {
  return GROUPS[job.state] || "unknown";
}

export function jobsView(page) {
  const { store, route, change } = page;
  const all = store.list("jobs");
  // Once per change of data or filters, and not for every frame while a reader scrolls.
  const { found, groups, shown } = store.once(`jobs ${JSON.stringify({ ...route.query, job: "" })}`, () => selected(all, route.query));
  return [
    heading("Jobs", tabs("State", stateTabs(route, groups, found.length))),
    filters(route, change, choices(store, all)),
    shown.length ? rows(page, shown) : empty(emptyText(store, all)),
  ];
}

function selected(all, query) {
  const found = all.filter((job) => isFound(job, query));
  return { found, groups: grouped(found), shown: found.filter((job) => isChosen(job, query.state || "")).sort(inOrder) };
}

function emptyText(store, all) {
  if (all.length) return "No job matches.";
  return store.list("gaps").length ? "No job was observed. Some clusters were not seen, and may have jobs." : "There are no jobs.";
}

function grouped(jobs) {
  const groups = new Map();
  for (const job of jobs) groups.set(groupOf(job), (groups.get(groupOf(job)) || 0) + 1);
  return groups;
}

function stateTabs(route, groups, all) {
  const number = (...names) => names.reduce((sum, name) => sum + (groups.get(name) || 0), 0);
  const entry = (state, text, amount) => ({
    href: address("jobs", { ...route.query, state, job: "" }), text, number: amount.toLocaleString("en"), isChosen: (route.query.state || "") === state,
  });
  return [
    entry("", "Active", all - number("ended")),
    entry("waiting", "Waiting", number("waiting")),
    entry("running", "Running", number("running")),
    entry("ended", "Ended", number("ended")),
  ];
}

function isChosen(job, state) {
  return state ? groupOf(job) === state : groupOf(job) !== "ended";
}

function choices(store, jobs) {
  return store.once("job choices", () => [
    { name: "queue", all: "all queues", options: distinct(jobs.map((job) => job.clusterQueue)) },
    { name: "cluster", all: "all clusters", options: distinct(jobs.flatMap(clustersOf)) },
    { name: "tenant", all: "all tenants", options: distinct(jobs.map((job) => job.tenant)) },
    { name: "namespace", all: "all namespaces", options: distinct(jobs.map((job) => job.namespace)) },
  ]);
}

function isFound(job, query) {
  return (
    (!query.queue || job.clusterQueue === query.queue) &&
    (!query.cluster || clustersOf(job).includes(query.cluster)) &&
    (!query.tenant || job.tenant === query.tenant) &&
    (!query.namespace || job.namespace === query.namespace) &&
    matches(query.q, [job.name, job.namespace, job.workload, job.kind, job.owner, job.clusterQueue, job.reason, job.why, job.runsOn || ""])
  );
}

/** Where a job was submitted, runs, or has a copy: as `kfleet get jobs --cluster` has it. */
function clustersOf(job) {
  return [job.cluster, job.runsOn, ...(job.copies || []).map((copy) => copy.cluster)];
}

function inOrder(one, other) {
  return (
    ORDER.indexOf(groupOf(one)) - ORDER.indexOf(groupOf(other)) ||
    compare(one.clusterQueue, other.clusterQueue) ||
    compare(one.cluster, other.cluster) ||
    (one.position ?? Infinity) - (other.position ?? Infinity) ||
    compare(one.created || "", other.created || "") ||
    compare(one.id, other.id)
  );
}

function compare(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** A table of which only the rows near the screen exist. All rows have the same height. */
function rows(page, jobs) {
  const height = matchMedia("(max-width: 59.99rem)").matches ? TALL : FLAT;
  const top = document.getElementById("job-rows")?.getBoundingClientRect().top ?? 260;
  const first = Math.max(0, Math.floor(-top / height) - BEYOND);
  const last = Math.min(jobs.length, Math.ceil((innerHeight - top) / height) + BEYOND);
  return h(
    "div",
    { class: "table jobs", role: "table", "aria-label": "Jobs", "aria-rowcount": jobs.length + 1, key: "jobs" },
    h("div", { role: "rowgroup", class: "head" }, h("div", { role: "row", class: "row", "aria-rowindex": 1 }, COLUMNS.map(columnHeader))),
    h("div", { role: "rowgroup", class: "body", id: "job-rows", style: { height: `${height * jobs.length}px` } },
      jobs.slice(first, last).map((job, index) => jobRow(page, job, first + index, height))),
  );
}

function jobRow({ store, route }, job, index, height) {
  const style = { transform: `translateY(${index * height}px)`, height: `${height}px` };
  return h("div", { role: "row", class: "row", key: job.id, "aria-rowindex": index + 2, style }, [
    cell("Job",
      link(address("jobs", { ...route.query, job: job.id }), { class: "name", title: job.name, "data-keep": true }, job.name),
      h("span", { class: "muted clip" }, `${job.namespace} · ${job.kind}`)),
    cell("State", stateBadge(job), isKnown(job.position) ? h("span", { class: "muted" }, `place ${job.position}`) : null),
    cell("Queue", h("span", { class: "clip" }, job.clusterQueue || unknown("no ClusterQueue is known")), h("span", { class: "muted clip" }, job.queue)),
    cell("Why or where", whyOrWhere(job)),
    cell("Requests", h("span", { class: "clip-two" }, amounts(job.requested))),
    cell("Priority", isKnown(job.priority) ? count(job.priority) : h("span", { class: "muted" }, "none")),
    cell("Since", since(job.since, store.asOf)),
  ]);
}

function stateBadge(job) {
  return badge(job.state === "failed" ? "bad" : COLOURS[groupOf(job)], job.state);
}

function whyOrWhere(job) {
  if (groupOf(job) === "ended") return h("span", { class: "clip-two" }, job.reason || job.state, job.runsOn ? [" · on ", h("strong", null, job.runsOn)] : null);
  if (groupOf(job) !== "running") return h("span", { class: "clip-two", title: job.why || job.reason }, shortWhy(job) || h("span", { class: "muted" }, "no reason reported"));
  if (job.runsOn === null) return h("span", null, "on ", unknown("a worker that may run it was not observed"));
  return h("span", { class: "clip-two" }, job.runsOn ? ["on ", h("strong", null, job.runsOn)] : "no pods yet", job.reason ? h("span", { class: "muted" }, ` · ${job.reason}`) : null);
}

/** Without what the other cells say: that it waits, and at which place. That waiting does not help stays. */
function shortWhy(job) {
  return (job.why || job.reason).replace(/^(?:(?:waits|unknown): |(never: ))(?:place \d+ of queue \S+ on \S+; )?/, "$1");
}

/** All facts about one job, in a dialog with an address of its own. */
export function jobDetail({ store, route, close }) {
  const job = store.lists.jobs.get(route.query.job);
  const done = h("button", { type: "button", class: "close", onclick: close }, "Close");
  if (!job) return [title("Job"), h("p", null, "This job is not in the view: it was deleted, or its cluster was not seen."), done];
  const facts = [
    ["State", [stateBadge(job), " for ", since(job.since, store.asOf)]],
    ["Why", job.why || null],
    ["Kueue says", job.reason || h("span", { class: "muted" }, "nothing")],
    ["Place in the queue", groupOf(job) === "waiting" ? (isKnown(job.position) ? job.position : unknown()) : null],
    [groupOf(job) === "ended" ? "Ran on" : "Runs on", place(job)],
    ["Queue", `${job.clusterQueue || "unknown"} (LocalQueue ${job.namespace}/${job.queue || "none"})`],
    ["Submitted to", job.cluster],
    ["Submitted", job.created ? [since(job.created, store.asOf), " ago"] : unknown()],
    ["Owner", job.owner || h("span", { class: "muted" }, "not recorded")],
    ["Tenant", job.tenant || h("span", { class: "muted" }, "none")],
    ["Priority", isKnown(job.priority) ? count(job.priority) : "none"],
    ["Requests", amounts(job.requested)],
    ["Flavors", Object.entries(job.flavors).map(([name, flavor]) => `${name}: ${flavor}`).join(", ") || "none assigned"],
    ["Copies", copies(job)],
    ["More", h("code", null, `kfleet why ${job.namespace}/${job.name}`)],
  ];
  return [
    title(job.name),
    h("p", { class: "muted" }, `${job.kind} in ${job.namespace}, Workload ${job.workload}`),
    h("dl", null, facts.filter(([, value]) => value !== null).map(([name, value]) => [h("dt", { key: `dt ${name}` }, name), h("dd", { key: name }, value)])),
    done,
  ];
}

function place(job) {
  if (job.runsOn === null) return unknown();
  return job.runsOn || (groupOf(job) === "ended" ? h("span", { class: "muted" }, "not recorded") : "nowhere yet");
}

/** Focused when the dialog opens: its first button is at its end, and a browser would scroll there. */
function title(text) {
  return h("h2", { id: "detail-title", tabindex: -1, autofocus: true }, text);
}

function copies(job) {
  if (!isKnown(job.copies)) return unknown("a worker that may have one was not observed");
  if (!job.copies.length) return "none";
  return h("ul", null, job.copies.map((copy) => h("li", { key: copy.cluster }, `${copy.cluster}: ${copy.state}`)));
}
