/**
 * `make demo`: starts the local world on free ports, buys one market report with the official x402
 * client and prints what happened. Exits 0 only when the merchant's balance rose by exactly the
 * price.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { formatUnits } from 'viem';
import { createBuyer } from './buyer.ts';
import { CURRENCY } from './config.ts';
import { askPrice, redeem } from './purchase.ts';
import { startWorld, type World } from './world.ts';

const RESOURCE = 'market_report';
const INPUT = '{"city":"Berlin"}';
const TOKEN_DECIMALS = 6;
/** Events are written shortly after the answer; how often and how long to look for the last one. */
const EVENTS_POLL_MS = 50;
const EVENTS_TRIES = 40;

const started = performance.now();

function print(what: string, detail: string): void {
  console.log(`${(performance.now() - started).toFixed(0).padStart(6)} ms  ${what.padEnd(12)} ${detail}`);
}

function money(units: bigint): string {
  return `${formatUnits(units, TOKEN_DECIMALS)} ${CURRENCY}`;
}

interface FeedEvent {
  readonly type: string;
  readonly at: string;
  readonly durationMs?: number;
}

/** The events of one call, oldest first; as far as they came when the last one is late. */
async function eventsOf({ gateway, adminToken }: World, requestId: string): Promise<readonly FeedEvent[]> {
  let events: readonly FeedEvent[] = [];
  for (let tries = 0; tries < EVENTS_TRIES; tries += 1) {
    const response = await fetch(`${gateway.baseUrl}/api/events?requestId=${encodeURIComponent(requestId)}`, {
      headers: { authorization: `Bearer ${adminToken}` },
    });
    if (response.status !== 200) return [];
    events = ((await response.json()) as { readonly events: readonly FeedEvent[] }).events.toReversed();
    if (events.some(({ type }) => type === 'resource.delivered')) break;
    await delay(EVENTS_POLL_MS);
  }
  return events;
}

/** One purchase, printed step by step. Resolves to the reason when something is wrong. */
async function purchase(world: World): Promise<string | undefined> {
  const { chain, gateway, payTo } = world;
  const buyer = await createBuyer(chain);
  const before = { buyer: await buyer.balance(), merchant: await chain.balanceOf(payTo) };
  print('before', `buyer ${money(before.buyer)}, merchant ${money(before.merchant)}`);

  const challenge = await askPrice(gateway.baseUrl, RESOURCE, INPUT);
  print('challenge', `402 ${challenge.message}`);
  print('', `${money(challenge.units)} to ${challenge.payTo} on ${challenge.network}`);
  const proof = await buyer.pay(challenge.paymentRequired);
  print('signature', `by ${buyer.address}, ${proof.length} characters, no gas, nothing sent yet`);
  const answer = await redeem(gateway.baseUrl, RESOURCE, INPUT, proof);
  print('answer', `${answer.status} ${answer.contentType} ${answer.body.toString()}`);
  for (const event of await eventsOf(world, answer.requestId))
    print('', `${event.at} ${event.type}${event.type === 'payment.settled' ? ` ${answer.transaction}` : ''}`);

  const after = { buyer: await buyer.balance(), merchant: await chain.balanceOf(payTo) };
  print('after', `buyer ${money(after.buyer)}, merchant ${money(after.merchant)}`);
  if (answer.status !== 200) return `the merchant's answer was ${answer.status}`;
  const gained = after.merchant - before.merchant;
  if (gained !== challenge.units) return `the merchant gained ${money(gained)}, not ${money(challenge.units)}`;
  if (before.buyer - after.buyer !== challenge.units) return 'the buyer lost another sum than the price';
  if (world.backend.requests.length !== 1) return `the merchant was called ${world.backend.requests.length} times`;
  return undefined;
}

// The exit handlers remove the key of the world; the default of a signal runs none.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

let world: World | undefined;
try {
  world = await startWorld();
  print('started', `gateway ${world.gateway.baseUrl}, merchant ${world.backend.url}, chain ${world.chain.rpcUrl}`);
  const problem = await purchase(world);
  if (problem !== undefined) throw new Error(problem);
  print('done', 'the merchant gained exactly the price, and was called once');
} catch (error) {
  console.error(`Failed: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  await world?.stop();
}
