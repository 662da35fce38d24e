/** A gateway with a backend that is stopped and restarted, and buyers that count their answers. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createBuyer } from '../../../spec/support/buyer.ts';
import { openGateway, type TestGateway } from '../../../spec/support/gateway.ts';
import { INVENTED_TRANSACTION, startHostileFacilitator } from '../../../spec/support/hostile-facilitator.ts';
import { freePorts } from '../../../spec/support/ports.ts';
import { proofFor } from '../../../spec/support/testbed.ts';
import { scrape } from '../../../spec/telemetry/scrape.ts';
import type { ChainAccess } from '../../../tools/local-world/chain.ts';
import { ended } from '../../../tools/local-world/child.ts';
import { leash } from '../../../tools/local-world/leash.ts';

/** How long a settlement takes, milliseconds. */
const SETTLE_MS = 120;
/**
 * Between a call that was refused before money and the next one with the same proof, milliseconds.
 */
const AGAIN_MS = 100;
/** `acg_backend_breaker`: the gateway takes no payments. */
const OPEN = 2;
/** No token moves here: the configuration only needs a chain. */
const CHAIN_ID = 31_337;
const CHAIN = {
  rpcUrl: 'http://127.0.0.1:9',
  chainId: CHAIN_ID,
  token: { address: '0x5FbDB2315678afecb367f032d93F642f64180aa3', name: 'Test USD', version: '1', decimals: 6 },
  relayerKey: '0x',
} as unknown as ChainAccess;

/** What is bought: GET may be repeated, POST must not be. */
type Bought = 'market_report' | 'echo';

/**
 * A gateway, a backend that is stopped and restarted, and buyers that each make one call after
 * another.
 */
export interface AwayWorld {
  readonly gateway: TestGateway;
  readonly merchant: AwayMerchant;
  readonly seen: Seen;
  /** Lets `buyers` buy until `calls` calls are made in all, or `until` is true. */
  buy(order: {
    readonly buyers: number;
    readonly calls: number;
    readonly until?: () => boolean;
    /** Only what the backend may get twice. */
    readonly repeatable?: boolean;
  }): Promise<void>;
  /**
   * Sends again what was paid and not delivered; counts what is delivered now, and what stays on
   * the list of refunds.
   */
  collect(): Promise<{ readonly collected: number; readonly due: number; readonly lost: number }>;
  /** Resolves when the breaker is not open. */
  untilNotOpen(): Promise<void>;
  breaker(): Promise<{ readonly state: number; readonly opened: number }>;
  close(): Promise<void>;
}

/** What the buyers and the facilitator saw. A call is one request with a proof. */
interface Seen {
  calls: number;
  delivered: number;
  /** 503 with `backend_unreachable`. */
  refused: number;
  /** Anything else, by what it was. */
  readonly others: Map<string, number>;
  /** Authorizations whose money moved. */
  readonly settled: Set<string>;
  /** Of those, the ones whose first answer was no delivery. */
  readonly undelivered: Map<string, { readonly resource: Bought; readonly input: object; readonly header: string }>;
  /** Of those, POSTs whose connection broke after the backend had the request. */
  inHand: number;
}

export async function openAwayWorld(
  options: {
    readonly timeoutMs?: number;
    readonly probe?: boolean;
    readonly settleMs?: number;
    /** How long an answer of the backend takes, milliseconds. */
    readonly workMs?: number;
  } = {},
): Promise<AwayWorld> {
  const { timeoutMs = 10_000, probe = false, settleMs = SETTLE_MS, workMs = 0 } = options;
  const merchant = await awayMerchant(workMs);
  const facilitator = await startHostileFacilitator(`eip155:${CHAIN_ID}`);
  const seen: Seen = {
    ...{ calls: 0, delivered: 0, refused: 0, inHand: 0 },
    ...{ others: new Map(), settled: new Set(), undelivered: new Map() },
  };
  facilitator.script({
    async settle({ body }) {
      await delay(settleMs);
      const { authorization } = (
        body as { paymentPayload: { payload: { authorization: { nonce: string; from: string } } } }
      ).paymentPayload.payload;
      seen.settled.add(authorization.nonce);
      const network = `eip155:${CHAIN_ID}`;
      const settled = { success: true, transaction: INVENTED_TRANSACTION, network, payer: authorization.from };
      return { kind: 'json', body: settled };
    },
  });
  const backend = { timeoutMs };
  const gateway = await openGateway({
    chain: CHAIN as never,
    backendUrl: merchant.url,
    facilitator: { mode: 'remote', url: facilitator.url },
    overrides: {
      payments: { x402: { rpcUrl: undefined } },
      resources: { market_report: { backend }, echo: { backend } },
      ...(probe ? { backend: { probe: { path: '/alive' } } } : {}),
    },
  });
  const bought = async (resource: Bought, input: object, header: string): Promise<'delivered' | 'refused' | string> => {
    const answer = await gateway.invoke(resource, input, { 'payment-signature': header });
    const text = await answer.text();
    if (answer.status === 200) return 'delivered';
    const { code, details } = JSON.parse(text) as { code?: string; details?: { reason?: string } };
    return details?.reason === 'backend_unreachable' ? 'refused' : `${answer.status} ${code} ${details?.reason ?? ''}`;
  };
  const breaker = async (): Promise<{ readonly state: number; readonly opened: number }> => {
    const series = await scrape(gateway.managementUrl);
    const opened = [...series].filter(([name]) => name.startsWith('acg_backend_breaker_opened_total'));
    return {
      state: series.get('acg_backend_breaker') ?? -1,
      opened: opened.reduce((sum, [, count]) => sum + count, 0),
    };
  };
  return {
    gateway,
    merchant,
    seen,
    async buy({ buyers, calls, until = () => false, repeatable = false }) {
      const end = seen.calls + calls;
      const goesOn = (): boolean => seen.calls < end && !until();
      const one = async (index: number): Promise<void> => {
        const buyer = await createBuyer(CHAIN, 0n);
        const resource: Bought = repeatable || index % 2 === 0 ? 'market_report' : 'echo';
        const input = resource === 'echo' ? { item: 'tea' } : { city: 'Berlin' };
        while (goesOn()) {
          const header = await proofFor(gateway, buyer, resource, input);
          while (goesOn()) {
            seen.calls += 1;
            const got = await bought(resource, input, header);
            if (got === 'refused') {
              seen.refused += 1;
              await delay(AGAIN_MS);
              continue;
            }
            if (got === 'delivered') seen.delivered += 1;
            else {
              seen.others.set(got, (seen.others.get(got) ?? 0) + 1);
              if (seen.settled.has(nonceIn(header))) {
                seen.undelivered.set(nonceIn(header), { resource, input, header });
                if (resource === 'echo' && got.endsWith('transport')) seen.inHand += 1;
              }
            }
            break;
          }
        }
      };
      await Promise.all(Array.from({ length: buyers }, (_, index) => one(index)));
    },
    async collect() {
      let collected = 0;
      for (const { resource, input, header } of seen.undelivered.values())
        if ((await bought(resource, input, header)) === 'delivered') collected += 1;
      const listed = (await (await gateway.operator('/api/receipts?delivered=false&limit=500')).json()) as {
        readonly receipts: readonly { readonly payment?: { readonly payer: string } }[];
      };
      const due = listed.receipts.filter(({ payment }) => payment !== undefined).length;
      return { collected, due, lost: seen.undelivered.size - collected - due };
    },
    async untilNotOpen() {
      while ((await breaker()).state === OPEN) await delay(20);
    },
    breaker,
    async close() {
      await gateway.close();
      merchant.goOn();
      await Promise.all([merchant.kill(), facilitator.stop()]);
    },
  };
}

function nonceIn(header: string): string {
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
    readonly payload: { readonly authorization: { readonly nonce: string } };
  };
  return payload.authorization.nonce;
}

/**
 * `answers`; `closes` every connection it accepts; `cuts` each one when it has read the request.
 */
export type Manner = 'answers' | 'closes' | 'cuts';

/** A backend that can be killed and stopped. */
interface AwayMerchant {
  readonly url: string;
  /** Resolves when it listens. */
  start(manner?: Manner): Promise<void>;
  /** `kill -9`: from now on connections are refused. */
  kill(): Promise<void>;
  /** SIGSTOP: the operating system accepts connections, and nothing answers. */
  stop(): void;
  /** SIGCONT. */
  goOn(): void;
}

/** `workMs`: how long an answer takes. */
async function awayMerchant(workMs: number): Promise<AwayMerchant> {
  const [port = 0] = await freePorts(1);
  let child: ChildProcess | undefined;
  return {
    url: `http://127.0.0.1:${port}`,
    async start(manner = 'answers') {
      const args = [join(import.meta.dirname, 'merchant-main.ts'), String(port), manner, String(workMs)];
      const started = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      leash(started);
      child = started;
      await once(started.stdout, 'data');
    },
    async kill() {
      const killed = child;
      child = undefined;
      if (killed === undefined) return;
      killed.kill('SIGKILL');
      await ended(killed);
    },
    stop: () => void child?.kill('SIGSTOP'),
    goOn: () => void child?.kill('SIGCONT'),
  };
}
