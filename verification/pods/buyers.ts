/** Buyers with the official client, one call after another, and what became of each call. */

import { setTimeout as delay } from 'node:timers/promises';
import { wrapFetchWithPayment } from '@x402/fetch';
import { Agent } from 'undici';
import { createBuyer } from '../../spec/support/buyer.ts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';

/** How a call is made: the method of the merchant's operation, and where it is sold. */
interface Manner {
  readonly method: 'GET' | 'POST';
  readonly where: 'invoke' | 'in place';
}

const MANNERS: readonly Manner[] = [
  { method: 'GET', where: 'invoke' },
  { method: 'POST', where: 'invoke' },
  { method: 'GET', where: 'in place' },
  { method: 'POST', where: 'in place' },
];
/** One call in so many takes as long as a call may. */
const SLOWEST_EVERY = 2;
/** How long the others take at most, milliseconds. */
const QUICK_MS = 400;
/**
 * How long a buyer keeps an idle connection, milliseconds: less than the shortest window, as four
 * seconds are usual and five are the window.
 */
const KEPT_MS = 1_500;
/** A buyer's rest between two calls, milliseconds. */
const REST_MS = 20;

/** One finished call. */
export interface Call {
  readonly method: Manner['method'];
  /** Undefined: delivered; else what came instead. */
  readonly failure: string | undefined;
  /** Undefined: it was never paid. */
  readonly nonce: string | undefined;
  readonly request: Request;
  readonly proof: string | undefined;
  /** When it began and ended, milliseconds of the process. */
  readonly from: number;
  readonly to: number;
  /** How long the merchant took, milliseconds. */
  readonly takes: number;
}

export interface Buying {
  /** Ends every buyer after its call; resolves to all calls. */
  stop(): Promise<readonly Call[]>;
  readonly finished: number;
  /** Rejects when a buyer itself fails; else it never ends. */
  readonly broken: Promise<never>;
}

/** Lets `count` buyers buy from the Service until they are stopped. */
export function startBuyers(
  chain: Pick<ChainAccess, 'mint' | 'balanceOf'>,
  { url, count, slowestMs }: { readonly url: string; readonly count: number; readonly slowestMs: number },
): Buying {
  const calls: Call[] = [];
  let stopped = false;
  const one = async (index: number): Promise<void> => {
    const { client } = await createBuyer(chain, 0n);
    // One connection each, so that it stays with one pod for many calls.
    const agent = new Agent({ connections: 1, keepAliveTimeout: KEPT_MS, keepAliveMaxTimeout: KEPT_MS });
    for (let turn = index; !stopped; turn += 1) {
      const manner = MANNERS[turn % MANNERS.length] ?? fail();
      const takes =
        Math.floor(turn / MANNERS.length + index) % SLOWEST_EVERY === 0 ? slowestMs : ((turn * 61) % QUICK_MS) + 1;
      calls.push(await buy({ client, agent }, requestOf(url, manner, takes), manner, takes));
      await delay(REST_MS);
    }
    await agent.close();
  };
  const done = Promise.all(Array.from({ length: count }, (_, index) => one(index)));
  const broken = new Promise<never>((_, reject) => void done.catch(reject));
  broken.catch(() => undefined);
  return {
    broken,
    get finished() {
      return calls.length;
    },
    async stop() {
      stopped = true;
      await done;
      return calls;
    },
  };
}

function fail(): never {
  throw new Error('no manner of buying');
}

function requestOf(url: string, { method, where }: Manner, takes: number): Request {
  const json = { 'content-type': 'application/json' };
  if (where === 'in place')
    return method === 'GET'
      ? new Request(`${url}/reports/${takes}`)
      : new Request(`${url}/orders/${takes}`, { method, headers: json, body: '{}' });
  const resource = method === 'GET' ? 'report' : 'order';
  return new Request(`${url}/api/resources/${resource}/invoke`, {
    ...{ method: 'POST', headers: json },
    body: JSON.stringify({ wait: String(takes) }),
  });
}

async function buy(
  { client, agent }: { readonly client: Parameters<typeof wrapFetchWithPayment>[1]; readonly agent: Agent },
  request: Request,
  { method }: Manner,
  takes: number,
): Promise<Call> {
  const from = Math.round(performance.now());
  let proof: string | undefined;
  const seen: typeof fetch = (input, init) => {
    const sent = new Request(input, init);
    proof = sent.headers.get('payment-signature') ?? undefined;
    // The types of Node have the class of another version of the same package.
    return fetch(sent, { dispatcher: agent as never });
  };
  const again = request.clone();
  let failure: string | undefined;
  try {
    failure = await failureOf(await wrapFetchWithPayment(seen, client)(request), method);
  } catch (error) {
    failure = brokenConnection(error);
  }
  const to = Math.round(performance.now());
  return { method, failure, nonce: nonceIn(proof), request: again, proof, from, to, takes };
}

async function failureOf(answer: Response, method: string): Promise<string | undefined> {
  const text = await answer.text();
  if (answer.status === 200 && text.includes(`"made":"${method}"`)) return undefined;
  const { code = 'no code', details } = json(text);
  return `${answer.status} ${code} ${details?.reason ?? ''}`.trim();
}

function json(text: string): { readonly code?: string; readonly details?: { readonly reason?: string } } {
  try {
    return JSON.parse(text) as ReturnType<typeof json>;
  } catch {
    return { code: text.slice(0, 40) };
  }
}

function brokenConnection(error: unknown): string {
  const { cause } = error as { readonly cause?: { readonly code?: string; readonly message?: string } };
  return `connection: ${cause?.code ?? cause?.message ?? String(error)}`;
}

function nonceIn(proof: string | undefined): string | undefined {
  if (proof === undefined) return undefined;
  const { payload } = JSON.parse(Buffer.from(proof, 'base64').toString()) as {
    readonly payload: { readonly authorization: { readonly nonce: string } };
  };
  return payload.authorization.nonce;
}

/** Sends the same proof once more; undefined: it is delivered now. */
function collect({ request, proof = '', method }: Call): Promise<string | undefined> {
  const again = new Request(request);
  again.headers.set('payment-signature', proof);
  return fetch(again).then(
    (answer) => failureOf(answer, method),
    () => 'connection',
  );
}

/** What the calls of a run came to. */
export interface Outcome {
  readonly calls: number;
  /** As long as a call may take. */
  readonly slow: number;
  readonly failed: number;
  /** Settled, and not delivered with the first answer. */
  readonly undelivered: number;
  readonly undeliveredPosts: number;
  /** Of those, neither delivered when the same proof came again. */
  readonly lost: number;
  readonly failures: Readonly<Record<string, number>>;
}

/** Sums up, and sends the proofs of what was paid and not delivered once more. */
export async function outcomeOf(
  calls: readonly Call[],
  settled: ReadonlySet<string>,
  slowestMs: number,
): Promise<Outcome> {
  const failed = calls.filter(({ failure }) => failure !== undefined);
  const undelivered = failed.filter(({ nonce }) => nonce !== undefined && settled.has(nonce));
  const failures: Record<string, number> = {};
  for (const { failure = '', method } of failed)
    failures[`${method}: ${failure}`] = (failures[`${method}: ${failure}`] ?? 0) + 1;
  const again = await Promise.all(undelivered.map(collect));
  const lost = again.filter((failure) => failure !== undefined).length;
  return {
    ...{ calls: calls.length, slow: calls.filter(({ takes }) => takes === slowestMs).length, failed: failed.length },
    ...{
      undelivered: undelivered.length,
      undeliveredPosts: undelivered.filter(({ method }) => method === 'POST').length,
    },
    ...{ lost, failures },
  };
}
