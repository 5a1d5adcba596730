// Elements as values, and the smallest change of the document that shows them. An element with the same key stays the
// same element, so that focus, selection and scroll position survive an update, and rows do not jump.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "rect", "line", "path", "polyline", "circle", "title"]);
const PROPERTIES = new Set(["value", "checked", "open", "selected"]);

export function h(tag, props, ...children) {
  return { tag, props: props || {}, key: props?.key, children: flat(children, []) };
}

function flat(children, found) {
  for (const child of children) {
    if (Array.isArray(child)) flat(child, found);
    else if (child !== null && child !== undefined && child !== false) {
      found.push(typeof child === "object" ? child : { text: String(child) });
    }
  }
  return found;
}

/** Make the children of an element the wanted ones. */
export function patch(parent, wanted) {
  const children = flat([wanted], []);
  const before = parent.shown || [];
  const reused = take(before);
  const nodes = children.map((child) => shownAs(reused(child), child));
  const kept = new Set(nodes);
  for (const node of before) if (!kept.has(node)) node.remove();
  let next = parent.firstChild;
  for (const node of nodes) {
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
  parent.shown = nodes;
}

/** Returns a function that hands out each old node at most once: by its key, or the next one of the same tag. */
function take(nodes) {
  const keyed = new Map();
  const others = new Map();
  for (const node of nodes) {
    const { key, tag } = node.value_;
    if (key !== undefined) keyed.set(key, node);
    else others.set(tag, [...(others.get(tag) || []), node]);
  }
  return (child) => {
    if (child.key === undefined) return others.get(child.tag)?.shift();
    const found = keyed.get(child.key);
    keyed.delete(child.key);
    return found?.value_.tag === child.tag ? found : undefined;
  };
}

function shownAs(node, value) {
  if (value.tag === undefined) {
    const text = node || document.createTextNode("");
    if (text.data !== value.text) text.data = value.text;
    text.value_ = value;
    return text;
  }
  const element = node || create(value.tag);
  const old = node ? node.value_.props : {};
  for (const name of Object.keys(old)) if (!(name in value.props)) set(element, name, undefined);
  for (const [name, wanted] of Object.entries(value.props)) {
    if (old[name] !== wanted || PROPERTIES.has(name)) set(element, name, wanted);
  }
  element.value_ = value;
  patch(element, value.children);
  return element;
}

function create(tag) {
  return SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
}

function set(element, name, wanted) {
  if (name === "key") return;
  if (name.startsWith("on")) listen(element, name.slice(2), wanted);
  else if (name === "style") setStyle(element, wanted);
  else if (PROPERTIES.has(name)) {
    if (element[name] !== wanted) element[name] = wanted;
  } else if (wanted === undefined || wanted === null || wanted === false) element.removeAttribute(name);
  else element.setAttribute(name, wanted === true ? "" : String(wanted));
}

function setStyle(element, wanted) {
  for (const [name, value] of Object.entries(wanted || {})) {
    if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
  }
}

/** One listener per event and element for its whole life; what it calls may change. */
function listen(element, name, handler) {
  element.handlers ||= {};
  if (!(name in element.handlers)) element.addEventListener(name, (event) => element.handlers[name]?.(event));
  element.handlers[name] = handler;
}
