/** Signs what `eth_account.py` beside it writes to its input. */

import { text } from 'node:stream/consumers';
import { privateKeyToAccount } from 'viem/accounts';

const { key, domain, types, message } = JSON.parse(await text(process.stdin));
const account = privateKeyToAccount(key);
const [primaryType] = Object.keys(types ?? {});
const signature =
  primaryType === undefined ? undefined : await account.signTypedData({ domain, types, primaryType, message });
process.stdout.write(JSON.stringify({ address: account.address, signature }));
