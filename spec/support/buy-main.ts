/** Buys once in the world of `make run`: `node spec/support/buy-main.ts <gateway> <chain RPC> <resource> [JSON input]`. */
import { createBuyer } from './buyer.ts';
import { connectChain } from './chain.ts';
import { askPrice, redeem } from './purchase.ts';

const [gateway, rpcUrl, resourceId, input = '{}'] = process.argv.slice(2);
if (gateway === undefined || rpcUrl === undefined || resourceId === undefined) {
  console.error('usage: node spec/support/buy-main.ts <gateway URL> <chain RPC URL> <resource id> [JSON input]');
  process.exitCode = 2;
} else {
  const challenge = await askPrice(gateway, resourceId, input);
  const buyer = await createBuyer(connectChain(rpcUrl, challenge.asset));
  const purchase = await redeem(gateway, resourceId, input, await buyer.pay(challenge.paymentRequired));
  console.error(`${challenge.message}\n${purchase.status} ${purchase.contentType}, settled by ${purchase.transaction}`);
  process.stdout.write(purchase.body);
  process.exitCode = purchase.status < 300 ? 0 : 1;
}
