/** The keys of a relayer with several accounts: each follows from the configured one. */

import { createHmac } from 'node:crypto';
import { bytesHex, hexBytes } from './abi-words.ts';
import { prepareKey } from './signing-key.ts';

/** The order of secp256k1 (SEC 2, 2.4.1): a private key is above zero and below it. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
/** Most accounts of one relayer, as the schema of the configuration has it. */
const MAX_RELAYERS = 32;
/** Its version is in it: another derivation would leave the gas of these accounts behind. */
const LABEL = 'acg relayer 1';

/**
 * The private keys of the accounts 0 to `count` - 1, 32 bytes as 0x-hex. Account 0 has the
 * configured key; account n the HMAC-SHA256 under it of `acg relayer 1|n|c`, where c is the first
 * number from 0 on with which the result is a private key.
 * @param privateKey 32 bytes as 0x-hex
 */
export function relayerKeys(privateKey: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => (index === 0 ? privateKey : derived(privateKey, index)));
}

/**
 * The accounts of all these keys, lower case 0x-hex, however many the configuration has now: an
 * earlier one may have had more.
 */
export async function relayerAddresses(privateKey: string, count = MAX_RELAYERS): Promise<readonly string[]> {
  const keys = await Promise.all(relayerKeys(privateKey, count).map((key) => prepareKey(key)));
  return keys.map(({ address }) => address);
}

function derived(privateKey: string, index: number): string {
  for (let counter = 0; ; counter += 1) {
    const digest = createHmac('sha256', hexBytes(privateKey)).update(`${LABEL}|${index}|${counter}`).digest();
    const key = bytesHex(digest);
    if (isPrivateKey(key)) return key;
  }
}

/** @param key 32 bytes as 0x-hex */
export function isPrivateKey(key: string): boolean {
  const number = BigInt(key);
  return number > 0n && number < ORDER;
}
