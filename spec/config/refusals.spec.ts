import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'node:test';
import { parse } from 'yaml';
import { TEST_BUYER } from '../../src/payments/pricing/networks.ts';
import { AMOY, BY_INPUT, type Changes, EURO, MAINNET, SEPOLIA, SETTLED_AFTER } from './document/document.ts';
import { type Row, refusalsOf, refuses } from './refusals.ts';
import { KEY, ON_TRIAL, SECRET, selling, TOKEN } from './sections/acp.ts';

/** A row of the table; `each`: one test with each of these in the place of `<each>`. */
interface Refusal {
  readonly rule: string;
  readonly on?: keyof typeof BASES;
  readonly each?: readonly string[];
  readonly set?: Changes;
  readonly drop?: readonly string[];
  readonly at?: string;
  readonly says: string;
}

interface Group {
  readonly on?: keyof typeof BASES;
  readonly alone?: boolean;
  readonly unsaid?: readonly string[];
  readonly rows: readonly Refusal[];
}

const BASES = {
  mainnet: MAINNET,
  checkout: selling(),
  trial: selling(ON_TRIAL),
  card: { 'protocols.a2a.enabled': true, 'resources.report.expose': ['http', 'a2a'] },
  passthrough: { 'backend.passthrough': { enabled: true } },
  'settled after': SETTLED_AFTER,
  'by input': BY_INPUT,
  'two networks': { 'payments.x402': [SEPOLIA, AMOY] },
  'two networks settled after': { 'payments.x402': [SEPOLIA, AMOY], ...SETTLED_AFTER },
  'two tokens': { 'payments.x402': [SEPOLIA, EURO] },
} satisfies Record<string, Changes>;

const TEXT = readFileSync(join(import.meta.dirname, 'refusals.yaml'), 'utf8')
  .replaceAll('<TEST buyer key>', TEST_BUYER.key)
  .replaceAll('<TEST buyer>', TEST_BUYER.address);
const GROUPS = parse(TEXT) as Readonly<Record<string, Group>>;

/** The rows that are told nothing of: one for each value. */
function rowsOf({ each, ...row }: Refusal): readonly Refusal[] {
  if (each === undefined) return [row];
  return each.map((value) => JSON.parse(JSON.stringify(row).replaceAll('<each>', value)) as Refusal);
}

for (const [title, { on, alone = false, unsaid = [], rows }] of Object.entries(GROUPS))
  describe(`start-up refuses (${title})`, () => {
    const read = rows.flatMap(rowsOf).map(({ rule, on: base = on, set = {}, drop = [], at, says }): Row => {
      const changes = {
        ...(base && BASES[base]),
        ...set,
        ...Object.fromEntries(drop.map((path) => [path, undefined])),
      };
      return [rule, changes, at ?? Object.keys(set)[0] ?? drop[0] ?? '', new RegExp(says)];
    });
    if (alone) refusalsOf((changes) => changes, [TOKEN, SECRET, KEY, 'pass@', ...unsaid])(read);
    else refuses(read);
  });
