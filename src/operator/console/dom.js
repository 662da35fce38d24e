/**
 * Builds the elements of the page. Texts of merchants and agents enter it as text, never as markup.
 *
 * @typedef {Node | string} Child
 */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Readonly<Record<string, string>>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const SVG = 'http://www.w3.org/2000/svg';

/**
 * A part of a drawing.
 *
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Readonly<Record<string, string | number>>} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function drawing(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/**
 * An element of the page by its id. @throws Error a bug of the page
 *
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function byId(id, kind) {
  const node = document.getElementById(id);
  if (!(node instanceof kind)) throw new Error(`the page has no ${id}`);
  return node;
}

/**
 * Writes a text if it has changed: a screen reader announces each write.
 *
 * @param {Node} node
 * @param {string} text
 */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * A point in time as text, with the exact one as its title.
 *
 * @param {number} at Milliseconds.
 * @param {string} text
 */
export function time(at, text) {
  const exact = Number.isNaN(at) ? '' : new Date(at).toISOString();
  return element('time', { datetime: exact, title: exact }, text);
}

const ROLES = { table: 'table', thead: 'rowgroup', tbody: 'rowgroup', tr: 'row', th: 'columnheader', td: 'cell' };

/**
 * Sets the roles of a table: some browsers drop them where a narrow page shows it as a list.
 *
 * @param {HTMLElement} part A table, or a part of one.
 */
export function nameRoles(part) {
  for (const [tag, role] of Object.entries(ROLES)) {
    if (part.localName === tag) part.setAttribute('role', role);
    for (const node of part.querySelectorAll(tag)) node.setAttribute('role', role);
  }
}

/**
 * A cell with a label, which is shown where a narrow page shows the table as a list.
 *
 * @param {string} label
 * @param {string} kind Its class.
 * @param {...Child} children
 */
export function cell(label, kind, ...children) {
  return element('td', { class: kind, 'data-label': label }, ...children);
}

/**
 * Keeps one row for each item, in their order. A row stays the same node while its item has the
 * same `version`, so that it keeps the focus and a selection.
 *
 * @template Item
 * @param {HTMLElement} body
 * @param {{
 *   readonly key: (item: Item) => string,
 *   readonly version: (item: Item) => unknown,
 *   readonly cells: (item: Item) => readonly HTMLElement[],
 *   readonly fresh?: (item: Item) => boolean,
 * }} shape `fresh`: whether a row is highlighted as new.
 */
export function rows(body, { key, version, cells, fresh = () => false }) {
  nameRoles(byTable(body));
  /** @type {Map<string, { readonly row: HTMLTableRowElement, version: unknown }>} */
  let shown = new Map();
  /** @param {readonly Item[]} items */
  return (items) => {
    /** @type {typeof shown} */
    const next = new Map();
    for (const item of items) {
      const id = key(item);
      const entry = shown.get(id) ?? { row: element('tr', fresh(item) ? { class: 'fresh' } : {}), version: undefined };
      const now = version(item);
      if (entry.version !== now) {
        replaceCells(entry.row, cells(item));
        entry.version = now;
      }
      next.set(id, entry);
    }
    for (const [id, { row }] of shown) if (!next.has(id)) row.remove();
    shown = next;
    let at = body.firstElementChild;
    for (const { row } of next.values()) {
      if (row === at) at = at.nextElementSibling;
      else body.insertBefore(row, at);
    }
  };
}

/**
 * @param {HTMLElement} body
 */
export function byTable(body) {
  return body.closest('table') ?? body;
}

/**
 * Replaces the cells; the focus moves to the new button of the same action.
 *
 * @param {HTMLTableRowElement} row
 * @param {readonly HTMLElement[]} cells
 */
function replaceCells(row, cells) {
  const held = row.contains(document.activeElement) ? document.activeElement?.getAttribute('data-act') : undefined;
  row.replaceChildren(...cells);
  nameRoles(row);
  const again = held ? row.querySelector(`[data-act="${CSS.escape(held)}"]`) : undefined;
  if (again instanceof HTMLElement) again.focus();
}
