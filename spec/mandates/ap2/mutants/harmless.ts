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
  'src/mandates/ap2/x5c.ts: x5c.length === 0 || x5c.length > MAX_CHAIN => (x5c.length > MAX_CHAIN)':
    'no certificates have no leaf',
  'src/mandates/ap2/x5c.ts: known === undefined => (known !== undefined)':
    'only what it costs: a chain is verified again',
  'src/mandates/ap2/x5c.ts: good.add(id, found); => ;': 'only what it costs: a chain is verified again',
  'src/mandates/ap2/x5c.ts: chain.length !== x5c.length || leaf === undefined || last === undefined => (chain.length !== x5c.length || leaf === undefined)':
    'for the types: a list that is not empty has a last one',
  'src/mandates/ap2/x5c.ts: chain.length !== x5c.length || leaf === undefined => (chain.length !== x5c.length)':
    'for the types: a list that is not empty has a first one',
  'src/mandates/ap2/x5c.ts: authority === undefined || below === undefined => false':
    'for the types: both places are within the list',
  'src/mandates/ap2/x5c.ts: authority === undefined || below === undefined => (authority === undefined)':
    'for the types: both places are within the list',
  'src/mandates/ap2/x5c.ts: authority === undefined || below === undefined => (below === undefined)':
    'for the types: both places are within the list',
  'src/mandates/ap2/x5c.ts: key === undefined => false': 'for the types: what is remembered then gives no key either',
  'src/mandates/ap2/x5c.ts: reading.ok ? reading.key : undefined => (reading.key)':
    'for the types: a reading that failed has no key',
  'src/mandates/ap2/basic-constraints.ts: rest[2] ?? -1 => (rest[2])': 'for the types: it is three bytes long',
  'src/mandates/ap2/basic-constraints.ts: rest[3] ?? 0 => (rest[3])': 'for the types: no certificate ends there',
  'src/mandates/ap2/did-key.ts: jwk === undefined => false': 'for the types: nothing is no JWK for the reader either',
  'src/mandates/ap2/multibase.ts: text.length > MAX_LENGTH => (text.length >= MAX_LENGTH)':
    'no key takes 64 characters',
  'src/mandates/ap2/multibase.ts: kind === undefined => false': 'for the types: what it throws then is caught below',
  "src/mandates/ap2/multibase.ts: typeof whole === 'string' => false": 'for the types: bytes were asked for',
  "src/mandates/ap2/multibase.ts: number === 0n ? '' : number.toString(16) => (number.toString(16))":
    'a zero byte more or less: neither is a key',
  "src/mandates/ap2/did-web.ts: ids[index] ?? '' => (ids[index])": 'for the types: both lists are as long',
  'src/mandates/ap2/did-web.ts: jwk && { kid, jwk } => ({ kid, jwk })':
    'for the types: nothing is no JWK for the reader either',
  'src/mandates/ap2/claim.ts: ends.length === 0 => false': 'steps 8 and 10 have refused what has no end',
  'src/mandates/ap2/jwks-cache.ts: timer.unref(); => ;': 'only when a process ends whose trust nobody closed',
  'src/mandates/ap2/verify-chain.ts: root === undefined => false': 'for the types: a text has at least one segment',
  'src/mandates/register-table.ts: rows.usedUntil(id) ?? 0 => (rows.usedUntil(id))':
    'for the types: nothing is not later than now',
  'src/mandates/register-table.ts: periodStart !== undefined && uses > 0 => (uses > 0)':
    'for the types: no time is at or after nothing',
  'src/mandates/register-table.ts: puses === 0 || state.plast === at => (state.plast === at)':
    'when the last pending use ends, the time is its own or gone already',
  'src/mandates/ap2/key-fetch.ts: !(error instanceof JsonError) => false':
    'for the types: the parser throws nothing else',
  'src/mandates/ap2/constraints.ts: error instanceof Refused ? new Refused(error.reason, { constraint }) : error => (new Refused(error.reason, { constraint }))':
    'no reader throws anything else',
  'src/mandates/ap2/execution-date.ts: !Number.isNaN(at) && new Date(at).toISOString().startsWith(date) => (new Date(at).toISOString().startsWith(date))':
    'no text whose date alone is none gets here',
  'src/mandates/ap2/minted.ts: end !== undefined && now < end => (now < end)':
    'for the types: no time is before nothing',
  "src/mandates/ap2/key-fetch.ts: answer.body.on('error', () => undefined).destroy(); => ;":
    'only what it costs: the deadline ends that answer as well',
};
