// Queues: who has which quota, who borrows it, and how many jobs wait. A tree of cohorts per cluster, or joined.

import { h } from "./dom.js";
import { quotaBar, quotaFacts } from "./charts.js";
import { count, counted, isKnown, shortName, unknown } from "./format.js";
import { address, badge, distinct, empty, filters, firstOf, heading, link, matches, shownOf, tabs } from "./parts.js";

const FEW = 40;

export function queuesView(page) {
  const { store, route, change } = page;
  const isJoined = route.query.by === "name";
  const all = store.list("queues");
  const choices = [
    { name: "cluster", all: "all clusters", options: distinct(store.list("clusters").map((cluster) => cluster.name)) },
    { name: "tenant", all: "all tenants", options: distinct(all.flatMap((queue) => queue.tenants)) },
  ];
  return [
    heading("Queues", tabs("Grouping", [
      { href: address("queues", { ...route.query, by: "" }), text: "By cluster", isChosen: !isJoined },
      { href: address("queues", { ...route.query, by: "name" }), text: "Joined", isChosen: isJoined },
    ])),
    filters(route, change, choices, waitingOnly(route, change)),
    legend(),
    isJoined ? joined(page) : byCluster(page, all),
  ];
}

function waitingOnly(route, change) {
  return h("label", { class: "check", key: "waiting" },
    h("input", { type: "checkbox", checked: route.query.waiting === "1", onchange: (event) => change({ waiting: event.target.checked ? "1" : "" }) }),
    "only with waiting jobs");
}

function legend() {
  const entries = [["used", "used"], ["reserved", "reserved, not admitted"], ["borrowed", "borrowed"], ["lent", "lent"], ["track", "free"], ["unknown-fill", "unknown"]];
  return h("ul", { class: "legend", key: "legend", "aria-label": "Colours of the bars" }, entries.map(([kind, text]) =>
    h("li", { key: kind }, h("svg", { viewBox: "0 0 18 10", width: 18, height: 10, "aria-hidden": "true" }, h("rect", { class: "track", width: 18, height: 10 }), h("rect", { class: kind, width: 18, height: 10 })), text)));
}

function isShown(queue, query) {
  return (
    (!query.cluster || queue.cluster === query.cluster) &&
    (!query.tenant || queue.tenants.includes(query.tenant)) &&
    (!query.queue || queue.name === query.queue) &&
    (query.waiting !== "1" || queue.pending !== 0) &&
    matches(query.q, [queue.name, ...queue.cohortPath, ...queue.tenants, ...(queue.localQueues || [])])
  );
}

function byCluster(page, all) {
  const { store, route } = page;
  const shown = all.filter((queue) => isShown(queue, route.query));
  const clusters = store.list("clusters").filter((cluster) => shown.some((queue) => queue.cluster === cluster.name));
  if (!shown.length) return empty(all.length ? "No queue matches." : store.list("gaps").length ? "No queue was observed; see the gaps in Fleet." : "The fleet has no queue.");
  const isSmall = shown.length <= FEW || clusters.length === 1;
  return [
    shownOf(shown.length, all.length, "queue"),
    clusters.map((cluster, index) => clusterSection(page, cluster, shown.filter((queue) => queue.cluster === cluster.name), isSmall || index === 0)),
  ];
}

/** A closed section has no content: 2,000 queues with bars would be 100,000 elements. */
function clusterSection(page, cluster, queues, isOpenAtFirst) {
  const { store, ui, redraw } = page;
  const key = `open ${cluster.name}`;
  const isOpen = ui[key] ?? isOpenAtFirst;
  const toggle = (event) => {
    if (event.target.open !== isOpen) {
      ui[key] = event.target.open;
      redraw();
    }
  };
  const waiting = queues.map((queue) => queue.pending);
  const [first, more] = firstOf(page, `queues of ${cluster.name}`, queues);
  return h(
    "details",
    { class: "cluster-section", key, open: isOpen, ontoggle: toggle },
    h("summary", null,
      h("h2", null, cluster.name),
      cluster.reachable ? h("span", { class: "muted" }, cluster.role) : badge("bad", "not seen"),
      h("span", { class: "muted" }, counted(queues.length, "queue")),
      h("span", { class: "muted" }, waiting.every(isKnown) ? `${waiting.reduce((sum, one) => sum + one, 0)} waiting` : ["waiting ", unknown()])),
    isOpen ? [tree(first, cohortsOf(store, cluster.name)), more] : null,
  );
}

/** The sums of each cohort of a cluster, by its name. */
function cohortsOf(store, cluster) {
  const found = store.once("cohorts by cluster", () => {
    const clusters = new Map();
    for (const cohort of store.list("cohorts")) {
      if (!clusters.has(cohort.cluster)) clusters.set(cohort.cluster, new Map());
      clusters.get(cohort.cluster).set(cohort.name, cohort);
    }
    return clusters;
  });
  return found.get(cluster) || new Map();
}

/** Queues below their cohorts, as a nested list. */
function tree(queues, cohorts) {
  const root = { cohorts: new Map(), queues: [] };
  for (const queue of queues) {
    let place = root;
    for (const name of queue.cohortPath) {
      if (!place.cohorts.has(name)) place.cohorts.set(name, { cohorts: new Map(), queues: [] });
      place = place.cohorts.get(name);
    }
    place.queues.push(queue);
  }
  return branch(root, cohorts);
}

function branch(place, cohorts) {
  const below = [...place.cohorts].map(([name, inner]) =>
    h("li", { class: "cohort", key: `cohort ${name}` },
      h("h3", null, h("span", { class: "muted" }, "cohort "), name),
      cohortQuotas(cohorts.get(name)),
      branch(inner, cohorts)));
  return h("ul", { class: "tree" }, below, place.queues.map(queueCard));
}

/** The quota of a cohort and of all that is below it. A tenant is not shown it. */
function cohortQuotas(cohort) {
  return cohort?.resources.length ? h("ul", { class: "quotas" }, cohort.resources.map((entry) => quotaRow({ ...entry, word: "reserved" }))) : null;
}

function queueCard(queue) {
  return h(
    "li",
    { class: "queue", key: queue.id },
    h("div", { class: "queue-head" },
      h("h4", null, link(address("jobs", { queue: queue.name, cluster: "" }), { class: "name" }, queue.name)),
      states(queue),
      h("span", { class: "facts" }, count(queue.pending), " waiting · ", count(queue.admitted), " admitted")),
    queue.tenants.length ? h("p", { class: "muted small" }, queue.tenants.join(", ")) : null,
    queue.active === false && queue.inactiveReason ? h("p", { class: "small problem" }, queue.inactiveReason) : null,
    isKnown(queue.resources) ? h("ul", { class: "quotas" }, queue.resources.map(quotaRow)) : h("p", { class: "small" }, "Quota ", unknown()),
  );
}

function states(queue) {
  return [
    queue.stopped ? badge("warn", queue.stopped === "Hold" ? "on hold" : "hold and drain") : null,
    queue.active === false && !queue.stopped ? badge("bad", "inactive") : null,
    queue.active === null ? badge("none", "state unknown") : null,
    queue.dispatch === "none" ? null : badge("none", queue.dispatch === "multikueue" ? "MultiKueue" : "KubeStellar"),
  ];
}

function quotaRow(entry) {
  const facts = quotaFacts(entry);
  const nodes = entry.backing?.nodes;
  const pools = entry.backing?.pools || [];
  const behind = [isKnown(nodes) ? counted(nodes, "node") : "", pools.length ? pools.join(", ") : ""].filter(Boolean).join(", ");
  return h(
    "li",
    { key: `${entry.flavor} ${entry.resource}` },
    h("span", { class: "quota-name" }, shortName(entry.resource), h("span", { class: "muted" }, ` ${entry.flavor || ""}`), behind ? h("span", { class: "muted" }, ` · ${behind}`) : null),
    quotaBar(entry),
    h("span", { class: `quota-text${isKnown(facts.used) ? "" : " unknown"}` }, facts.first, facts.extra ? h("span", { class: "muted" }, `, ${facts.extra}`) : null),
  );
}

function joined(page) {
  const { store, route } = page;
  const all = store.list("joined");
  const tenants = new Map(store.list("queues").map((queue) => [queue.name, queue.tenants]));
  const shown = all.filter((entry) =>
    (!route.query.cluster || entry.clusters.includes(route.query.cluster)) &&
    (!route.query.tenant || (tenants.get(entry.name) || []).includes(route.query.tenant)) &&
    (route.query.waiting !== "1" || entry.pending !== 0) &&
    matches(route.query.q, [entry.name, ...entry.clusters]));
  if (!shown.length) return empty("No queue matches.");
  const [first, more] = firstOf(page, "joined queues", shown);
  return [
    shownOf(shown.length, all.length, "queue"),
    h("ul", { class: "tree", key: "joined" }, first.map((entry) => h(
      "li",
      { class: "queue", key: entry.name },
      h("div", { class: "queue-head" },
        h("h2", { class: "like-h4" }, link(address("jobs", { queue: entry.name }), { class: "name" }, entry.name)),
        h("span", { class: "facts" }, count(entry.pending), " waiting · ", count(entry.running), " running")),
      h("p", { class: "muted small" }, placeOf(entry)),
      entry.resources.length ? h("ul", { class: "quotas" }, entry.resources.map(quotaRow)) : null,
    ))),
    more,
  ];
}

function placeOf(entry) {
  const workers = entry.clusters.filter((name) => name !== entry.manager);
  if (!entry.manager) return `on ${entry.clusters.join(", ")}`;
  return `dispatched by ${entry.manager}${workers.length ? ` to ${workers.join(", ")}` : ""}`;
}
