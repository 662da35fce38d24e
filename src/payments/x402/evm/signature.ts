/** Signatures of accounts: their canonical spelling, and the recovery of the signer's address. */

import { hexBytes } from './calldata.ts';
import { accountOf, firstThatOpens, nativeBinding } from './curve-engine.ts';

/** Order of the group of secp256k1. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
/** Above it a second signature exists for the same message; tokens refuse those. */
const HALF_ORDER = ORDER / 2n;
/** r, s and v of an account's signature. */
export const ACCOUNT_SIGNATURE_BYTES = 65;
const HEX_PREFIX = 2;
const R_END = HEX_PREFIX + 64;
const S_END = R_END + 64;
/** v as tokens want it; some signers write the bare recovery id instead. */
const V_OFFSET = 27;

/** A signature that an account can have made: r and s in range, s low. */
interface AccountSignature {
  /** r and s, 64 bytes. */
  readonly compact: Uint8Array;
  readonly recoveryId: 0 | 1;
  /** The spelling the chain accepts: 0x-hex of r, s and v as 27 or 28, lower case. */
  readonly canonical: string;
}

/**
 * Reads a 65-byte signature (0x-hex, checked by the codec). Undefined when no account can have made
 * it: another length, r or s zero or not below the order, s in the upper half, v other than 27, 28
 * or their bare forms 0, 1.
 */
export function readAccountSignature(signature: string): AccountSignature | undefined {
  if (signature.length !== HEX_PREFIX + 2 * ACCOUNT_SIGNATURE_BYTES) return undefined;
  const r = BigInt(signature.slice(0, R_END));
  const s = BigInt(`0x${signature.slice(R_END, S_END)}`);
  const recoveryId = recoveryIdOf(Number.parseInt(signature.slice(S_END), 16));
  if (r === 0n || r >= ORDER || s === 0n || s > HALF_ORDER || recoveryId === undefined) return undefined;
  const rs = signature.slice(0, S_END).toLowerCase();
  return { compact: hexBytes(rs), recoveryId, canonical: canonicalSignature(rs, recoveryId) };
}

/** The spelling that the chain accepts. @param rs r and s, 64 bytes as 0x-hex in lower case */
export function canonicalSignature(rs: string, recoveryId: number): string {
  return `${rs}${(V_OFFSET + recoveryId).toString(16)}`;
}

function recoveryIdOf(v: number): 0 | 1 | undefined {
  if (v === 0 || v === V_OFFSET) return 0;
  return v === 1 || v === V_OFFSET + 1 ? 1 : undefined;
}

/** The signer's address in lower case; undefined when the signature belongs to no key. */
export type Recover = (digest: Uint8Array, signature: AccountSignature) => Promise<string | undefined>;

/** Best first: native libsecp256k1, the same library as WebAssembly, JavaScript. */
export const RECOVERY_ENGINES = ['secp256k1', 'tiny-secp256k1', 'viem'] as const;

export type RecoveryEngine = (typeof RECOVERY_ENGINES)[number];

interface Recovery {
  readonly engine: RecoveryEngine;
  readonly recover: Recover;
}

/** The public key of a signature: 65 bytes, uncompressed. */
type RecoverKey = (digest: Uint8Array, signature: AccountSignature) => Uint8Array | undefined | Promise<Uint8Array>;

const LOADERS: Readonly<Record<RecoveryEngine, () => Promise<RecoverKey>>> = {
  secp256k1: loadNative,
  'tiny-secp256k1': loadWasm,
  viem: loadScript,
};

/**
 * The best engine that loads on this machine and passes the self-test.
 * @throws Error when none does, which is a broken installation
 */
export async function prepareRecovery(engines: readonly RecoveryEngine[] = RECOVERY_ENGINES): Promise<Recovery> {
  const open = async (engine: RecoveryEngine): Promise<Recover> => {
    const recover = addressOf(await LOADERS[engine]());
    await selfTest(recover);
    return recover;
  };
  const { engine, opened: recover } = await firstThatOpens(engines, open, 'signature recovery');
  return { engine, recover };
}

function addressOf(recoverKey: RecoverKey): Recover {
  return async function recover(digest, signature) {
    try {
      const key = await recoverKey(digest, signature);
      return key === undefined ? undefined : accountOf(key);
    } catch {
      // Engines throw where r is no point of the curve: no key signed this.
      return undefined;
    }
  };
}

/** The part of the native addon that is used. */
interface NativeBinding {
  ecdsaRecover(signature: Uint8Array, recoveryId: number, digest: Uint8Array, compressed: boolean): Uint8Array;
}

async function loadNative(): Promise<RecoverKey> {
  const binding = nativeBinding() as NativeBinding;
  return (digest, { compact, recoveryId }) => binding.ecdsaRecover(compact, recoveryId, digest, false);
}

async function loadWasm(): Promise<RecoverKey> {
  const { recover } = await import('tiny-secp256k1');
  return (digest, { compact, recoveryId }) => recover(digest, compact, recoveryId, false) ?? undefined;
}

async function loadScript(): Promise<RecoverKey> {
  const { recoverPublicKey } = await import('viem/utils');
  return async (digest, { canonical }) =>
    hexBytes(await recoverPublicKey({ hash: digest, signature: canonical as `0x${string}` }));
}

/** Vectors with throw-away keys: both parities, and an r that is no point of the curve. */
const VECTORS: readonly (readonly [digest: string, signature: string, address: string | undefined])[] = [
  [
    '0xd23738cc4f53af8db002686a0c41d0f549fbc2251c5347b6f09365aed8154875',
    '0x0e99e1cce8b889de633e7a451e5e09df4da4bfb6d1793ebe2717969f3ab121c4739f192971adcc2f687ac76985b30ab910541c95ff4300499ebe9f627d7c6ab61b',
    '0x488890a40d125fb403498a627a318ba08908837a',
  ],
  [
    '0x01b114be9de46f8d082f485ee599f8ca33a3d1bc636e018066afb620560f1592',
    '0xb22af5525a51ead54d6811f5d71e8725d429f8e679294d7f1b140dd3e17623de2d1c96def1fab88dc4162b0297c9007df9582b4bcdf2036fea384eb6ba76e9091c',
    '0x488890a40d125fb403498a627a318ba08908837a',
  ],
  [`0x${'11'.repeat(32)}`, `0x${'5'.padStart(64, '0')}${'1'.padStart(64, '0')}1b`, undefined],
];

async function selfTest(recover: Recover): Promise<void> {
  for (const [digest, signature, address] of VECTORS) {
    const read = readAccountSignature(signature);
    const found = read === undefined ? undefined : await recover(hexBytes(digest), read);
    if (read === undefined || found !== address) throw new Error('self-test of signature recovery failed');
  }
}
