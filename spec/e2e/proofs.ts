/** A payload as its JSON, open to every mutation. */
export interface Payload {
  x402Version: unknown;
  resource?: { url: unknown };
  accepted: Record<string, unknown> & { extra: Record<string, unknown> };
  payload: { signature: unknown; authorization: Record<string, unknown> };
  [name: string]: unknown;
}

export const decode = (header: string): Payload => JSON.parse(Buffer.from(header, 'base64').toString()) as Payload;
export const encode = (payload: unknown): string => Buffer.from(JSON.stringify(payload)).toString('base64');
/** The same proof under a name: extensions are not signed. */
export function named(proof: string, id: unknown): string {
  return encode({ ...decode(proof), extensions: { 'payment-identifier': { info: { required: false, id } } } });
}

/**
 * The proof as a stranger finds it in the calldata of a block: without the buyer's token, or with
 * the `token` of a 402 of its own.
 */
export function found(proof: string, token?: string): string {
  const { extensions: _echoed, ...payload } = decode(proof);
  return encode(
    token === undefined ? payload : { ...payload, extensions: { 'agent-commerce-buyer': { info: { token } } } },
  );
}

export const OTHER = `0x${'12'.repeat(20)}`;
export const seconds = (): number => Math.floor(Date.now() / 1_000);

export interface Mutation {
  readonly field: string;
  readonly reason: string;
  /** Dotted path in the payload. */
  readonly at: string;
  readonly to: unknown;
}

export const ABSENT = Symbol('absent');

/** Puts `to` at a dotted path, or removes what is there. */
export function mutate(payload: object, at: string, to: unknown): void {
  const names = at.split('.');
  const last = names.pop() ?? '';
  let parent = payload as Record<string, unknown>;
  for (const name of names) parent = parent[name] as Record<string, unknown>;
  if (to === ABSENT) delete parent[last];
  else parent[last] = to;
}

/** One row for each part of a proof; `verify.spec.ts` has every field. */
export const MUTATIONS: readonly Mutation[] = [
  {
    field: 'resource.url',
    reason: 'invalid_payment_requirements',
    at: 'resource',
    to: { url: 'https://elsewhere.example/x' },
  },
  { field: 'accepted.amount', reason: 'invalid_payment_requirements', at: 'accepted.amount', to: '1' },
  {
    field: 'authorization.value, one less',
    reason: 'invalid_exact_evm_payload_authorization_value_mismatch',
    at: 'payload.authorization.value',
    to: '9999',
  },
  {
    field: 'authorization.nonce',
    reason: 'invalid_exact_evm_payload_signature',
    at: 'payload.authorization.nonce',
    to: `0x${'34'.repeat(32)}`,
  },
  { field: 'signature, missing', reason: 'invalid_payload', at: 'payload.signature', to: ABSENT },
];

/**
 * What a payload may hold without a meaning here (the official schema tolerates it): each still
 * buys, and none of it is sent on.
 */
export const TOLERATED: readonly Pick<Mutation, 'field' | 'at' | 'to'>[] = [
  { field: 'extensions null', at: 'extensions', to: null },
  { field: 'an unknown member of the authorization', at: 'payload.authorization.surprise', to: 'unknown-member' },
];

/** Spellings of one base64 text; only the first is canonical. */
export const SPELLINGS: readonly {
  readonly name: string;
  readonly of: (header: string) => string;
  readonly accepted: boolean;
}[] = [
  { name: 'as it is', of: (header) => header, accepted: true },
  { name: 'text behind the padding', of: (header) => `${header}garbage`, accepted: false },
  { name: 'a space inside', of: (header) => `${header.slice(0, 20)} ${header.slice(20)}`, accepted: false },
  { name: 'an asterisk inside', of: (header) => `${header.slice(0, 20)}*${header.slice(20)}`, accepted: false },
  { name: 'a data URL', of: (header) => `data:application/json;base64,${header}`, accepted: false },
  { name: 'one padding sign too many', of: (header) => `${header}=`, accepted: false },
  { name: 'base64 of base64', of: (header) => Buffer.from(header).toString('base64'), accepted: false },
  { name: 'quoted', of: (header) => `"${header}"`, accepted: false },
  { name: 'hexadecimal', of: (header) => Buffer.from(header, 'base64').toString('hex'), accepted: false },
];

/** A flipped letter case, an omitted zero byte, another order: all the same authorization. */
export function spellingsOfOneAuthorization(header: string): readonly string[] {
  const upper = (text: string): string => `0x${text.slice(2).toUpperCase()}`;
  /** The checksum of an address may happen to need no capital letter. */
  const otherCase = (text: string): string => (text === text.toLowerCase() ? upper(text) : text.toLowerCase());
  const given = decode(header);
  const { authorization, signature } = given.payload;
  const bareV = String(signature).replace(/1b$/i, '00').replace(/1c$/i, '01');
  const changes: readonly (readonly [at: string, to: unknown])[] = [
    ['x402Version', 2],
    ['payload.authorization.from', upper(String(authorization['from']))],
    ['payload.authorization.to', upper(String(authorization['to']))],
    ['payload.authorization.nonce', upper(String(authorization['nonce']))],
    ['payload.signature', upper(String(signature))],
    ['payload.signature', bareV],
    ['accepted.asset', otherCase(String(given.accepted['asset']))],
    ['accepted.payTo', otherCase(String(given.accepted['payTo']))],
    ['accepted.extra.note', 'mine'],
    ['resource', ABSENT],
  ];
  return changes.flatMap(([at, to]) => {
    const payload = decode(header);
    mutate(payload, at, to);
    const reversed = Object.fromEntries(Object.entries(payload).reverse());
    return [encode(payload), encode(reversed).replace(/=+$/, '')];
  });
}
