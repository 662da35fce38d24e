/**
 * `node verification/mandates/cost.ts [rounds]`: what one mandate costs, in units of one ES256
 * verification with an imported key, measured in turns within one run. Never a test: the figures of
 * a busy machine vary freely. Goals for an autonomous checkout mandate: at most 4 units when its
 * open mandate was seen before, 8 when nothing was.
 */
import { verify as verifySignature } from 'node:crypto';
import { createMint } from '../../spec/support/ap2/mint.ts';
import { hashed } from '../../spec/support/ap2/oracle.ts';
import { NOW } from '../../spec/support/ap2/purchase.ts';
import { verifierFor } from '../../spec/support/ap2/verifier.ts';
import type { Presentation } from '../../spec/support/ap2/wishes.ts';
import { createIssuedCheckouts } from '../../src/mandates/ap2/checkout/checkout-mint.ts';
import { signJwt } from '../../tools/mandate/maker/tokens.ts';

const ROUNDS = Number(process.argv[2] ?? 300);
/** Turns that warm the code up and are not counted. */
const WARM_UP = 100;

const mint = createMint();
const { provider, stranger } = mint.parties;
const shared = mint.open({ payment: true });
const issued = createIssuedCheckouts();
const known = verifierFor(mint, { minted: issued });

type Prepared = () => Promise<unknown> | unknown;
interface Kind {
  readonly name: string;
  readonly goal?: number;
  /** The unmeasured preparation; its result is measured once. */
  readonly prepare: () => Prepared;
}

/**
 * A presentation to a new verifier; a process creates its verifier at start, so creating it does
 * not count.
 */
function fresh(made: Presentation): Prepared {
  const verify = verifierFor(mint);
  return () => expectAccepted(verify(made.header));
}

/**
 * A new closed mandate, under an open mandate that was seen, for a checkout that this process
 * issued unless `foreign`.
 */
function again(payment: boolean, foreign = false): Prepared {
  const { header, checkoutJwt } = mint.close(payment ? shared : { ...shared, payment: [] });
  if (!foreign) issued.add(hashed(checkoutJwt), NOW + 300);
  return () => expectAccepted(known(header));
}

async function expectAccepted(verdict: ReturnType<typeof known>): Promise<void> {
  const { kind } = await verdict;
  if (kind !== 'accepted') throw new Error('a right mandate is refused');
}

const input = signJwt({ alg: 'ES256' }, { text: 'x'.repeat(600) }, provider).split('.');
const signed = Buffer.from(input.slice(0, 2).join('.'));
const signature = Buffer.from(input[2] ?? '', 'base64url');
const key = { key: provider.publicKey, dsaEncoding: 'ieee-p1363' } as const;
const forged = (): Prepared => {
  const { header } = mint.autonomous({ hands: { open: { signer: stranger } } });
  return () => known(header);
};

const KINDS: readonly Kind[] = [
  { name: 'one ES256 verification', prepare: () => () => verifySignature('sha256', signed, key, signature) },
  { name: 'autonomous checkout, no mandate seen before', goal: 8, prepare: () => fresh(mint.autonomous()) },
  { name: 'autonomous checkout, open mandate seen', goal: 4, prepare: () => again(false) },
  { name: 'the same, for a checkout of another replica', prepare: () => again(false, true) },
  { name: 'autonomous checkout and payment, none seen', prepare: () => fresh(mint.autonomous({ payment: true })) },
  { name: 'autonomous checkout and payment, both seen', prepare: () => again(true) },
  { name: 'through a sub-agent, none seen', prepare: () => fresh(mint.autonomous({ delegated: true })) },
  { name: 'direct checkout, none seen', prepare: () => fresh(mint.direct()) },
  { name: 'forged: a real issuer, a wrong signature', prepare: forged },
];

const times = new Map(KINDS.map(({ name }) => [name, [] as number[]]));
for (let round = -WARM_UP; round < ROUNDS; round += 1)
  for (const { name, prepare } of KINDS) {
    const run = prepare();
    const started = process.hrtime.bigint();
    await run();
    const took = Number(process.hrtime.bigint() - started);
    if (round >= 0) times.get(name)?.push(took);
  }

const median = (name: string): number =>
  (times.get(name) ?? []).sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN;
const unit = median(KINDS[0]?.name ?? '');
console.log(`one ES256 verification: ${(unit / 1_000).toFixed(0)} us, median of ${ROUNDS} in turns\n`);
for (const { name, goal } of KINDS) {
  const cost = median(name) / unit;
  const aim = goal === undefined ? '' : `  goal ${goal}: ${cost <= goal ? 'met' : 'MISSED'}`;
  console.log(`${cost.toFixed(1).padStart(6)}  ${name}${aim}`);
}
