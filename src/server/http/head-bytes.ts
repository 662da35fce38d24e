/** The length of header fields as they are written. */

/** Names, values and what stands between them, bytes; a value is latin1. */
export function fieldsBytes(fields: Readonly<Record<string, string | number>>): number {
  let bytes = 0;
  for (const name in fields) bytes += fieldBytes(name, String(fields[name]));
  return bytes;
}

export function fieldBytes(name: string, value: string): number {
  return name.length + value.length + ': \r\n'.length;
}
