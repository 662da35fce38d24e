/** A mapping of a document that no schema has judged yet. */

export type Mapping = Readonly<Record<string, unknown>>;

/** Whether a value has members; a list has items. */
export function isMapping(value: unknown): value is Mapping {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
