/** `acg mandate open`: the provider signs open mandates for an agent, and writes them to a file. */

import { UsageError } from '../../src/cli/program.ts';
import { isObject } from '../../src/json/json.ts';
import { type ReadChallenge, readChallenge } from './challenge.ts';
import { named, readJson, writeNew } from './files.ts';
import { limitsOf } from './limits.ts';
import { allowedMerchants, type Constraint, type Item, lineItems, type Merchant } from './maker/constraints.ts';
import { openMandate, VCT } from './maker/contents.ts';
import { rootDraft } from './maker/drafts.ts';
import { hashOf, signDraft } from './maker/tokens.ts';
import { type Options, wholeNumber } from './options.ts';
import { readKeys, type TestKeys } from './test-keys.ts';

const DAY_SECONDS = 86_400;
const DEFAULT_DAYS = '1';
/** Longest life of an open mandate that is made here. */
const MOST_DAYS = 31;
/** Backdated, so that no verifier's clock takes it for a mandate from the future. */
const BACKDATED_SECONDS = 60;

/** The open mandates in the file. */
interface OpenFile {
  readonly checkout: string;
  readonly payment: string | undefined;
}

/** The agent may buy items of a merchant, and pay within limits. @throws UsageError, Error */
export function open(options: Options, nowSeconds: number): string {
  const out = options.need('out', 'the file for the open mandates');
  const keys = readKeys(options.need('keys', 'the folder that mandate keys made'));
  const challengeFile = options.get('challenge');
  const challenge = challengeFile === undefined ? undefined : readChallenge(challengeFile, nowSeconds);
  const merchant = merchantOf(options, challenge);
  const days = wholeNumber('days', options.get('days') ?? DEFAULT_DAYS, MOST_DAYS);
  const times = { iat: nowSeconds - BACKDATED_SECONDS, exp: nowSeconds + days * DAY_SECONDS };
  const wanted = itemsOf(options, challenge);
  const requirement = { id: 'line_1', acceptable: wanted, quantity: challenge?.items[0]?.quantity ?? 1 };
  const checkout = granted(VCT.openCheckout, [lineItems([requirement]), allowedMerchants([merchant])], times, keys);
  const limits = limitsOf(options, { challenge, merchant, openCheckout: hashOf(checkout) });
  const payment = limits === undefined ? undefined : granted(VCT.openPayment, limits, times, keys);
  const note = 'TEST: made by acg mandate open';
  writeNew(out, `${JSON.stringify({ note, checkout, ...(payment === undefined ? {} : { payment }) }, undefined, 2)}\n`);
  const ends = new Date(times.exp * 1_000).toISOString();
  const money = limits === undefined ? 'no payment mandate' : `payment limits: ${limits.map(shown).join(' ')}`;
  return `${out}: until ${ends} the agent may buy ${wanted.map(({ id }) => id).join(' or ')} from ${merchant.id}; ${money}\n`;
}

function shown({ body }: Constraint): string {
  const { type, ...rest } = body;
  return `${type}${JSON.stringify(rest)}`;
}

/** @throws Error that names the file */
export function readOpenFile(file: string): OpenFile {
  const value = readJson(file);
  const { checkout, payment } = isObject(value) ? value : {};
  if (typeof checkout !== 'string')
    throw new Error(`${named(file)} holds no open mandate; mandate open --out makes such a file`);
  return { checkout, payment: typeof payment === 'string' ? payment : undefined };
}

function granted(
  vct: string,
  constraints: readonly Constraint[],
  times: { readonly iat: number; readonly exp: number },
  { issuer, provider, agent }: TestKeys,
): string {
  const content = openMandate(vct, constraints, { ...times, holder: agent.publicJwk });
  return signDraft(rootDraft(content, { iss: issuer, iat: times.iat }, provider), provider);
}

const WHERE = 'or a challenge with --challenge FILE';

/** @throws UsageError */
function merchantOf(options: Options, challenge: ReadChallenge | undefined): Merchant {
  const text = options.get('merchant');
  if (text !== undefined) return pair('merchant', text, ([id, name]) => ({ id, name }));
  if (challenge !== undefined) return challenge.merchant;
  throw new UsageError(`mandate open needs --merchant ID=NAME, ${WHERE}`);
}

/** @throws UsageError */
function itemsOf({ items }: Options, challenge: ReadChallenge | undefined): readonly Item[] {
  if (items.length > 0) return items.map((text) => pair('item', text, ([id, title]) => ({ id, title })));
  if (challenge !== undefined) return challenge.items.map(({ id, title }) => ({ id, title }));
  throw new UsageError(`mandate open needs --item ID=TITLE, ${WHERE}`);
}

function pair<T>(name: string, text: string, made: (parts: readonly [string, string]) => T): T {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw new UsageError(`--${name} must be ID=NAME, not ${JSON.stringify(text)}`);
  return made([text.slice(0, at), text.slice(at + 1)]);
}
