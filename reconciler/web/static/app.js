// The page: an address selects a view, the stream brings data, and every frame shows at most one update.

import { follow, setToken } from "./api.js";
import { capacityView } from "./capacity.js";
import { patch } from "./dom.js";
import { fleetView } from "./fleet.js";
import { VIEWS, banners, freshness, navigation, tokenForm } from "./frame.js";
import { jobDetail, jobsView } from "./jobs.js";
import { address } from "./parts.js";
import { planView } from "./plan.js";
import { queuesView } from "./queues.js";
import { Store } from "./store.js";

const SHOW = { fleet: fleetView, queues: queuesView, jobs: jobsView, plan: planView, capacity: capacityView };
const TICK = 5000;

const store = new Store();
const ui = {};
const [main, nav, banner, fresh, name, detail] = ["content", "views", "banner", "freshness", "fleet-name", "detail"].map((id) => document.getElementById(id));
let route = readRoute();
let isDue = false;
let onToken = () => {};

function readRoute() {
  const last = location.pathname.split("/").pop();
  return { view: last in SHOW ? last : "fleet", query: Object.fromEntries(new URLSearchParams(location.search)) };
}

function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
}

function draw() {
  const page = { store, route, change, ui, redraw, close: closeDetail };
  document.title = `${VIEWS[route.view]} · ${store.facts.fleet || "kfleet"}`;
  patch(nav, navigation(route));
  patch(name, store.facts.fleet || "");
  patch(fresh, freshness(store));
  patch(banner, banners(store));
  if (store.denied) patch(main, tokenForm(store.denied, takeToken));
  else if (store.isLoaded) patch(main, SHOW[route.view](page));
  main.setAttribute("aria-busy", String(!store.isLoaded && !store.denied));
  drawDetail(page);
}

function drawDetail(page) {
  const isWanted = route.view === "jobs" && Boolean(route.query.job) && store.isLoaded && !store.denied;
  if (isWanted) patch(detail, jobDetail(page));
  if (isWanted && !detail.open) detail.showModal();
  else if (!isWanted && detail.open) detail.close();
}

/** Filters are part of the address, so that a link shows the same. */
function change(filters) {
  route = { ...route, query: { ...route.query, ...filters } };
  history.replaceState(null, "", address(route.view, route.query));
  redraw();
}

function closeDetail() {
  change({ job: "" });
}

function go(href, isKept) {
  history.pushState(null, "", href);
  const before = route.view;
  route = readRoute();
  draw();
  if (isKept && before === route.view) return;
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

function takeToken(text) {
  setToken(text);
  onToken();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-inside]");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain) return;
  event.preventDefault();
  go(link.getAttribute("href"), "keep" in link.dataset);
});
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, select, textarea");
  if (event.key !== "/" || isTyping || event.metaKey || event.ctrlKey || event.altKey) return;
  const search = document.getElementById("search");
  if (!search) return;
  event.preventDefault();
  search.focus();
});
detail.addEventListener("cancel", (event) => {
  event.preventDefault();
  closeDetail();
});
detail.addEventListener("click", (event) => event.target === detail && closeDetail());
addEventListener("popstate", () => {
  route = readRoute();
  redraw();
});
addEventListener("scroll", () => route.view === "jobs" && redraw(), { passive: true });
addEventListener("resize", redraw);
setInterval(redraw, TICK);

follow(
  (event, data) => {
    store.take(event, data);
    redraw();
  },
  (state, facts) => {
    store.connection = state;
    if (state === "denied") Object.assign(store, { denied: facts, lists: null, plan: null, facts: {} });
    redraw();
  },
  () => new Promise((done) => { onToken = done; }),
);
redraw();
