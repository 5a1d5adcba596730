// Fleet: is every cluster there, and as git says?

import { h } from "./dom.js";
import { count, counted, isKnown, since, unknown } from "./format.js";
import { badge, cell, empty, filters, firstOf, heading, link, matches, address, row, table } from "./parts.js";
import { groupOf } from "./jobs.js";

const COLUMNS = ["Cluster", "Seen", "Versions", "In sync", "Health", "Gaps"];

export function fleetView(page) {
  const { store, route, change } = page;
  const clusters = store.list("clusters");
  const shown = clusters.filter((cluster) => matches(route.query.q, [cluster.name, cluster.role, cluster.kueue, ...cluster.gaps.map((gap) => gap.why)]));
  return [
    heading("Fleet"),
    tiles(store, clusters),
    clusters.length > 5 || route.query.q ? filters(route, change, []) : null,
    shown.length ? table("clusters", "Clusters", COLUMNS, shown.map((cluster) => clusterRow(cluster, store))) : empty("No cluster matches."),
    gaps(store, clusters),
    tenants(page),
  ];
}

function tiles(store, clusters) {
  const reached = clusters.filter((cluster) => cluster.reachable).length;
  const inSync = clusters.map((cluster) => cluster.inSync);
  const groups = store.once("job groups", () => {
    const found = { waiting: 0, running: 0 };
    for (const job of store.list("jobs")) found[groupOf(job)] = (found[groupOf(job)] || 0) + 1;
    return found;
  });
  const isPartial = reached < clusters.length || store.list("gaps").length > 0;
  return h(
    "ul",
    { class: "tiles", key: "tiles" },
    tile("Clusters seen", `${reached} of ${clusters.length}`, reached < clusters.length ? "warn" : "ok", "fleet"),
    tile("Clusters in sync", inSync.some(isKnown) ? `${inSync.filter(Boolean).length} of ${inSync.length}` : "unknown", inSync.includes(false) ? "warn" : inSync.every(isKnown) ? "ok" : "", "plan", inSync.some(isKnown) && !inSync.every(isKnown) && `${inSync.filter((one) => !isKnown(one)).length} unknown`),
    tile("Jobs waiting", groups.waiting.toLocaleString("en"), "", address("jobs", { state: "waiting" }), isPartial && "or more"),
    tile("Jobs running", groups.running.toLocaleString("en"), "", address("jobs", { state: "running" }), isPartial && "or more"),
  );
}

/** A number that misses clusters says so in its note: it is a least number. */
function tile(label, text, kind, href, note) {
  return h("li", { key: label }, link(href, { class: `tile ${kind}` }, h("span", { class: "tile-label" }, label), h("span", { class: "tile-text" }, text, note ? h("span", { class: "tile-note" }, note) : null)));
}

function clusterRow(cluster, store) {
  const drain = cluster.drain === "draining" || cluster.drain === "drained" ? badge("warn", cluster.drain) : null;
  return row(cluster.name, [
    cell("Cluster", link(address("queues", { cluster: cluster.name }), { class: "name" }, cluster.name), h("span", { class: "muted" }, cluster.role), drain),
    cell("Seen", cluster.reachable ? badge("ok", "reachable") : badge("bad", "not seen"), h("span", { class: "muted" }, cluster.reachable ? "" : "tried ", since(cluster.takenAt, store.now), " ago")),
    cell("Versions", h("span", null, "Kueue ", cluster.kueue || unknown()), h("span", { class: "muted" }, "Kubernetes ", cluster.kubernetes || unknown())),
    cell("In sync", sync(cluster)),
    cell("Health", health(cluster)),
    cell("Gaps", cluster.gaps.length ? badge("warn", counted(cluster.gaps.length, "gap")) : h("span", { class: "muted" }, "none")),
  ]);
}

function sync(cluster) {
  if (!isKnown(cluster.inSync)) return unknown("no plan was made");
  if (cluster.inSync) return badge("ok", "in sync");
  const drift = cluster.drift ? h("span", { class: "muted" }, `${counted(cluster.drift, "drift", "drifts")}`) : null;
  return [link("plan", { class: "badge warn" }, counted(cluster.changes ?? 0, "change")), drift];
}

function health(cluster) {
  if (!isKnown(cluster.unhealthy)) return unknown("health was not checked");
  if (!cluster.unhealthy.length) return badge("ok", "healthy");
  return h(
    "details",
    { class: "issues" },
    h("summary", null, badge("bad", counted(cluster.unhealthy.length, "issue"))),
    h("ul", null, cluster.unhealthy.map((text) => h("li", { key: text }, text))),
  );
}

function gaps(store, clusters) {
  const ofClusters = clusters.flatMap((cluster) => cluster.gaps.map((gap) => ({ ...gap, cluster: cluster.name })));
  const known = new Set(ofClusters.map((gap) => `${gap.cluster}\n${gap.what}`));
  const all = [...ofClusters, ...store.list("gaps").filter((gap) => !known.has(`${gap.cluster}\n${gap.what}`))];
  if (!all.length) return null;
  return h(
    "section",
    { class: "panel", key: "gaps", "aria-labelledby": "gaps-title" },
    h("h2", { id: "gaps-title" }, "Not observed"),
    h("ul", { class: "lines" }, all.map((gap) => h("li", { key: `${gap.cluster} ${gap.what}` }, h("strong", null, gap.cluster ? `${gap.cluster}: ` : "", gap.what), " ", h("span", { class: "muted" }, gap.why)))),
  );
}

function tenants(page) {
  const all = page.store.list("tenants");
  if (!all.length) return null;
  const [first, more] = firstOf(page, "tenants", all);
  return h(
    "section",
    { class: "panel", key: "tenants", "aria-labelledby": "tenants-title" },
    h("h2", { id: "tenants-title" }, "Tenants"),
    h("ul", { class: "lines tenants" }, first.map((tenant) => h(
      "li",
      { key: tenant.name },
      link(address("jobs", { tenant: tenant.name }), { class: "name" }, tenant.name),
      h("span", { class: "muted" }, tenant.namespaces.join(", ")),
      h("span", { class: "facts" }, count(tenant.pending), " waiting, ", count(tenant.running), " running"),
    ))),
    more,
  );
}
