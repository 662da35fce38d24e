/** Reads CSV as RFC 4180 has it, and nothing else. @throws Error for what it does not allow */
export function parseCsv(text: string): readonly (readonly string[])[] {
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y;
  const rows: string[][] = [];
  let row: string[] = [];
  while (field.lastIndex < text.length) {
    const at = field.lastIndex;
    const [, quoted, plain = '', end] = field.exec(text) ?? [];
    if (end === undefined) throw new Error(`no CSV at ${at}: ${text.slice(at, at + 40)}`);
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end !== '\r\n') continue;
    rows.push(row);
    row = [];
  }
  if (row.length > 0 || rows.some(({ length }) => length !== rows[0]?.length)) throw new Error('rows of other lengths');
  return rows;
}

/** The lines below the head, by column. */
export function recordsOf(text: string): readonly Readonly<Record<string, string>>[] {
  const [head = [], ...lines] = parseCsv(text);
  return lines.map((line) => Object.fromEntries(head.map((name, at) => [name, line[at] ?? ''])));
}

/** What a receipt says, by column: members of members with a dot between them. */
export function flat(value: object, before = ''): Readonly<Record<string, string>> {
  const fields = Object.entries(value).map(([name, member]) =>
    typeof member === 'object' && member !== null
      ? flat(member, `${before}${name}.`)
      : { [`${before}${name}`]: String(member) },
  );
  return Object.assign({}, ...fields);
}
