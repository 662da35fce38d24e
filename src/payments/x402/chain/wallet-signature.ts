/** Asks wallets that are contracts whether they signed (ERC-1271, ERC-6492), by simulated calls. */

import { bytesWords, hexWord, uintWord, WORD_BYTES, WORD_DIGITS } from '../evm/abi-words.ts';
import { quantity, readHex } from './chain-answers.ts';
import { type Rpc, RpcRefusal } from './rpc.ts';

/** `isValidSignature(bytes32,bytes)`, and what a wallet that signed returns (ERC-1271). */
const IS_VALID_SIGNATURE = '0x1626ba7e';
/** The suffix of a signature for a wallet that may not be deployed yet (ERC-6492). */
const WRAPPED = '6492'.repeat(WORD_BYTES / 2);
/** What the validator of ERC-6492 returns for a good signature. */
const VALID = '0x01';
/** Gas of a question: passkeys verified in bytecode need the most, about 0.4 million. */
const ASK_GAS = 1_000_000n;
/** The same when the wallet is deployed first. */
const DEPLOY_AND_ASK_GAS = 5_000_000n;
const NOT_SIGNED = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature' } as const;
const NOT_DEPLOYED = { kind: 'refused', reason: 'eip6492_factory_not_allowed' } as const;
/** How long an account is known to be a contract, milliseconds (contract 4.2). */
export const CODE_TTL_MS = 600_000;

/**
 * How long it is known to be none: its first payment may deploy it, and a second follow at once.
 */
export const NO_CODE_TTL_MS = 5_000;
/** Most remembered accounts; the oldest answer goes first. */
const CODE_CACHE_ENTRIES = 10_000;
/** Most concurrent lookups: forged proofs with invented payers must not use up the RPC. */
export const CODE_LOOKUPS = 16;

type WalletRefusal = 'invalid_exact_evm_payload_signature' | 'eip6492_factory_not_allowed';

export type WalletVerdict =
  /** `signature`: as the asset takes it. */
  | { readonly kind: 'signed'; readonly signature: string }
  | { readonly kind: 'refused'; readonly reason: WalletRefusal };

/** Asks a contract whether it signed, by simulation: nothing is sent or changed. */
export interface WalletSignatures {
  /** All 0x-hex. @throws when the node does not answer */
  check(wallet: string, digest: string, signature: string): Promise<WalletVerdict>;
}

interface WalletSignatureDeps {
  readonly rpc: Pick<Rpc, 'call'>;
  /** Whether an account is a contract; rejects when the chain does not answer. */
  readonly hasCode: (address: string) => Promise<boolean>;
  /**
   * Whether the rail deploys a wallet before it pays (ERC-6492). Our own relayer does not: it would
   * call a contract of the payer's choice (x402 3.2).
   */
  readonly deploysWallets: boolean;
}

export function createWalletSignatures({ rpc, hasCode, deploysWallets }: WalletSignatureDeps): WalletSignatures {
  /** Undefined: the call reverted. */
  const simulated = async (call: { readonly to?: string; readonly data: string }, gas: bigint) => {
    try {
      const answer = await rpc.call('eth_call', [{ ...call, gas: quantity(gas) }, 'latest']);
      return readHex(answer, 'call result');
    } catch (error) {
      if (error instanceof RpcRefusal && error.reverted) return undefined;
      throw error;
    }
  };
  const isSigned = async (wallet: string, digest: string, signature: string): Promise<boolean> => {
    const data = `${IS_VALID_SIGNATURE}${hexWord(digest)}${uintWord(64n)}${bytesWords(signature)}`;
    const answer = await simulated({ to: wallet, data }, ASK_GAS);
    return answer === `${IS_VALID_SIGNATURE}${'0'.repeat(56)}`;
  };
  const wouldBeSigned = async (wallet: string, digest: string, wrapped: string): Promise<boolean> => {
    const members = `${hexWord(wallet)}${hexWord(digest)}${uintWord(96n)}${bytesWords(wrapped)}`;
    return (await simulated({ data: `${WALLET_VALIDATOR}${members}` }, DEPLOY_AND_ASK_GAS)) === VALID;
  };

  return {
    async check(wallet, digest, signature) {
      const wrapped = signature.endsWith(WRAPPED);
      if (await hasCode(wallet)) {
        // A deployed wallet does not need its wrapper, and the asset does not know it.
        const inner = wrapped ? innerSignature(signature) : signature;
        if (inner === undefined || !(await isSigned(wallet, digest, inner))) return NOT_SIGNED;
        return { kind: 'signed', signature: inner };
      }
      if (!wrapped) return NOT_SIGNED;
      if (!deploysWallets) return NOT_DEPLOYED;
      return (await wouldBeSigned(wallet, digest, signature)) ? { kind: 'signed', signature } : NOT_SIGNED;
    },
  };
}

/** The third member of `abi.encode(address factory, bytes call, bytes signature)` in a wrapper. */
function innerSignature(wrapped: string): string | undefined {
  const digits = wrapped.slice(2, -WRAPPED.length);
  const offset = numberAt(digits, 2 * WORD_BYTES);
  const length = offset === undefined ? undefined : numberAt(digits, offset);
  if (offset === undefined || length === undefined || length === 0) return undefined;
  const start = 2 * (offset + WORD_BYTES);
  const inner = digits.slice(start, start + 2 * length);
  return inner.length === 2 * length ? `0x${inner}` : undefined;
}

/** The word at an offset as a number; undefined when it can be no offset or length here. */
function numberAt(digits: string, offset: number): number | undefined {
  const word = digits.slice(2 * offset, 2 * (offset + WORD_BYTES));
  if (word.length !== WORD_DIGITS) return undefined;
  const number = BigInt(`0x${word}`);
  return number <= BigInt(digits.length) ? Number(number) : undefined;
}

type HasCode = (address: string) => Promise<boolean>;

/**
 * `lookup` with a memory and a bound, one call per account at a time. Rejects when the chain fails
 * or the bound is reached.
 */
export function rememberCode(lookup: HasCode, now: () => number = Date.now): HasCode {
  const known = new Map<string, { readonly hasCode: boolean; readonly until: number }>();
  const asking = new Map<string, Promise<boolean>>();
  const remember = (address: string, hasCode: boolean): void => {
    const oldest = known.size >= CODE_CACHE_ENTRIES ? known.keys().next().value : undefined;
    if (oldest !== undefined) known.delete(oldest);
    known.set(address, { hasCode, until: now() + (hasCode ? CODE_TTL_MS : NO_CODE_TTL_MS) });
  };
  const ask = async (address: string): Promise<boolean> => {
    try {
      const hasCode = await lookup(address);
      remember(address, hasCode);
      return hasCode;
    } finally {
      asking.delete(address);
    }
  };
  return async function hasCode(address) {
    const cached = known.get(address);
    if (cached !== undefined && now() < cached.until) return cached.hasCode;
    const running = asking.get(address);
    if (running !== undefined) return running;
    if (asking.size >= CODE_LOOKUPS) throw new Error('too many questions about payers at a time');
    known.delete(address);
    const question = ask(address);
    asking.set(address, question);
    return question;
  };
}

/**
 * Creation code of the validator that ERC-6492 publishes (`ValidateSigOffchain`, CC0). Run as a
 * call without an address, it deploys the wallet as its wrapper states, asks it about the
 * signature, and returns 0x01 when it signed. Arguments follow the code.
 */
export const WALLET_VALIDATOR = [
  '0x608060405234801561001057600080fd5b5060405161069438038061069483398101604081905261002f9161051e565b600061003c848484610048',
  '565b9050806000526001601ff35b60007f64926492649264926492649264926492649264926492649264926492649264926100748361040c565b0361',
  '01e7576000606080848060200190518101906100929190610577565b60405192955090935091506000906001600160a01b038516906100b690859061',
  '05dd565b6000604051808303816000865af19150503d80600081146100f3576040519150601f19603f3d011682016040523d82523d6000602084013e',
  '6100f8565b606091505b50509050876001600160a01b03163b60000361016057806101605760405162461bcd60e51b815260206004820152601e6024',
  '8201527f5369676e617475726556616c696461746f723a206465706c6f796d656e74000060448201526064015b60405180910390fd5b604051630b13',
  '5d3f60e11b808252906001600160a01b038a1690631626ba7e90610190908b9087906004016105f9565b602060405180830381865afa1580156101ad',
  '573d6000803e3d6000fd5b505050506040513d601f19601f820116820180604052508101906101d19190610633565b6001600160e01b031916149450',
  '50505050610405565b6001600160a01b0384163b1561027a57604051630b135d3f60e11b808252906001600160a01b03861690631626ba7e90610227',
  '90879087906004016105f9565b602060405180830381865afa158015610244573d6000803e3d6000fd5b505050506040513d601f19601f8201168201',
  '80604052508101906102689190610633565b6001600160e01b031916149050610405565b81516041146102df5760405162461bcd60e51b8152602060',
  '04820152603a602482015260008051602061067483398151915260448201527f3a20696e76616c6964207369676e6174757265206c656e6774680000',
  '000000006064820152608401610157565b6102e7610425565b5060208201516040808401518451859392600091859190811061030c5761030c61065d',
  '565b016020015160f81c9050601b811480159061032b57508060ff16601c14155b1561038c5760405162461bcd60e51b815260206004820152603b60',
  '2482015260008051602061067483398151915260448201527f3a20696e76616c6964207369676e617475726520762076616c75650000000000606482',
  '0152608401610157565b60408051600081526020810180835289905260ff83169181019190915260608101849052608081018390526001600160a01b',
  '0389169060019060a0016020604051602081039080840390855afa1580156103ea573d6000803e3d6000fd5b505050602060405103516001600160a0',
  '1b0316149450505050505b9392505050565b600060208251101561041d57600080fd5b508051015190565b6040518060600160405280600390602082',
  '0280368337509192915050565b6001600160a01b038116811461045857600080fd5b50565b634e487b7160e01b600052604160045260246000fd5b60',
  '005b8381101561048c578181015183820152602001610474565b50506000910152565b600082601f8301126104a657600080fd5b8151600160016040',
  '1b038111156104bf576104bf61045b565b604051601f8201601f19908116603f011681016001600160401b03811182821017156104ed576104ed6104',
  '5b565b60405281815283820160200185101561050557600080fd5b610516826020830160208701610471565b949350505050565b6000806000606084',
  '8603121561053357600080fd5b835161053e81610443565b6020850151604086015191945092506001600160401b0381111561056157600080fd5b61',
  '056d86828701610495565b9150509250925092565b60008060006060848603121561058c57600080fd5b835161059781610443565b60208501519093',
  '506001600160401b038111156105b357600080fd5b6105bf86828701610495565b604086015190935090506001600160401b03811115610561576000',
  '80fd5b600082516105ef818460208701610471565b9190910192915050565b828152604060208201526000825180604084015261061e816060850160',
  '208701610471565b601f01601f1916919091016060019392505050565b60006020828403121561064557600080fd5b81516001600160e01b03198116',
  '811461040557600080fd5b634e487b7160e01b600052603260045260246000fdfe5369676e617475726556616c696461746f72237265636f76657253',
  '69676e6572',
].join('');
