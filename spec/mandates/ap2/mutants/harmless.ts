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
  "src/mandates/ap2/jws.ts: error instanceof JsonError && error.reason === 'number_out_of_range' => (error.reason === 'number_out_of_range')":
    'for the types: the parser throws nothing else',
  "src/mandates/ap2/times.ts: typeof value === 'number' && Number.isInteger(value) => (Number.isInteger(value))":
    'for the types: what is an integer is a number',
  'src/mandates/ap2/times.ts: isTime(begins) && begins > now + skew => (begins > now + skew)':
    'for the types: nothing that is no number is greater than one',
};
