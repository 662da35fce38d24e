/**
 * Mutants that no test can tell from the code, by the name that the run prints, and why. Whatever stands here was looked at: another check
 * behind it gives the same answer, or what changes is only cost.
 */
export const HARMLESS: Readonly<Record<string, string>> = {
  "src/mandates/ap2/jws.ts: header.kind !== 'read' || !isObject(header.value) || claims.kind !== 'read' => (header.kind !== 'read' || !isObject(header.value))":
    'for the types: what was not read has no value, which is no object',
  "src/mandates/ap2/jws.ts: header.kind !== 'read' || !isObject(header.value) => (!isObject(header.value))":
    'for the types: what was not read has no value, which is no object',
  'src/mandates/ap2/jws.ts: bytes === undefined => false': 'for the types: no bytes are no JSON for the parser either',
};
