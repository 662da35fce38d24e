/** Buys once in the world of `make run`; see USAGE. */

import { decodePaymentResponseHeader } from '@x402/core/http';
import { createBuyer } from './buyer.ts';
import { type Bought, BUYING_CHANNELS, type BuyingChannel } from './buying-channels.ts';
import { connectChain } from './chain.ts';
import { readChallenge } from './purchase.ts';

const CHANNELS = [...BUYING_CHANNELS.keys()].join(', ');
const USAGE = `usage: npm run -s buy -- <gateway URL> <chain RPC URL> <resource id> [JSON input] [${CHANNELS}] [mandate]
   or: npm run -s buy -- <URL of what is sold there> <chain RPC URL>`;

const [url, rpcUrl, resourceId, input = '{}', channel = 'http', mandate] = process.argv.slice(2);
const open = BUYING_CHANNELS.get(channel);
if (url === undefined || rpcUrl === undefined || open === undefined) {
  console.error(open === undefined ? `${channel} is none of ${CHANNELS}\n${USAGE}` : USAGE);
  process.exitCode = 2;
} else {
  try {
    const { ok, message, transaction, text } =
      resourceId === undefined ? await buyInPlace(url, rpcUrl) : await buyOver(open(url), rpcUrl, resourceId);
    const settled = transaction === '' ? 'nothing was settled' : `settled by ${transaction}`;
    const way = resourceId === undefined ? 'in place' : `over ${channel}`;
    console.error(`${message}\n${ok ? 'delivered' : 'not delivered'} ${way}, ${settled}`);
    process.stdout.write(text);
    process.exitCode = ok ? 0 : 1;
  } catch (error) {
    console.error(`${resourceId ?? url} was not bought: ${reasonOf(error)}`);
    process.exitCode = 1;
  }
}

/** What was bought, and the words of its challenge. */
type Purchase = Bought & { readonly message: string };

async function buyOver(way: BuyingChannel, rpc: string, resource: string): Promise<Purchase> {
  const wanted = readInput(input);
  const terms = await way.ask(resource, wanted);
  const buyer = await createBuyer(connectChain(rpc, terms.asset));
  const bought = await way.pay(resource, wanted, await buyer.pay(terms.paymentRequired), mandate);
  return { ...bought, message: terms.message };
}

/** A GET by the official client, which pays the 402 by itself. @throws Error without a 402 */
async function buyInPlace(address: string, rpc: string): Promise<Purchase> {
  const { asset, message } = await readChallenge(await fetch(address));
  const buyer = await createBuyer(connectChain(rpc, asset));
  const response = await buyer.fetch(address);
  const settled = response.headers.get('payment-response');
  const { transaction } = settled === null ? { transaction: '' } : decodePaymentResponseHeader(settled);
  return { ok: response.ok, message, transaction, text: await response.text() };
}

/** @throws Error when the text is no JSON object */
function readInput(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Reported below, with the text: quotes are easily lost in a shell.
  }
  throw new Error(`the input must be a JSON object, not ${text}`);
}

/** One line; of a failed connection the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  const why = cause instanceof Error ? cause.message || ('code' in cause ? String(cause.code) : '') : '';
  return `${message}${why === '' ? '' : ` (${why})`}`.replaceAll(/\s*\n\s*/g, ' ');
}
