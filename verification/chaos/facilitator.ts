/** The facilitator of a run: settles on the chain, and fails as `Faults` decides. */

import { setTimeout as delay } from 'node:timers/promises';
import { type Hex, keccak256 } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import {
  answerJson,
  type HttpExchange,
  type HttpServer,
  resetConnection,
  serveHttp,
} from '../../spec/support/http-server.ts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import { RpcError } from '../../tools/local-world/rpc.ts';
import type { Faults } from './faults.ts';
import type { Plan } from './plan.ts';
import { type Authorization, transferCall } from './proof.ts';
import { type Seed, seedOf } from './seed.ts';

/** Settles on the chain; gives false replies, disconnects and delays as `Faults` decides. */
export interface Facilitator extends HttpServer {
  /** Transactions that it reported as settled and has not sent yet. */
  readonly owed: number;
  /** Of `/settle`. */
  readonly calls: number;
  /** Nonces of payments that belong to another network or token. */
  readonly strays: readonly string[];
  /** New requests get no answer until `wake`. */
  pause(): void;
  wake(): void;
}

const SETTLE_FAULTS = ['error_before', 'error_after', 'cut_after', 'slow', 'pending_late', 'cut_late'] as const;
const VERIFY_FAULTS = ['error', 'cut', 'slow'] as const;
const SLOW_MS = [0, 1_400] as const;
const LATE_MS = [100, 4_000] as const;
const NONCE_USED = 'invalid_exact_evm_nonce_already_used';
const NETWORK_FAILED = { error: 'unavailable' };

/** The x402 error of each revert of the token. */
const REVERTS: readonly (readonly [RegExp, string])[] = [
  [/used or canceled/, NONCE_USED],
  [/expired/, 'invalid_exact_evm_payload_authorization_valid_before'],
  [/not yet valid/, 'invalid_exact_evm_payload_authorization_valid_after'],
  [/signature/, 'invalid_exact_evm_payload_signature'],
  [/exceeds balance/, 'insufficient_funds'],
];

interface Asked {
  readonly paymentPayload: { readonly payload: { readonly signature: Hex; readonly authorization: Authorization } };
  readonly paymentRequirements: { readonly network: string; readonly asset: string };
}

/** Starts the facilitator over a chain. */
export async function openFacilitator(chain: ChainAccess, plan: Plan, faults: Faults): Promise<Facilitator> {
  let owed = 0;
  let calls = 0;
  const strays: string[] = [];
  let awake = Promise.resolve();
  let wake = (): void => undefined;
  const network = `eip155:${chain.chainId}`;

  const verify = async ({ response }: HttpExchange, { authorization, signature }: Payment): Promise<void> => {
    const fault = faults.next('verify', authorization.nonce, plan.faults.verify, VERIFY_FAULTS);
    if (fault?.kind === 'error') return answerJson(response, 500, NETWORK_FAILED);
    if (fault?.kind === 'cut') return resetConnection(response);
    if (fault?.kind === 'slow') await delay(fault.seed.between(...SLOW_MS));
    const invalidReason = await reverted(chain, transferCall(authorization, signature));
    const payer = authorization.from;
    answerJson(
      response,
      200,
      invalidReason === undefined ? { isValid: true, payer } : { isValid: false, invalidReason, payer },
    );
  };

  const settle = async ({ response }: HttpExchange, { authorization, signature }: Payment): Promise<void> => {
    calls += 1;
    const { from: payer, nonce } = authorization;
    const fault = faults.next('settle', nonce, plan.faults.settle, SETTLE_FAULTS);
    if (fault?.kind === 'error_before') return answerJson(response, 500, NETWORK_FAILED);
    const data = transferCall(authorization, signature);
    const errorReason = await reverted(chain, data);
    if (errorReason !== undefined)
      return answerJson(response, 200, { success: false, errorReason, payer, transaction: '', network });
    if (fault?.kind === 'slow') await delay(fault.seed.between(...SLOW_MS));
    const transaction = await prepareTransaction(chain, data, seedOf(`${plan.seed}/relayer/${nonce}/${calls}`));
    const late = fault?.kind === 'pending_late' || fault?.kind === 'cut_late';
    if (late) {
      owed += 1;
      void delay(fault.seed.between(...LATE_MS))
        .then(transaction.send)
        // Another settlement may have come first; the chain shows its transaction.
        .catch(() => false)
        .finally(() => {
          faults.late();
          owed -= 1;
        });
    }
    const { hash } = transaction;
    if (fault?.kind === 'cut_late') return resetConnection(response);
    if (late)
      return answerJson(response, 200, {
        success: false,
        errorReason: 'settlement_pending',
        payer,
        transaction: hash,
        network,
      });
    const succeeded = await transaction.send();
    if (fault?.kind === 'error_after') return answerJson(response, 502, NETWORK_FAILED);
    if (fault?.kind === 'cut_after') return resetConnection(response);
    const outcome = succeeded ? { success: true } : { success: false, errorReason: 'invalid_transaction_state' };
    answerJson(response, 200, { ...outcome, payer, transaction: hash, network });
  };

  const server = await serveHttp(async (exchange) => {
    const { request, response, body } = exchange;
    await awake;
    if (request.url === '/supported') {
      return answerJson(response, 200, {
        kinds: [{ x402Version: 2, scheme: 'exact', network }],
        extensions: [],
        signers: {},
      });
    }
    const { paymentPayload, paymentRequirements } = JSON.parse(body.toString()) as Asked;
    const { payload } = paymentPayload;
    const isOwn = paymentRequirements.network === network && isSame(paymentRequirements.asset, chain.token.address);
    if (!isOwn) strays.push(payload.authorization.nonce);
    await (request.url === '/verify' ? verify : settle)(exchange, payload);
  });
  return {
    ...server,
    get owed() {
      return owed;
    },
    get calls() {
      return calls;
    },
    strays,
    pause() {
      ({ promise: awake, resolve: wake } = Promise.withResolvers<void>());
    },
    wake: () => wake(),
  };
}

type Payment = Asked['paymentPayload']['payload'];

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** Why the chain would not move this money now, or undefined. */
async function reverted(chain: ChainAccess, data: Hex): Promise<string | undefined> {
  try {
    await chain.request('eth_call', [{ to: chain.token.address, data }, 'latest']);
    return undefined;
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const { message } = error;
    return REVERTS.find(([pattern]) => pattern.test(message))?.[1] ?? 'invalid_exact_evm_transaction_simulation_failed';
  }
}

/** A signed transaction that is not sent yet. */
interface Prepared {
  readonly hash: Hex;
  /** Sends it; resolves when mined, to whether it succeeded. */
  send(): Promise<boolean>;
}

const GAS_UNITS = 300_000n;
const FEE_WEI = 10n ** 11n;
const RECEIPT_POLL_MS = 10;
const RECEIPT_TIMEOUT_MS = 10_000;

/**
 * A transaction to the token from a relayer of its own. Each relayer has its own account nonces, so
 * a transaction that is late or never sent does not block another one.
 */
export async function prepareTransaction(chain: ChainAccess, data: Hex, seed: Seed): Promise<Prepared> {
  const relayer = privateKeyToAccount(seed.bytes32());
  const [raw] = await Promise.all([
    relayer.signTransaction({
      chainId: chain.chainId,
      nonce: 0,
      to: chain.token.address,
      data,
      gas: GAS_UNITS,
      maxFeePerGas: FEE_WEI,
      maxPriorityFeePerGas: 0n,
    }),
    chain.fundGas(relayer.address),
  ]);
  const hash = keccak256(raw);
  return {
    hash,
    async send() {
      await chain.request('eth_sendRawTransaction', [raw]);
      const deadline = Date.now() + RECEIPT_TIMEOUT_MS;
      for (;;) {
        const receipt = await chain.request('eth_getTransactionReceipt', [hash]);
        if (receipt !== null) return (receipt as { readonly status: Hex }).status === '0x1';
        if (Date.now() > deadline) throw new Error(`transaction ${hash} was not mined`);
        await delay(RECEIPT_POLL_MS);
      }
    },
  };
}
