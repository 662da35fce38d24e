/** Signs digests with one key over libsecp256k1: the same digest, the same bytes (RFC 6979). */

import { bytesHex, hexBytes } from './calldata.ts';
import { accountOf, firstThatOpens, nativeBinding } from './curve-engine.ts';

/** A signature with s in the lower half. */
interface KeySignature {
  /** r and s, 64 bytes. */
  readonly compact: Uint8Array;
  /** The parity of the curve point that r belongs to. */
  readonly recoveryId: number;
}

/** A private key and the account that it controls. */
export interface SigningKey {
  /** Lower case 0x-hex. */
  readonly address: string;
  /** @param digest 32 bytes */
  sign(digest: Uint8Array): KeySignature;
}

/** What is used of a library. Public keys are uncompressed, 65 bytes. */
interface Curve {
  publicKey(key: Uint8Array): Uint8Array | null;
  sign(digest: Uint8Array, key: Uint8Array): KeySignature;
}

/** The order of secp256k1 (SEC 2, 2.4.1): a private key is above zero and below it. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** @param key 32 bytes as 0x-hex */
export function isPrivateKey(key: string): boolean {
  const number = BigInt(key);
  return number > 0n && number < ORDER;
}

/** Best first: native libsecp256k1, the same library as WebAssembly. */
export const SIGNING_ENGINES = ['secp256k1', 'tiny-secp256k1'] as const;
type SigningEngine = (typeof SIGNING_ENGINES)[number];

const LOADERS: Readonly<Record<SigningEngine, () => Promise<Curve>>> = {
  secp256k1: loadNative,
  'tiny-secp256k1': loadWasm,
};

/**
 * The key over the best engine that loads on this machine and passes the self-test.
 * @param privateKey 32 bytes as 0x-hex
 * @throws Error when no engine does, or when it is no private key
 */
export async function prepareKey(
  privateKey: string,
  engines: readonly SigningEngine[] = SIGNING_ENGINES,
): Promise<SigningKey> {
  const open = async (engine: SigningEngine): Promise<Curve> => {
    const loaded = await LOADERS[engine]();
    selfTest(loaded);
    return loaded;
  };
  const { opened: curve } = await firstThatOpens(engines, open, 'signatures');
  const key = hexBytes(privateKey);
  return { address: addressOf(curve, key), sign: (digest) => curve.sign(digest, key) };
}

function addressOf(curve: Curve, key: Uint8Array): string {
  const publicKey = curve.publicKey(key);
  if (publicKey === null) throw new Error('not a private key');
  return accountOf(publicKey);
}

/** The part of the native addon that is used. */
interface NativeBinding {
  publicKeyCreate(key: Uint8Array, compressed: boolean): Uint8Array;
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { readonly signature: Uint8Array; readonly recid: number };
}

async function loadNative(): Promise<Curve> {
  const binding = nativeBinding() as NativeBinding;
  return {
    publicKey: (key) => binding.publicKeyCreate(key, false),
    sign(digest, key) {
      const { signature: compact, recid: recoveryId } = binding.ecdsaSign(digest, key);
      return { compact, recoveryId };
    },
  };
}

async function loadWasm(): Promise<Curve> {
  const { pointFromScalar, signRecoverable } = await import('tiny-secp256k1');
  return {
    publicKey: (key) => pointFromScalar(key, false),
    sign(digest, key) {
      const { signature: compact, recoveryId } = signRecoverable(digest, key);
      return { compact, recoveryId };
    },
  };
}

/** A throw-away key, its address, a digest and the one signature that RFC 6979 gives for it. */
const VECTOR = {
  key: `0x${'11'.repeat(32)}`,
  address: '0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a',
  digest: `0x${'22'.repeat(32)}`,
  compact:
    '0xcfd18ee918d6729134adbc61212142cf71fcf186dfc3123cfca8f7062e0fad5a703cc467d9857349ddb6e148bd1663f5050f3f6b9d788d64349c357f14eb4a5f',
  recoveryId: 0,
} as const;

function selfTest(curve: Curve): void {
  const key = hexBytes(VECTOR.key);
  const { compact, recoveryId } = curve.sign(hexBytes(VECTOR.digest), key);
  const passes =
    addressOf(curve, key) === VECTOR.address &&
    bytesHex(compact) === VECTOR.compact &&
    recoveryId === VECTOR.recoveryId;
  if (!passes) throw new Error('self-test of signing failed');
}
