// Makes elements. What is given as text becomes text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (name === "vars") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** An element of the page. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An element of a picture. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Sets a text, and touches nothing where it is the same. */
export function setText(node, value) {
  const text = String(value);
  if (node.textContent !== text) node.textContent = text;
}

/** Sets or removes an attribute. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/**
 * Keeps one child for each item, in their order. A child that is there already is updated, so that focus, what is open and what is
 * selected stay.
 */
export function keyed(parent, key, make) {
  const known = new Map();
  return (items) => {
    const seen = new Set();
    let before = null;
    for (const item of items) {
      const name = key(item);
      if (seen.has(name)) continue;
      seen.add(name);
      let entry = known.get(name);
      if (!entry) known.set(name, (entry = make(item)));
      entry.update(item);
      const place = before ? before.nextSibling : parent.firstChild;
      if (place !== entry.node) parent.insertBefore(entry.node, place);
      before = entry.node;
    }
    for (const [name, entry] of known) {
      if (seen.has(name)) continue;
      entry.node.remove();
      known.delete(name);
    }
  };
}

/** A name and its value, for lists of numbers. */
export function stat(name, label) {
  const value = el("dd", { "data-stat": name }, "–");
  return { node: el("div", { class: "stat" }, el("dt", {}, label), value), set: (text) => setText(value, text) };
}
