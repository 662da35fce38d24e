/** Buys once in the world of `make run`; see USAGE. */
import { createBuyer } from './buyer.ts';
import { connectChain } from './chain.ts';
import { COUNTERS } from './counters.ts';

const FRONTS = [...COUNTERS.keys()].join(', ');
const USAGE = `usage: npm run -s buy -- <gateway URL> <chain RPC URL> <resource id> [JSON input] [${FRONTS}]`;

const [gateway, rpcUrl, resourceId, input = '{}', front = 'http'] = process.argv.slice(2);
const open = COUNTERS.get(front);
if (gateway === undefined || rpcUrl === undefined || resourceId === undefined || open === undefined) {
  console.error(open === undefined ? `${front} is none of ${FRONTS}\n${USAGE}` : USAGE);
  process.exitCode = 2;
} else {
  const counter = open(gateway);
  const wanted = JSON.parse(input) as object;
  const terms = await counter.ask(resourceId, wanted);
  const buyer = await createBuyer(connectChain(rpcUrl, terms.asset));
  const { ok, transaction, text } = await counter.pay(resourceId, wanted, await buyer.pay(terms.paymentRequired));
  console.error(`${terms.message}\n${ok ? 'delivered' : 'not delivered'} over ${front}, settled by ${transaction}`);
  process.stdout.write(text);
  process.exitCode = ok ? 0 : 1;
}
