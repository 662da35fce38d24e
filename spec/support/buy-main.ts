/** Buys once in the world of `make run`; see USAGE. */
import { createBuyer } from './buyer.ts';
import { BUYING_CHANNELS } from './buying-channels.ts';
import { connectChain } from './chain.ts';

const CHANNELS = [...BUYING_CHANNELS.keys()].join(', ');
const USAGE = `usage: npm run -s buy -- <gateway URL> <chain RPC URL> <resource id> [JSON input] [${CHANNELS}] [mandate]`;

const [gateway, rpcUrl, resourceId, input = '{}', channel = 'http', mandate] = process.argv.slice(2);
const open = BUYING_CHANNELS.get(channel);
if (gateway === undefined || rpcUrl === undefined || resourceId === undefined || open === undefined) {
  console.error(open === undefined ? `${channel} is none of ${CHANNELS}\n${USAGE}` : USAGE);
  process.exitCode = 2;
} else {
  try {
    const wanted = readInput(input);
    const way = open(gateway);
    const terms = await way.ask(resourceId, wanted);
    const buyer = await createBuyer(connectChain(rpcUrl, terms.asset));
    const { ok, transaction, text } = await way.pay(
      resourceId,
      wanted,
      await buyer.pay(terms.paymentRequired),
      mandate,
    );
    const settled = transaction === '' ? 'nothing was settled' : `settled by ${transaction}`;
    console.error(`${terms.message}\n${ok ? 'delivered' : 'not delivered'} over ${channel}, ${settled}`);
    process.stdout.write(text);
    process.exitCode = ok ? 0 : 1;
  } catch (error) {
    console.error(`${resourceId} was not bought: ${reasonOf(error)}`);
    process.exitCode = 1;
  }
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
