import { randomBytes } from 'node:crypto';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { prepareRecovery } from '../../../src/payments/x402/evm/account.ts';
import { domainSeparator } from '../../../src/payments/x402/evm/eip3009.ts';
import { createExaminer } from '../../../src/payments/x402/verify/verify.ts';
import { type AllAccepts, requirementsFor } from '../../../src/payments/x402/wire/challenge.ts';
import { decodeProof, encodeProof } from '../../../src/payments/x402/wire/proof.ts';
import type { X402Config } from '../../../src/payments/x402/wire/settings.ts';
import type {
  Eip3009Authorization,
  PaymentPayload,
  PaymentRequirements,
  Proof,
} from '../../../src/payments/x402/wire/types.ts';

/** Payers of the tests, with viem as the independent signer. Fresh keys only. */

const AUTHORIZATION_TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;

export const RESOURCE_URL = 'https://shop.example/api/resources/report/invoke';
/** 0.01 of a token with six decimals. */
export const PRICE_UNITS = 10_000n;

export type Terms = Pick<
  X402Config,
  | 'network'
  | 'chainId'
  | 'asset'
  | 'assetName'
  | 'assetVersion'
  | 'assetDecimals'
  | 'payTo'
  | 'maxTimeoutSeconds'
  | 'localSignatureCheck'
  | 'domainSeparator'
>;

export function freshAddress(): `0x${string}` {
  return `0x${randomBytes(20).toString('hex')}`;
}

export function freshAccount(): PrivateKeyAccount {
  return privateKeyToAccount(generatePrivateKey());
}

/** Terms of a gateway; by default for an asset that is not deployed. */
export function termsFor(
  token: { readonly address: string; readonly name: string; readonly version: string } = {
    address: freshAddress(),
    name: 'Test USD',
    version: '2',
  },
  chainId = 31337,
): Terms {
  const { address, name, version } = token;
  return {
    network: `eip155:${chainId}`,
    chainId,
    asset: address,
    assetName: name,
    assetVersion: version,
    assetDecimals: 6,
    payTo: freshAddress(),
    maxTimeoutSeconds: 120,
    localSignatureCheck: true,
    domainSeparator: domainSeparator({ name, version, chainId, verifyingContract: address }),
  };
}

/** An entry of `payments.x402` with these terms, behind a facilitator that does not answer. */
export function entryOf(terms: Terms, changes: Partial<X402Config> = {}): X402Config {
  return {
    ...terms,
    mode: 'local',
    currencies: [terms.assetName],
    offered: true,
    rpcUrls: [],
    facilitator: { mode: 'remote', url: 'http://127.0.0.1:9', auth: { type: 'none' }, fallbacks: [] },
    confirm: 'receipt',
    confirmations: 1,
    buyerTokenSecrets: [],
    keepAnswerSeconds: 60,
    payToExclusive: true,
    onStoreLoss: 'deliver',
    ...changes,
  };
}

export function offerFor(terms: Terms): PaymentRequirements {
  return requirementsFor(PRICE_UNITS, undefined, terms);
}

/** The entries of `accepts` of a 402 with this offer alone. */
export function acceptsOf(terms: Terms): AllAccepts {
  return [{ requirements: offerFor(terms), amount: '0.01', currency: 'TUSD' }];
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}

/** An authorization for this offer that is valid now. */
export function authorize(
  from: string,
  offer: PaymentRequirements,
  changes: Partial<Eip3009Authorization> = {},
): Eip3009Authorization {
  return {
    from,
    to: offer.payTo,
    value: offer.amount,
    validAfter: '0',
    validBefore: String(nowSeconds() + offer.maxTimeoutSeconds),
    nonce: `0x${randomBytes(32).toString('hex')}`,
    ...changes,
  };
}

/** The EIP-712 document of an authorization, for a general library. */
export function typedData({ from, to, value, validAfter, validBefore, nonce }: Eip3009Authorization, terms: Terms) {
  return {
    domain: {
      name: terms.assetName,
      version: terms.assetVersion,
      chainId: terms.chainId,
      verifyingContract: terms.asset as `0x${string}`,
    },
    types: AUTHORIZATION_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: from as `0x${string}`,
      to: to as `0x${string}`,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce: nonce as `0x${string}`,
    },
  } as const;
}

export async function sign(
  account: PrivateKeyAccount,
  authorization: Eip3009Authorization,
  terms: Terms,
): Promise<`0x${string}`> {
  return account.signTypedData(typedData(authorization, terms));
}

/** A payload as a client would send it. */
export async function payloadFor(
  account: PrivateKeyAccount,
  terms: Terms,
  changes: Partial<Eip3009Authorization> = {},
): Promise<PaymentPayload> {
  const offer = offerFor(terms);
  const authorization = authorize(account.address, offer, changes);
  return {
    x402Version: 2,
    resource: { url: RESOURCE_URL },
    accepted: offer,
    payload: { signature: await sign(account, authorization, terms), authorization },
  };
}

/** For an examiner without a chain, and with a rail that must not be asked. */
export const CHECKED_HERE = {
  wallets: undefined,
  verifyByRail: () => Promise.reject(new Error('signatures are checked here')),
} as const;

/** A proof that passed our own local checks, as the rails get it. */
export async function genuineProof(
  account: PrivateKeyAccount,
  terms: Terms,
  changes: Partial<Eip3009Authorization> = {},
): Promise<Proof> {
  const decoded = decodeProof(encodeProof(await payloadFor(account, terms, changes)));
  if (decoded.kind === 'unreadable') throw new Error(decoded.reason);
  const { recover } = await prepareRecovery();
  const examine = createExaminer({ terms, recover, ...CHECKED_HERE });
  const verdict = await examine({
    decoded,
    offer: offerFor(terms),
    resourceUrl: RESOURCE_URL,
    nowMs: Date.now(),
  }).checkSignature();
  if (verdict.kind !== 'genuine') throw new Error('the fixture is not genuine');
  return verdict.proof;
}

/** Order of the group of secp256k1. */
export const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** A signature with v as a bare recovery id. */
export function bareV(signature: string): string {
  return `${signature.slice(0, -2)}0${signature.endsWith('1b') ? 0 : 1}`;
}

/** A signature with the other parity. */
export function otherV(signature: string): string {
  return `${signature.slice(0, -2)}${signature.endsWith('1b') ? '1c' : '1b'}`;
}

/** The second signature for the same message: the negated s, and the other parity. */
export function highS(signature: string): string {
  const s = (ORDER - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0');
  return otherV(`${signature.slice(0, 66)}${s}${signature.slice(130)}`);
}
