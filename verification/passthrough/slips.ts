/** Measures what reaches a merchant through an entrance: what ran there without a payment. */

import { openSaleGateway } from './gateway.ts';
import { type HarmlessCase, type HarmlessOutcome, measureHarmless } from './harmless.ts';
import { type Merchant, type MerchantKind, startMerchant } from './merchant.ts';
import { FRAMEWORKS, READERS, ROUTERS } from './merchants.ts';
import { type Case, sendAll } from './send.ts';
import { METHODS, type Spelling } from './spellings.ts';

/** What some cases came to. */
interface Outcome {
  readonly requests: number;
  /** Cases that came to the merchant. */
  readonly arrived: number;
  /** Cases in which something sold ran. */
  readonly executed: readonly Case[];
  /** Cases that were never answered. */
  readonly unanswered: readonly Case[];
}

/** Every spelling with every method. */
export function casesOf(spellings: readonly Spelling[], methods: readonly string[] = METHODS): readonly Case[] {
  return spellings.flatMap((spelling, at) =>
    methods.map((method, index) => ({ ...spelling, id: at * methods.length + index, method })),
  );
}

/** Sends the cases to a port, and says what ran at the merchant behind it. */
export async function measure(merchant: Merchant, port: number, cases: readonly Case[]): Promise<Outcome> {
  merchant.reset();
  const answers = await sendAll(port, cases);
  return {
    requests: cases.length,
    arrived: merchant.arrivals.size,
    executed: cases.filter(({ id }) => merchant.executed.has(id)),
    unanswered: cases.filter(({ id }) => (answers.get(id)?.status ?? 0) === 0),
  };
}

/** How a case is named in a report. */
export function caseText({ method, target, headers }: Case): string {
  const shown = target.length > 100 ? `${target.slice(0, 60)}…${target.slice(-30)}` : target;
  return `${method} ${JSON.stringify(shown)}${headers === undefined ? '' : ` ${JSON.stringify(headers)}`}`;
}

/** Every merchant of the table. */
export const MERCHANTS: readonly MerchantKind[] = [...FRAMEWORKS, ...READERS, ...ROUTERS];

/** One merchant of the table. */
export interface Row {
  readonly merchant: string;
  /** Without anything in front of it: shows that the spellings reach what is sold. */
  readonly bare: Outcome;
  readonly guarded: Outcome;
  readonly harmless: HarmlessOutcome;
}

/** Measures one merchant, alone and behind the gateway. */
export async function measureRow(
  kind: MerchantKind,
  cases: readonly Case[],
  harmless: readonly HarmlessCase[],
): Promise<Row> {
  const merchant = await startMerchant(kind);
  try {
    return {
      merchant: kind.name,
      bare: await measure(merchant, merchant.port, cases),
      guarded: await behind(merchant, (port) => measure(merchant, port, cases)),
      harmless: await behind(merchant, (port) => measureHarmless(merchant, port, harmless)),
    };
  } finally {
    await merchant.close();
  }
}

/** Measures through the gateway that stands in front of the merchant meanwhile. */
export async function behind<Result>(merchant: Merchant, measured: (port: number) => Promise<Result>): Promise<Result> {
  const entrance = await openSaleGateway(merchant.port);
  try {
    return await measured(entrance.port);
  } finally {
    await entrance.close();
  }
}
