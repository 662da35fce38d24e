/** A JSON reader that keeps the first of two equal members, as some backends do. */

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * Reads well-formed JSON like parsers that keep the first of two members with one name;
 * `JSON.parse` keeps the last.
 */
export function firstWins(text: string): unknown {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const value = (): unknown => {
    const token = tokens[at++];
    if (token === '[') return list();
    if (token === '{') return object();
    return JSON.parse(token ?? '');
  };
  const list = (): unknown => {
    const items: unknown[] = [];
    while (tokens[at] !== ']') {
      items.push(value());
      if (tokens[at] === ',') at += 1;
    }
    at += 1;
    return items;
  };
  const object = (): unknown => {
    const members = new Map<string, unknown>();
    while (tokens[at] !== '}') {
      const name: string = JSON.parse(tokens[at] ?? '');
      // Behind the name and its colon.
      at += 2;
      const member = value();
      if (!members.has(name)) members.set(name, member);
      if (tokens[at] === ',') at += 1;
    }
    at += 1;
    return Object.fromEntries(members);
  };
  return value();
}
