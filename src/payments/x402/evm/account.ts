/** Accounts: those with published keys, the signer of a digest, and signatures of our own keys. */

import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { keccak256 } from '../../../crypto/hash.ts';
import { LOCAL_CHAIN_ID } from '../../pricing/networks.ts';
import { bytesHex, hexBytes, WORD_BYTES } from './eip3009.ts';

/**
 * Keys that anyone can read: the gateway accepts them on the local chain alone. Each row is an
 * account and the SHA-256 of its key: first the TEST buyer of `acg dev`, then the accounts of anvil
 * and hardhat ("test test … junk").
 */
const PUBLISHED: ReadonlyMap<string, string> = new Map([
  ['0x2B71e151d846a82EEb185e24947B4AE108F6B388', 'e32cc619a8bd280cbbbc9a79aa983b6914590940d56807970695585a7e57a80b'],
  ['0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', '59891c96881dfbcf7d2ddc270b7813e666694fbbffe8ddd2736bf91c1b0e85d4'],
  ['0x70997970C51812dc3A010C7d01b50e0d17dc79C8', 'bca4c2c0761d850f0c403a699280f70f86ab6659a611ada431019203cd66098f'],
  ['0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC', '193ae84c4c9567c25105535802f463f3f8dc420b0ce9a5b57c7931c764e623d6'],
  ['0x90F79bf6EB2c4f870365E785982E1f101E93b906', 'e25a680eff8baac7b15129a830ecc40211017919d5d32fce8c6b409af753e50f'],
  ['0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65', '6718ba8966161cc843e01e8d19f018859e1bcba7f0e8f2c108578b497ac408b7'],
  ['0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc', 'ac29b3735d1b57180dea890d6321cd27e593723cbe9e227eed8a3fa35945122c'],
  ['0x976EA74026E726554dB657fA54763abd0C3a0aa9', '93e372c67f7238faf2dfdc029246b299e88d71937680cbb895fedeb2a262ed19'],
  ['0x14dC79964da2C08b23698B3D3cc7Ca32193d9955', '59ad99d565557cc0968550ed2f5ea5ff5fd1d279324a25d324a531053c9c16a3'],
  ['0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f', '2d1831e800ec18fe3e29da2e4357db936efce5b9792d76683d465582f0910db0'],
  ['0xa0Ee7A142d267C1f36714E4a8F75612F20a79720', '25061aad2bb0917814989eb38f95608a744ecb8173fdce329486e8b83086e5f0'],
  ['0xBcd4042DE499D14e55001CcbB24a551F3b954096', 'ea72a3e7d4937af3e138d48889290ace71d6fa2c9846509efee3ff2483fbc8da'],
  ['0x71bE63f3384f5fb98995898A86B02Fb2426c5788', 'e77b7f2257fe244cec79340345d2044069e5544129acce4947388e67a6b26200'],
  ['0xFABB0ac9d68B0B445fB7357272Ff202C5651694a', '3d10abbc9c3e287bd2c89cd83cf1849b9368352fe9318823bb25cafd0aa23fbd'],
  ['0x1CBd3b2770909D4e10f157cABC84C7264073C9Ec', '6503803831c946cdadd00c0116828972f5dcdffa5f2417ea136f75eba8a58859'],
  ['0xdF3e18d64BC6A983f673Ab319CCaE4f1a57C7097', '74f97a55058da1bab0311ae9d2530606fd1aed2612b552886a4163a290633b63'],
  ['0xcd3B766CCDd6AE721141F452C550Ca635964ce71', 'b8acf5d5eb4e7fd0b086cc02be9efbb57ced88c3528e151565341e685753cbee'],
  ['0x2546BcD3c84621e976D8185a91A922aE77ECEc30', 'a9c85ef9ebbbe0685ca5c740e814b69797a557e0bdabd24e7363b2c72fa3f929'],
  ['0xbDA5747bFD65F08deb54cb465eB87D40e51B197E', 'c188a572f30c631c29864a510a25759a260e95a52df2f83b89c64436411a5de2'],
  ['0xdD2FD4581271e230360230F9337D5c0430Bf44C0', 'ac70e04ef12b755b829661e0f57bd3349f0f006536b739f154212be4c1a7191f'],
  ['0x8626f6940E2eb28930eFb4CeF49B2d1F2C9C1199', 'fd375fcf38ac71dd90e0ff16ae924cd13bd9dd120a8b6135b3e63b87b8ff532f'],
]);
const ACCOUNTS: ReadonlySet<string> = new Set([...PUBLISHED.keys()].map((account) => account.toLowerCase()));
const KEY_DIGESTS: ReadonlySet<string> = new Set(PUBLISHED.values());

/** Whether anyone can sign for this account, on a chain other than the local one. */
export function isPublishedAccount(account: string, chainId: number): boolean {
  return chainId !== LOCAL_CHAIN_ID && ACCOUNTS.has(account.toLowerCase());
}

/** Whether anyone knows this key (32 bytes as 0x-hex), on a chain other than the local one. */
export function isPublishedKey(privateKey: string, chainId: number): boolean {
  if (chainId === LOCAL_CHAIN_ID) return false;
  return KEY_DIGESTS.has(createHash('sha256').update(hexBytes(privateKey)).digest('hex'));
}

/** Order of the group of secp256k1 (SEC 2, 2.4.1). */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
/** Tokens refuse an s above it: each signature has a second form with the other s. */
const HALF_ORDER = ORDER / 2n;
/** r, s and v of an account's signature. */
export const ACCOUNT_SIGNATURE_BYTES = 65;
const HEX_PREFIX = 2;
const R_END = HEX_PREFIX + 64;
const S_END = R_END + 64;
/** Added to the recovery id it makes v; some signers write the bare id instead. */
const V_OFFSET = 27;

/** A private key is above zero and below the order. @param key 32 bytes as 0x-hex */
export function isPrivateKey(key: string): boolean {
  const number = BigInt(key);
  return number > 0n && number < ORDER;
}

/** A signature with s in the lower half. */
interface CurveSignature {
  /** r and s, 64 bytes. */
  readonly compact: Uint8Array;
  /** The parity of the curve point that r belongs to. */
  readonly recoveryId: number;
}

/** A signature that an account can have made: r and s in range, s low. */
interface AccountSignature extends CurveSignature {
  readonly recoveryId: 0 | 1;
  /** The spelling the chain accepts: 0x-hex of r, s and v as 27 or 28, lower case. */
  readonly canonical: string;
}

/**
 * Reads a 65-byte signature (0x-hex, checked by the parser). Undefined when no account can have
 * made it: another length, r or s zero or not below the order, s in the upper half, v other than
 * 27, 28 or their bare forms 0, 1.
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

/** Native libsecp256k1 first, then the same library as WebAssembly, which every machine runs. */
export const CURVE_ENGINES = ['secp256k1', 'tiny-secp256k1'] as const;
type CurveEngine = (typeof CURVE_ENGINES)[number];

/** The functions that a library has to offer. Public keys are uncompressed, 65 bytes. */
interface Curve {
  publicKey(key: Uint8Array): Uint8Array | null;
  /** Gives the same bytes for the same digest (RFC 6979). */
  sign(digest: Uint8Array, key: Uint8Array): CurveSignature;
  /** Null, or an error, where r is no point of the curve. */
  recover(digest: Uint8Array, signature: CurveSignature): Uint8Array | null;
}

/** The part of the native addon that is used. */
interface NativeBinding {
  publicKeyCreate(key: Uint8Array, compressed: boolean): Uint8Array;
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { readonly signature: Uint8Array; readonly recid: number };
  ecdsaRecover(signature: Uint8Array, recoveryId: number, digest: Uint8Array, compressed: boolean): Uint8Array;
}

const LOADERS: Readonly<Record<CurveEngine, () => Promise<Curve>>> = {
  async secp256k1() {
    // The package's main entry would silently fall back to a slow script with known faults.
    const binding = createRequire(import.meta.url)('secp256k1/bindings.js') as NativeBinding;
    return {
      publicKey: (key) => binding.publicKeyCreate(key, false),
      sign(digest, key) {
        const { signature: compact, recid: recoveryId } = binding.ecdsaSign(digest, key);
        return { compact, recoveryId };
      },
      recover: (digest, { compact, recoveryId }) => binding.ecdsaRecover(compact, recoveryId, digest, false),
    };
  },
  async 'tiny-secp256k1'() {
    const { pointFromScalar, signRecoverable, recover } = await import('tiny-secp256k1');
    return {
      publicKey: (key) => pointFromScalar(key, false),
      sign(digest, key) {
        const { signature: compact, recoveryId } = signRecoverable(digest, key);
        return { compact, recoveryId };
      },
      recover: (digest, { compact, recoveryId }) => recover(digest, compact, recoveryId === 1 ? 1 : 0, false),
    };
  },
};

/**
 * The best engine that loads on this machine and passes the self-test.
 * @throws AggregateError with the cause of each, when none does: a broken installation
 */
async function openCurve(engines: readonly CurveEngine[]): Promise<{ readonly engine: CurveEngine; curve: Curve }> {
  const causes: unknown[] = [];
  for (const engine of engines) {
    try {
      const curve = await LOADERS[engine]();
      selfTest(curve);
      return { engine, curve };
    } catch (cause) {
      causes.push(cause);
    }
  }
  throw new AggregateError(causes, 'no engine for signatures of accounts');
}

/** The signer's address in lower case; undefined when the signature belongs to no key. */
export type Recover = (digest: Uint8Array, signature: CurveSignature) => string | undefined;

/** Recovers signers with the best engine. @throws AggregateError when none works */
export async function prepareRecovery(
  engines: readonly CurveEngine[] = CURVE_ENGINES,
): Promise<{ readonly engine: CurveEngine; readonly recover: Recover }> {
  const { engine, curve } = await openCurve(engines);
  return { engine, recover: (digest, signature) => signerOf(curve, digest, signature) };
}

function signerOf(curve: Curve, digest: Uint8Array, signature: CurveSignature): string | undefined {
  try {
    const key = curve.recover(digest, signature);
    return key === null ? undefined : accountOf(key);
  } catch {
    // The native engine throws where r is no point of the curve: no key signed this.
    return undefined;
  }
}

/** A private key and the account that it controls. */
export interface SigningKey {
  /** Lower case 0x-hex. */
  readonly address: string;
  /** @param digest 32 bytes */
  sign(digest: Uint8Array): CurveSignature;
}

/**
 * A key over the best engine.
 * @param privateKey 32 bytes as 0x-hex
 * @throws AggregateError when no engine works, Error when it is no private key
 */
export async function prepareKey(
  privateKey: string,
  engines: readonly CurveEngine[] = CURVE_ENGINES,
): Promise<SigningKey> {
  const { curve } = await openCurve(engines);
  const key = hexBytes(privateKey);
  return { address: addressOf(curve, key), sign: (digest) => curve.sign(digest, key) };
}

function addressOf(curve: Curve, key: Uint8Array): string {
  const publicKey = curve.publicKey(key);
  if (publicKey === null) throw new Error('not a private key');
  return accountOf(publicKey);
}

/** The account of a public key: 65 bytes, uncompressed. Lower case 0x-hex. */
function accountOf(publicKey: Uint8Array): string {
  return bytesHex(keccak256(publicKey.subarray(1)).subarray(12));
}

/** A throw-away key, its address, and two digests with their signatures (RFC 6979), by parity. */
const TEST_KEY = `0x${'11'.repeat(32)}`;
const TEST_ADDRESS = '0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a';
const VECTORS = [
  [
    `0x${'22'.repeat(32)}`,
    '0xcfd18ee918d6729134adbc61212142cf71fcf186dfc3123cfca8f7062e0fad5a703cc467d9857349ddb6e148bd1663f5050f3f6b9d788d64349c357f14eb4a5f',
    0,
  ],
  [
    `0x${'55'.repeat(32)}`,
    '0xfe2e74825b0aa19bab059e3fc436327a37afa1727e05773bd0bd55d0511339222bfd4bd9ccede4ed984dbe6705953c1ba09afe2bd7e1f02c6d5927d0af353f34',
    1,
  ],
] as const;
/** Signed by no key: its r is no point of the curve. */
const NO_POINT = `0x${'5'.padStart(64, '0')}${'1'.padStart(64, '0')}`;

/** @throws Error where the results of the engine differ from the vectors */
function selfTest(curve: Curve): void {
  const key = hexBytes(TEST_KEY);
  const passes = VECTORS.map(([digest, compact, recoveryId]) => {
    const signed = curve.sign(hexBytes(digest), key);
    return (
      bytesHex(signed.compact) === compact &&
      signed.recoveryId === recoveryId &&
      signerOf(curve, hexBytes(digest), { compact: hexBytes(compact), recoveryId }) === TEST_ADDRESS
    );
  });
  const noSigner = signerOf(curve, hexBytes(TEST_KEY), { compact: hexBytes(NO_POINT), recoveryId: 0 });
  if (addressOf(curve, key) !== TEST_ADDRESS || passes.includes(false) || noSigner !== undefined)
    throw new Error('self-test of the curve failed');
}

/** The envelope's type (EIP-2718). */
const TYPE = Uint8Array.of(2);
/** Strings and lists up to this length have it in their first byte. */
const SHORT = 55;
const STRING = 0x80;
const LIST = 0xc0;
const NO_BYTES = new Uint8Array();
/** The value of a transaction, which moves no coin, and its access list, which is empty. */
const NOTHING = rlpString(NO_BYTES);
const NO_LIST = rlpList([]);

/** The most that one unit of gas may cost, wei. */
export interface Fees {
  /** The part of `maxFeePerGas` that the block producer may get. */
  readonly maxPriorityFeePerGas: bigint;
  readonly maxFeePerGas: bigint;
}

/** A call from an account, before it is signed. */
interface UnsignedTransaction extends Fees {
  readonly chainId: number;
  /** The nonce: how many transactions the account made before. */
  readonly number: number;
  /** 0x-hex. */
  readonly to: string;
  /** 0x-hex. */
  readonly data: string;
  /** Gas limit. */
  readonly gas: bigint;
}

/** The signed bytes and their hash, known before anything is sent. */
export function signTransaction(
  transaction: UnsignedTransaction,
  key: SigningKey,
): { readonly raw: string; readonly hash: string } {
  const { chainId, number, maxPriorityFeePerGas, maxFeePerGas, gas, to, data } = transaction;
  const numbers = [BigInt(chainId), BigInt(number), maxPriorityFeePerGas, maxFeePerGas, gas].map(rlpNumber);
  const members = [...numbers, rlpString(hexBytes(to)), NOTHING, rlpString(hexBytes(data)), NO_LIST];
  const { compact, recoveryId } = key.sign(keccak256(Buffer.concat([TYPE, rlpList(members)])));
  const [r, s] = [compact.subarray(0, WORD_BYTES), compact.subarray(WORD_BYTES)];
  const signature = [rlpNumber(BigInt(recoveryId)), rlpString(withoutZeros(r)), rlpString(withoutZeros(s))];
  const signed = Buffer.concat([TYPE, rlpList([...members, ...signature])]);
  return { raw: bytesHex(signed), hash: bytesHex(keccak256(signed)) };
}

/** Without leading zeros; zero is the empty string. */
function rlpNumber(value: bigint): Uint8Array {
  const digits = value === 0n ? '' : value.toString(16);
  return rlpString(Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex'));
}

function withoutZeros(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0);
  return first === -1 ? NO_BYTES : bytes.subarray(first);
}

function rlpString(bytes: Uint8Array): Uint8Array {
  const [only] = bytes;
  return bytes.length === 1 && only !== undefined && only < STRING
    ? bytes
    : Buffer.concat([rlpHead(bytes.length, STRING), bytes]);
}

function rlpList(items: readonly Uint8Array[]): Uint8Array {
  const length = items.reduce((sum, item) => sum + item.length, 0);
  return Buffer.concat([rlpHead(length, LIST), ...items]);
}

function rlpHead(length: number, kind: number): Uint8Array {
  if (length <= SHORT) return Uint8Array.of(kind + length);
  const digits = length.toString(16);
  const size = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
  return Buffer.concat([Uint8Array.of(kind + SHORT + size.length), size]);
}
