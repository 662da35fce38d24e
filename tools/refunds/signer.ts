/** Who signs a refund: a key in a file, or a program that has one. */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { NoInputError, UsageError } from '../../src/cli/program.ts';
import {
  canonicalSignature,
  isPrivateKey,
  isPublishedKey,
  prepareKey,
  prepareRecovery,
  readAccountSignature,
  type SigningKey,
} from '../../src/payments/x402/evm/account.ts';
import { authorizationDigest, bytesHex } from '../../src/payments/x402/evm/eip3009.ts';
import type { PayeeSigner } from '../../src/payments/x402/refund/pay.ts';
import type { X402Config } from '../../src/payments/x402/wire/settings.ts';
import type { Eip3009Authorization } from '../../src/payments/x402/wire/types.ts';

/** A person may have to press a button, milliseconds. */
const PROGRAM_TIMEOUT_MS = 120_000;
const KEY = /^(?:0x)?[0-9a-fA-F]{64}$/;

/** The token whose transfers are signed. */
type Token = Pick<X402Config, 'chainId' | 'asset' | 'assetName' | 'assetVersion' | 'domainSeparator'>;

/** @throws NoInputError, UsageError; the system's error for a file that cannot be read */
export async function readKey(file: string, chainId: number): Promise<SigningKey> {
  const text = (await readFile(file, 'utf8')).trim();
  const key = text.startsWith('0x') ? text : `0x${text}`;
  if (!KEY.test(text) || !isPrivateKey(key)) throw new NoInputError(`${file}: is no private key, 64 hex digits`);
  if (isPublishedKey(key, chainId)) throw new UsageError(`${file}: this key is public; it is refused on this chain`);
  return prepareKey(key);
}

/** Signs with a key of this process. */
export function keySigner(key: SigningKey, { domainSeparator }: Pick<Token, 'domainSeparator'>): PayeeSigner {
  const digest = authorizationDigest(domainSeparator);
  return {
    address: key.address,
    async sign(authorization) {
      const { compact, recoveryId } = key.sign(digest(authorization));
      return canonicalSignature(bytesHex(compact), recoveryId);
    },
  };
}

/**
 * Asks a program: it reads the EIP-712 typed data as JSON from stdin and prints the signature of
 * the payee, 65 bytes as hex.
 * @param command a program and its arguments, separated by spaces
 */
export async function programSigner(command: string, payee: string, token: Token): Promise<PayeeSigner> {
  const digest = authorizationDigest(token.domainSeparator);
  const { recover } = await prepareRecovery();
  return {
    address: payee.toLowerCase(),
    async sign(authorization) {
      const printed = (await run(command, JSON.stringify(typedData(authorization, token)))).trim();
      const signature = readAccountSignature(printed.startsWith('0x') ? printed : `0x${printed}`);
      if (signature === undefined) throw new Error(`${command}: printed no signature, 65 bytes as hex`);
      const signer = await recover(digest(authorization), signature);
      if (signer !== payee.toLowerCase()) throw new Error(`${command}: signed as ${signer}, and the payee is ${payee}`);
      return signature.canonical;
    },
  };
}

function run(command: string, input: string): Promise<string> {
  const [program = '', ...args] = command.split(/\s+/).filter(Boolean);
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { timeout: PROGRAM_TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      // What it was asked is left out of the message.
      else reject(new Error(`${command}: ${stderr.trim().split('\n').at(-1) || error.code || 'failed'}`));
    });
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

/** As wallets take it (`eth_signTypedData_v4`). */
function typedData(message: Eip3009Authorization, { chainId, asset, assetName, assetVersion }: Token): object {
  const member = (name: string, type: string) => ({ name, type });
  return {
    domain: { name: assetName, version: assetVersion, chainId, verifyingContract: asset },
    primaryType: 'TransferWithAuthorization',
    types: {
      EIP712Domain: [
        member('name', 'string'),
        member('version', 'string'),
        member('chainId', 'uint256'),
        member('verifyingContract', 'address'),
      ],
      TransferWithAuthorization: [
        ...[member('from', 'address'), member('to', 'address'), member('value', 'uint256')],
        ...[member('validAfter', 'uint256'), member('validBefore', 'uint256'), member('nonce', 'bytes32')],
      ],
    },
    message,
  };
}
