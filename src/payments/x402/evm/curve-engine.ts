/** The libraries for the curve of accounts: how one is chosen, and the address of a public key. */

import { createRequire } from 'node:module';
import { keccak256 } from '../../../crypto/keccak.ts';
import { bytesHex } from './calldata.ts';

/**
 * The first engine that opens: it loads on this machine and passes its self-test.
 * @throws AggregateError with the cause of each, when none does: a broken installation
 */
export async function firstThatOpens<Engine, Opened>(
  engines: readonly Engine[],
  open: (engine: Engine) => Promise<Opened>,
  what: string,
): Promise<{ readonly engine: Engine; readonly opened: Opened }> {
  const causes: unknown[] = [];
  for (const engine of engines) {
    try {
      return { engine, opened: await open(engine) };
    } catch (cause) {
      causes.push(cause);
    }
  }
  throw new AggregateError(causes, `no engine for ${what}`);
}

/**
 * The native addon of libsecp256k1. The package's main entry would silently fall back to a slow
 * script with known faults. @throws Error where it has none for this machine
 */
export function nativeBinding(): unknown {
  return createRequire(import.meta.url)('secp256k1/bindings.js');
}

/** The account of a public key: 65 bytes, uncompressed. Lower case 0x-hex. */
export function accountOf(publicKey: Uint8Array): string {
  return bytesHex(keccak256(publicKey.subarray(1)).subarray(12));
}
