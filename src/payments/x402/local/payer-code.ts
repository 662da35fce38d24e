/** Asks which payers have code, in one call: such payers are never put into a batch. */

import type { Client, Hex } from 'viem';
import { hexWord, WORD_DIGITS } from '../evm/abi-words.ts';

/**
 * Init code that gives back, for each word behind it, the size of the code at that address. A call
 * without an address runs it, so nothing has to be deployed for it.
 */
const CODE_SIZES = [
  // Copies the words behind these 33 bytes to memory; their length stays on the stack.
  '602138038060213d39',
  // From place 0 on, as long as it is below that length:
  '3d5b81811015601d57',
  // the word there becomes the size of the code at it, and the next place follows.
  '80513b8152602001600a56',
  // Gives the memory back.
  '5b503df3',
].join('');

/** The payers that have code, in lower case. @throws when the node does not answer */
export async function payersWithCode(client: Client, payers: readonly string[]): Promise<ReadonlySet<string>> {
  const asked = [...new Set(payers.map((payer) => payer.toLowerCase()))];
  const data: Hex = `0x${CODE_SIZES}${asked.map(hexWord).join('')}`;
  const sizes = await client.request({ method: 'eth_call', params: [{ data }, 'latest'] });
  if (sizes.length !== 2 + asked.length * WORD_DIGITS) throw new Error('the node does not say which payers have code');
  return new Set(
    asked.filter((_, at) => /[1-9a-f]/.test(sizes.slice(2 + at * WORD_DIGITS, 2 + (at + 1) * WORD_DIGITS))),
  );
}
