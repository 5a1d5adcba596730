// What surrounds every view: navigation, freshness, banners, the form for a token.

import { h } from "./dom.js";
import { clock, counted, duration } from "./format.js";
import { link } from "./parts.js";

export const VIEWS = { fleet: "Fleet", queues: "Queues", jobs: "Jobs", plan: "Plan", capacity: "Capacity" };
const OLD = 60;

export function navigation(route) {
  return Object.entries(VIEWS).map(([name, title]) =>
    link(name, { key: name, "aria-current": route.view === name ? "page" : undefined }, title));
}

export function ageOf(store) {
  return (store.now - Date.parse(store.facts.takenAt)) / 1000;
}

export function freshness(store) {
  if (!store.isLoaded) return store.denied ? [] : ["connecting …"];
  if (!store.isLive) return [h("span", { class: "dot file" }), `snapshot of ${clock(store.facts.takenAt)}`];
  const isFresh = store.connection === "open" && ageOf(store) <= OLD;
  const revision = store.facts.revision && h("span", { class: "revision", title: store.facts.revision }, ` · ${store.facts.revision.slice(0, 7)}`);
  const text = isFresh ? "live" : `${duration(ageOf(store))} old`;
  return [h("span", { class: `dot ${isFresh ? "fresh" : "old"}` }), text, revision];
}

/** What a reader must know before they believe the rest. */
export function banners(store) {
  if (!store.isLoaded) return store.connection === "lost" ? [banner("lost", "bad", "kfleet does not respond. Trying again.")] : [];
  return [
    store.connection === "lost" && banner("lost", "bad", `The connection to kfleet is lost. What is shown is from ${clock(store.facts.takenAt)}. Trying again.`),
    store.isLive && store.connection !== "lost" && ageOf(store) > OLD &&
      banner("old", "bad", `What is shown is ${duration(ageOf(store))} old. ${store.problem}`),
    !store.isLive && banner("file", "calm", `This is a snapshot: everything is as it was at ${clock(store.facts.takenAt)}, and does not change.`),
    ...unseen(store),
    !store.scope.fleet && banner("scope", "calm", `You see the namespaces ${store.scope.namespaces.join(", ")}, and the queues that they submit to.`),
  ].filter(Boolean);
}

function unseen(store) {
  const clusters = store.list("clusters");
  const missing = clusters.filter((cluster) => !cluster.reachable);
  const partly = clusters.filter((cluster) => cluster.reachable && cluster.gaps.length);
  const names = missing.map((cluster) => cluster.name).join(", ");
  const few = partly.map((cluster) => `${cluster.name} (${counted(cluster.gaps.length, "gap")})`).join(", ");
  return [
    missing.length && banner("unseen", "warn", h("strong", null, `${counted(missing.length, "cluster")} not seen: ${names}.`), " Queues and jobs there are unknown. ", link("fleet", {}, "Why")),
    partly.length && banner("partly", "warn", h("strong", null, `Seen in part: ${few}.`), " ", link("fleet", {}, "Why")),
  ];
}

function banner(key, kind, ...content) {
  return h("p", { class: kind, key }, ...content);
}

export function tokenForm(denied, onToken) {
  const submit = (event) => {
    event.preventDefault();
    onToken(event.target.elements.token.value.trim());
  };
  return h(
    "section",
    { class: "login panel", key: "login", "aria-labelledby": "login-title" },
    h("h1", { id: "login-title" }, denied.status === 403 ? "No access" : "Who are you?"),
    h("p", { role: denied.hadToken ? "alert" : undefined }, denied.status === 401 && !denied.hadToken ? "This page needs a bearer token of the manager cluster." : `${denied.why}.`),
    h(
      "form",
      { onsubmit: submit, autocomplete: "off" },
      h("label", { for: "token" }, "Token"),
      h("input", { type: "password", id: "token", name: "token", required: true, autocomplete: "off", spellcheck: "false" }),
      h("button", { type: "submit" }, "Show the fleet"),
    ),
    h("p", { class: "muted" }, "For a ServiceAccount: ", h("code", null, "kubectl create token NAME -n NAMESPACE"), ". The token stays in this tab."),
  );
}
