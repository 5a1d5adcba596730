// Parts that several views use: badges, tables, filters, links with filters in their address.

import { h } from "./dom.js";
import { counted } from "./format.js";

export function badge(kind, text, title) {
  return h("span", { class: `badge ${kind}`, title }, text);
}

/** The address of a view with filters; empty ones are left out. */
export function address(view, query) {
  const kept = Object.entries(query).filter(([, value]) => value);
  const text = new URLSearchParams(kept).toString();
  return text ? `${view}?${text}` : view;
}

/** A link inside the page; the router handles its click. */
export function link(href, props, ...children) {
  return h("a", { href, "data-inside": true, ...props }, ...children);
}

export function heading(title, ...details) {
  return h("div", { class: "heading", key: "heading" }, h("h1", null, title), ...details);
}

/** A table of elements with roles: unlike a table element it keeps its meaning when narrow screens show it as cards. */
export function table(name, label, columns, rows) {
  return h(
    "div",
    { class: `table ${name}`, role: "table", "aria-label": label, key: `table ${name}` },
    h("div", { role: "rowgroup", class: "head" }, h("div", { role: "row", class: "row" }, columns.map(columnHeader))),
    h("div", { role: "rowgroup", class: "body" }, rows),
  );
}

export function columnHeader(title) {
  return h("div", { role: "columnheader", class: "cell" }, title);
}

export function cell(label, ...content) {
  return h("div", { role: "cell", class: `cell ${label.toLowerCase().replaceAll(" ", "-")}`, "data-label": label }, ...content);
}

export function row(key, cells, props) {
  return h("div", { role: "row", class: "row", key, ...props }, cells);
}

export function empty(text) {
  return h("p", { class: "empty", key: "empty" }, text);
}

/** The search field and the choices of a view. `choices` are {name, all, options}. */
export function filters(route, change, choices, ...more) {
  return h(
    "form",
    { class: "filters", role: "search", key: "filters", onsubmit: (event) => event.preventDefault() },
    h("input", {
      type: "search", id: "search", "aria-label": "Search", placeholder: "Search (press /)", autocomplete: "off",
      value: route.query.q || "", oninput: (event) => change({ q: event.target.value }),
    }),
    choices.filter((choice) => choice.options.length > 1 || route.query[choice.name]).map((choice) => select(route, change, choice)),
    ...more,
  );
}

function select(route, change, { name, all, options }) {
  const chosen = route.query[name] || "";
  const shown = chosen && !options.includes(chosen) ? [chosen, ...options] : options;
  return h(
    "select",
    { class: chosen ? "chosen" : "", "aria-label": name, key: name, onchange: (event) => change({ [name]: event.target.value }) },
    h("option", { value: "", selected: !chosen, key: "" }, all),
    shown.map((option) => h("option", { value: option, selected: option === chosen, key: option }, option)),
  );
}

/** Links that choose one of several; each has its own address. */
export function tabs(label, entries) {
  return h(
    "nav",
    { class: "tabs", "aria-label": label, key: `tabs ${label}` },
    entries.map(({ href, text, number, isChosen }) =>
      link(href, { key: text, "aria-current": isChosen ? "true" : undefined, "data-keep": true }, text, number === undefined ? null : h("span", { class: "number" }, number))),
  );
}

export function distinct(values) {
  return [...new Set(values.filter(Boolean))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
}

/** Whether one of the texts holds every word that a user searched for. */
export function matches(search, texts) {
  if (!search) return true;
  const all = texts.join("\n").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

/** The first entries of a long list, and a button for the others: thousands of elements make a page slow. */
export function firstOf({ ui, redraw }, name, entries, most = 150) {
  const key = `all ${name}`;
  if (ui[key] || entries.length <= most) return [entries, null];
  const show = () => { ui[key] = true; redraw(); };
  return [entries.slice(0, most), h("button", { type: "button", class: "more", key, onclick: show }, `Show all ${entries.length.toLocaleString("en")}`)];
}

export function shownOf(shown, all, one, many) {
  return h("p", { class: "shown muted", key: "shown" }, shown === all ? counted(all, one, many) : `${shown} of ${counted(all, one, many)}`);
}
