/**
 * Mutants that no test can detect, by the name that the run prints, and why: a later check gives
 * the same answer, or only the cost changes.
 */
export const HARMLESS: Readonly<Record<string, string>> = {
  "src/mandates/ap2/sd-jwt.ts: header.kind !== 'read' || !isObject(header.value) || claims.kind !== 'read' => (header.kind !== 'read' || !isObject(header.value))":
    'for the types: what was not read has no value, which is no object',
  "src/mandates/ap2/sd-jwt.ts: header.kind !== 'read' || !isObject(header.value) => (!isObject(header.value))":
    'for the types: what was not read has no value, which is no object',
  'src/mandates/ap2/sd-jwt.ts: bytes === undefined => false':
    'for the types: no bytes are no JSON for the parser either',
  "src/mandates/ap2/sd-jwt.ts: error instanceof JsonError && error.reason === 'number_out_of_range' => (error.reason === 'number_out_of_range')":
    'for the types: the parser throws nothing else',
  "src/mandates/ap2/readers.ts: typeof value === 'number' && Number.isInteger(value) => (Number.isInteger(value))":
    'for the types: an integer is a number',
  'src/mandates/ap2/readers.ts: isTime(begins) && begins > now + skew => (begins > now + skew)':
    'for the types: only a number is greater than a number',
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
    'for the types: both positions are within the list',
  'src/mandates/ap2/x5c.ts: authority === undefined || below === undefined => (authority === undefined)':
    'for the types: both positions are within the list',
  'src/mandates/ap2/x5c.ts: authority === undefined || below === undefined => (below === undefined)':
    'for the types: both positions are within the list',
  'src/mandates/ap2/x5c.ts: key === undefined => false': 'for the types: what is remembered then gives no key either',
  'src/mandates/ap2/x5c.ts: reading.ok ? reading.key : undefined => (reading.key)':
    'for the types: a reading that failed has no key',
  'src/mandates/ap2/did.ts: jwk === undefined => false': 'for the types: undefined is no JWK for the reader either',
  'src/mandates/ap2/did.ts: text.length > MAX_LENGTH => (text.length >= MAX_LENGTH)': 'no key takes 64 characters',
  'src/mandates/ap2/did.ts: kind === undefined => false': 'for the types: what it throws then is caught below',
  "src/mandates/ap2/did.ts: typeof whole === 'string' => false": 'for the types: bytes were asked for',
  "src/mandates/ap2/did.ts: number === 0n ? '' : number.toString(16) => (number.toString(16))":
    'a zero byte more or less: neither is a key',
  'src/mandates/ap2/did.ts: jwk && { kid, jwk } => ({ kid, jwk })':
    'for the types: undefined is no JWK for the reader either',
  'src/mandates/ap2/verify.ts: ends.length === 0 => false': 'steps 8 and 10 have refused what has no end',
  'src/mandates/ap2/remote-keys.ts: timer.unref(); => ;': 'only when a process ends without closing its trust',
  'src/mandates/ap2/chain.ts: root === undefined => false': 'for the types: a text has at least one segment',
  'src/mandates/register.ts: periodStart !== undefined && uses > 0 => (uses > 0)':
    'for the types: no time is at or after undefined',
  'src/mandates/register.ts: puses === 0 || state.plast === at => (state.plast === at)':
    'when the last pending use ends, the time is its own or gone already',
  'src/mandates/ap2/remote-keys.ts: !(error instanceof JsonError) => false':
    'for the types: the parser throws nothing else',
  'src/mandates/ap2/readers.ts: error instanceof Refused ? new Refused(error.reason, { constraint }) : error => (new Refused(error.reason, { constraint }))':
    'no reader throws anything else',
  'src/mandates/ap2/payment-mandate.ts: !Number.isNaN(at) && new Date(at).toISOString().startsWith(date) => (new Date(at).toISOString().startsWith(date))':
    'no text whose date alone is none gets here',
  'src/mandates/ap2/keys.ts: curve === undefined || signature.length !== 2 * curve.octets => false':
    'OpenSSL refuses the other lengths as well, today',
  'src/mandates/ap2/keys.ts: curve === undefined || signature.length !== 2 * curve.octets => (curve === undefined)':
    'OpenSSL refuses the other lengths as well, today',
  "src/mandates/ap2/remote-keys.ts: answer.body.on('error', () => undefined).destroy(); => ;":
    'only what it costs: the deadline ends that answer as well',
  'src/mandates/ap2/x5c.ts: at >= 0 && der.subarray(at, at + EXTENSION.length).equals(EXTENSION) => (der.subarray(at, at + EXTENSION.length).equals(EXTENSION))':
    'so near the beginning nothing lies behind the name that is looked for from the end',
  "src/mandates/ap2/checkout.ts: isText(type) && typeof amount === 'number' => (isText(type))":
    'for the types: an integer is a number',
  "src/mandates/ap2/checkout.ts: typeof value === 'number' && Number.isSafeInteger(value) => (Number.isSafeInteger(value))":
    'for the types: an integer is a number',
  "src/mandates/ap2/checkout.ts: alg !== 'ES256' || !TYPES.has(typ) || typeof kid !== 'string' => (alg !== 'ES256' || !TYPES.has(typ))":
    'for the types: no key is known by anything but a text',
  "src/mandates/ap2/sd-jwt.ts: read.kind !== 'read' || !Array.isArray(read.value) => (!Array.isArray(read.value))":
    'for the types: what was not read has no value, which is no list',
  'src/mandates/ap2/issuers.ts: !(error instanceof KeysUnavailable) => false':
    'for the types: looking for a key throws nothing else',
  'src/mandates/ap2/issuers.ts: kid === undefined ? undefined : keys.get(kid) => (keys.get(kid))':
    'for the types: no key has the id undefined',
  'src/mandates/ap2/keys.ts: curve === undefined || signature.length !== 2 * curve.octets => (signature.length !== 2 * curve.octets)':
    'for the types: every algorithm has a curve',
  'src/mandates/ap2/payment-mandate.ts: budget !== undefined && payment.amount > budget => (payment.amount > budget)':
    'for the types: no number is greater than undefined',
  'src/mandates/ap2/payment-mandate.ts: recurs === undefined || budget === undefined => (recurs === undefined)':
    'for the types: uses again without a budget were refused when the constraints were read',
  "src/mandates/ap2/payment-mandate.ts: typeof max !== 'number' || !(max >= 0) => (typeof max !== 'number')":
    'an amount without units is refused when they are counted, with the same reason',
  'src/mandates/ap2/payment-mandate.ts: value !== undefined && canonicalJson(preset) === canonicalJson(value) => (canonicalJson(preset) === canonicalJson(value))':
    'for the types: undefined has no canonical form',
  'src/mandates/ap2/reasons.ts: reason === undefined || !isReason(reason) => (!isReason(reason))':
    'for the types: undefined is no reason either',
  'src/mandates/ap2/reasons.ts: cause === undefined ? {} : { cause } => ({ cause })':
    'only for the log, which omits an undefined cause',
  'src/mandates/ap2/challenge.ts: transaction === undefined ? {} : { network_confirmation_id: transaction } => ({ network_confirmation_id: transaction })':
    'JSON omits undefined members as well',
  'src/mandates/ap2/challenge.ts: ap2Error === undefined ? {} : { error: ap2Error } => ({ error: ap2Error })':
    'JSON omits undefined members as well',
  "src/mandates/ap2/readers.ts: typeof value !== 'number' || !Number.isSafeInteger(value) => (!Number.isSafeInteger(value))":
    'for the types: an integer is a number',
  'src/mandates/ap2/x5c.ts: curve !== undefined && NAMED_CURVES.has(curve) => (NAMED_CURVES.has(curve))':
    'for the types: undefined is no name of a curve',
  'src/mandates/register.ts: maxOccurrences !== undefined && uses >= maxOccurrences => (uses >= maxOccurrences)':
    'for the types: no number is as many as undefined',
  'src/mandates/register.ts: left < 0n => (left <= 0n)': 'zero is zero in every notation',
  "src/mandates/stored-mandate.ts: typeof value !== 'object' || value === null || Array.isArray(value) => (typeof value !== 'object' || value === null)":
    'for the types: a list has no member of any shape',
};
