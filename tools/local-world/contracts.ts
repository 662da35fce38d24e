/** The compiled contracts of the local chain. */

import { type Abi, type Hex, parseAbi } from 'viem';
import artefacts from './contracts/contracts.json' with { type: 'json' };

/** One compiled contract of the folder contracts. */
interface Artefact {
  /** File name of its source. */
  readonly source: string;
  readonly sourceSha256: string;
  readonly abi: Abi;
  readonly bytecode: Hex;
  readonly deployedBytecode: Hex;
}

interface Artefacts {
  readonly compiler: string;
  readonly settings: object;
  readonly contracts: Readonly<Record<'Eip3009Token' | 'Multicall3' | 'ContractWallet', Artefact>>;
}

/** The committed artefact; a test holds it equal to its sources. */
export const CONTRACTS = artefacts as Artefacts;

/** Canonical address of Multicall3 on every EVM chain. */
export const MULTICALL3_ADDRESS = '0xcA11bde05977b3631167028862bE2a173976CA11';

/** What tests call on the token, with types that viem can read. */
export const TOKEN_ABI = parseAbi([
  'function mint(address to, uint256 value)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);

/** `aggregate3` with the published signature. */
export const MULTICALL3_ABI = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] results)',
]);
