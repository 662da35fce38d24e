/** Makes the slip table: what ran at each merchant. */

import { FRAMEWORKS } from './frameworks.ts';
import { openSaleGateway } from './gateway.ts';
import { type HarmlessCase, type HarmlessOutcome, measureHarmless } from './harmless.ts';
import { type Merchant, type MerchantKind, startMerchant } from './merchant.ts';
import { READERS } from './readers.ts';
import { ROUTERS } from './routers.ts';
import type { Case } from './send.ts';
import { measure, type Outcome } from './slips.ts';

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
