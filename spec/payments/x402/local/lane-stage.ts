import { setImmediate as turn } from 'node:timers/promises';
import {
  decodeFunctionData,
  encodeAbiParameters,
  encodeEventTopics,
  encodeFunctionResult,
  type Hex,
  keccak256,
  parseAbi,
  parseTransaction,
  toHex,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import type { Settlement, SettlementHistory, SignedTransaction } from '../../../../src/payments/rail.ts';
import { confirmPayment, createChain, evidenceQuery } from '../../../../src/payments/x402/chain/chain.ts';
import { clientOver, type Rpc, RpcRefusal, readHead } from '../../../../src/payments/x402/chain/node.ts';
import type { Fees } from '../../../../src/payments/x402/evm/account.ts';
import { callsIn, MULTICALL3 } from '../../../../src/payments/x402/evm/eip3009.ts';
import { createLane } from '../../../../src/payments/x402/local/lane.ts';
import { afterFailedSimulation } from '../../../../src/payments/x402/local/local-rail.ts';
import { createRelayer, type Relayer, watchFunds } from '../../../../src/payments/x402/local/relayer.ts';
import { createSimulation, transferOf } from '../../../../src/payments/x402/local/transfer.ts';
import type { LanePayment, Question } from '../../../../src/payments/x402/local/under-way.ts';
import type { Proof } from '../../../../src/payments/x402/wire/types.ts';
import { MULTICALL3_ABI, TOKEN_ABI } from '../../../../tools/local-world/contracts.ts';
import { authorize, offerFor, PRICE_UNITS, termsFor } from '../signing.ts';

const DEADLINE_MS = 60_000;
const KEY = generatePrivateKey();
const FEES: Fees = { maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: 1_000n };
/** No test needs more turns of the event loop until something happens. */
const MOST_TURNS = 2_000;

interface Setting {
  /** What a test changes of the node's connection and of the relayer. */
  readonly rpc?: (rpc: Rpc) => Rpc;
  readonly relayer?: (relayer: Relayer) => Relayer;
  /** Blocks that hold an outcome. */
  readonly confirmations?: number;
}

/** One order in the lane. */
export interface Ordered {
  readonly proof: Proof;
  readonly payer: string;
  /** What was written ahead, in order. */
  readonly written: SignedTransaction[];
  /** The number of transactions that the node had taken at each of those writes. */
  readonly takenBefore: number[];
  readonly outcome: Promise<Settlement>;
  /** The same, for an outcome that has to come without another look. @throws when it does not */
  ended(): Promise<Settlement>;
}

interface Order {
  readonly payer?: string;
  readonly signedBy?: Proof['signedBy'];
  readonly history?: SettlementHistory;
  /** Its write-aheads fail from this one on, counted from 0. */
  readonly losesFrom?: number;
  /** Milliseconds since its transfer passed a simulation. */
  readonly verifiedMsAgo?: number;
}

/** The asset of every test with this node. */
export const ASSET = `0x${'a5'.repeat(20)}` as const;
const terms = { ...termsFor(), asset: ASSET };
export const OFFER = offerFor(terms);

/** The lane over a node in memory. Blocks and looks come when the test says so. */
export async function openLaneStage(setting: Setting = {}) {
  const { rpc: changed = (plain) => plain, relayer: changedRelayer = (plain) => plain, confirmations = 1 } = setting;
  const node = new PoolNode();
  const plain: Rpc = { call: (method, params) => node.call(method, params), close: async () => undefined };
  const rpc = changed(plain);
  const client = clientOver(rpc.call);
  const chain = createChain(rpc);
  const clock = { now: 0 };
  const now = (): number => clock.now;
  let fees = FEES;
  const right = await createRelayer(rpc, terms.chainId, KEY, { current: async () => fees });
  const relayer = changedRelayer(right);
  const funds = watchFunds(() => relayer.funds(), now);
  const decide = ({ order }: LanePayment, { transaction, inBatch, waitMs, cause }: Question): Promise<Settlement> =>
    confirmPayment(chain, { ...evidenceQuery(order.proof, order.offer, transaction), inBatch }, waitMs, cause);
  let onLook: () => void = () => undefined;
  let endPause: (() => void) | undefined;
  const lane = createLane({
    ...{ rpc, asset: ASSET, confirmations, relayer, funds, decide, now },
    head: () => readHead(client),
    looked: () => onLook(),
    simulation: createSimulation(client, ASSET, relayer.address),
    refuse: ({ order: { proof, offer }, history }, verdict) =>
      afterFailedSimulation(verdict, history, chain, proof, offer),
    pause: {
      begin: () =>
        new Promise((resolve) => {
          endPause = resolve;
        }),
      end: () => undefined,
    },
  });

  const order = ({
    payer = freshPayer(),
    signedBy = 'account',
    history,
    losesFrom = Number.POSITIVE_INFINITY,
    verifiedMsAgo = 0,
  }: Order = {}): Ordered => {
    node.balances.set(payer, node.balances.get(payer) ?? PRICE_UNITS);
    const authorization = authorize(payer, OFFER);
    const signature = `0x${'11'.repeat(64)}1b`;
    const payload = { x402Version: 2, accepted: OFFER, payload: { signature, authorization } } as const;
    const proof: Proof = { payId: authorization.nonce, payload, signedBy };
    const written: SignedTransaction[] = [];
    const takenBefore: number[] = [];
    const writeAhead = async (signed: SignedTransaction): Promise<void> => {
      written.push(signed);
      takenBefore.push(node.taken.filter(({ hash }) => hash === signed.hash).length);
      if (written.length > losesFrom) throw new Error('fenced');
    };
    const outcome = lane.settle({
      proof,
      offer: OFFER,
      transfer: transferOf(proof),
      history: history ?? { sentBefore: false },
      writeAhead,
      endsAt: now() + DEADLINE_MS,
      simulatedAt: now() - verifiedMsAgo,
    });
    let shown: Settlement | undefined;
    void outcome.then((settlement) => {
      shown = settlement;
    });
    const ended = async (): Promise<Settlement> => {
      await until(() => shown !== undefined, 'a payment in a block has an outcome, it has no outcome');
      return outcome;
    };
    return { proof, payer, written, takenBefore, outcome, ended };
  };
  /** The gateway looks for blocks, if it waits for any. */
  const look = async (): Promise<void> => {
    const shown = new Promise<void>((resolve) => {
      onLook = resolve;
    });
    const due = endPause;
    if (due === undefined) return;
    endPause = undefined;
    due();
    await shown;
  };
  return {
    node,
    clock,
    order,
    look,
    /** One block with everything in the pool, which the gateway sees. */
    async mineAll(): Promise<void> {
      node.mine();
      await look();
    },
    /** Resolves when so many transactions were offered to the node. */
    offered: (count: number) => until(() => node.offered.length >= count, `${count} transactions are offered`),
    underWay: lane.underWay,
    /** Its address, lower case. */
    relayer: relayer.address,
    /** What a new transaction offers from now on. */
    setFees(present: Fees): void {
      fees = present;
    },
  };
}

export type LaneStage = Awaited<ReturnType<typeof openLaneStage>>;

export function freshPayer(): string {
  return privateKeyToAccount(generatePrivateKey()).address.toLowerCase();
}

export async function until(holds: () => boolean, what: string): Promise<void> {
  for (let turns = 0; !holds(); turns += 1) {
    if (turns > MOST_TURNS) throw new Error(`it never came that ${what}`);
    await turn();
  }
}

const BASE_FEE_WEI = 1_000_000_000n;
const GENESIS_SECONDS = 1_700_000_000;

type Transaction = ReturnType<typeof parseTransaction> & { readonly raw: Hex; readonly hash: Hex };

interface Transfer {
  readonly from: string;
  readonly to: string;
  readonly value: bigint;
  readonly nonce: Hex;
}

/** What the node does with a broadcast; a refusal is in these words. */
type Broadcast = 'takes' | 'takes and is silent' | { readonly refuses: string };

/** A chain node in memory, with a pool: blocks come when the test says so. */
export class PoolNode implements Rpc {
  /** What the relayer has for gas, wei; its pool takes no more than that pays for. */
  relayerWei = 10n ** 19n;
  /** Each method that was asked, in order. */
  readonly asked: string[] = [];
  /** Base units by payer, lower case. */
  readonly balances = new Map<string, bigint>();
  /** Payers with code, lower case. */
  readonly coded = new Set<string>();
  /** What was broadcast, what the pool took of it, and what came out of it, in order. */
  readonly offered: Transaction[] = [];
  readonly taken: Transaction[] = [];
  readonly mined: Transaction[] = [];
  /** Payers whose transfers fail in the simulation of a batch, and there only. */
  readonly failsJointly = new Set<string>();
  /** How many transfers were simulated. */
  simulated = 0;
  /** Whether Multicall3 is there, and whether its calls run out of gas in a block. */
  hasMulticall = true;
  batchesRevert = false;
  /** Whether Multicall3 runs out of gas in a block for the transfer of one of these payers. */
  readonly burners = new Set<string>();
  onBroadcast: (transaction: Transaction) => Broadcast = () => 'takes';
  readonly #pool = new Map<number, Transaction>();
  readonly #spent = new Set<string>();
  readonly #receipts = new Map<string, { readonly blockNumber: Hex }>();
  #block = 1;
  #count = 0;

  get pool(): readonly Transaction[] {
    return [...this.#pool.values()];
  }

  async call(method: string, params: readonly unknown[]): ReturnType<Rpc['call']> {
    this.asked.push(method);
    const answer = this.#answer(method, params);
    return answer as Awaited<ReturnType<Rpc['call']>>;
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  /** One block. `leaves`: the transactions that stay in the pool. */
  mine(leaves: (transaction: Transaction) => boolean = () => false): void {
    this.#block += 1;
    for (
      let next = this.#pool.get(this.#count);
      next !== undefined && !leaves(next);
      next = this.#pool.get(this.#count)
    ) {
      this.#pool.delete(this.#count);
      this.#count += 1;
      this.mined.push(next);
      this.#receipts.set(next.hash, this.#execute(next));
    }
  }

  /** Another process with the key used up the next number, in a block of its own. */
  useNumber(): void {
    this.#pool.delete(this.#count);
    this.#block += 1;
    this.#count += 1;
  }

  /** It forgets its pool. */
  lose(): void {
    this.#pool.clear();
  }

  /** A reorganisation takes out the last block, which had one transaction. */
  undo(): void {
    const undone = this.mined.pop();
    if (undone === undefined) return;
    this.#receipts.delete(undone.hash);
    this.#count -= 1;
    this.#block += 1;
    for (const { from, value, nonce } of transfersIn(undone)) {
      this.#spent.delete(nonce);
      this.balances.set(from, (this.balances.get(from) ?? 0n) + value);
    }
  }

  /** A stranger submitted the authorization with this nonce. */
  spend(nonce: string): void {
    this.#spent.add(nonce.toLowerCase());
  }

  /** The pool has this one of its number, and not the one that replaced it. */
  putBack(transaction: Transaction | undefined): void {
    if (transaction !== undefined) this.#pool.set(transaction.nonce ?? 0, transaction);
  }

  #answer(method: string, params: readonly unknown[]): unknown {
    switch (method) {
      case 'eth_getTransactionCount':
        return toHex(params[1] === 'pending' ? this.#pending() : this.#count);
      case 'eth_getBlockByNumber':
        return {
          hash: keccak256(toHex(this.#block)),
          number: toHex(this.#block),
          timestamp: toHex(GENESIS_SECONDS + this.#block),
          baseFeePerGas: toHex(BASE_FEE_WEI),
        };
      case 'eth_maxPriorityFeePerGas':
        return toHex(1_000n);
      case 'eth_getBalance':
        return toHex(this.relayerWei);
      case 'eth_getCode':
        return this.hasMulticall ? '0x60' : '0x';
      case 'eth_sendRawTransaction':
        return this.#take(parsed(params[0] as Hex));
      case 'eth_getTransactionReceipt':
        return this.#receipts.get(params[0] as string) ?? null;
      case 'eth_getBlockReceipts':
        return [...this.#receipts.values()].filter(({ blockNumber }) => blockNumber === params[0]);
      case 'eth_call':
        return this.#view(params[0] as { readonly to?: string; readonly data: Hex });
      default:
        return [];
    }
  }

  #pending(): number {
    let number = this.#count;
    while (this.#pool.has(number)) number += 1;
    return number;
  }

  #take(transaction: Transaction): Hex {
    this.offered.push(transaction);
    const does = this.onBroadcast(transaction);
    if (typeof does === 'object') throw refused(does.refuses);
    const { nonce = 0, hash, maxFeePerGas = 0n } = transaction;
    const earlier = this.#pool.get(nonce);
    if (nonce < this.#count) throw refused('nonce too low');
    if (earlier?.hash === hash) throw refused('already known');
    if (earlier !== undefined && maxFeePerGas * 10n < (earlier.maxFeePerGas ?? 0n) * 11n)
      throw refused('replacement transaction underpriced');
    const others = [...this.#pool.values()].filter((one) => one !== earlier);
    if ([...others, transaction].reduce((sum, one) => sum + mostOf(one), 0n) > this.relayerWei)
      throw refused('insufficient funds for gas * price + value');
    this.#pool.set(nonce, transaction);
    this.taken.push(transaction);
    if (does === 'takes and is silent') throw new Error('no answer');
    return hash;
  }

  #execute(transaction: Transaction) {
    const transfers = transfersIn(transaction);
    const fails = transfers.length > 1 && (this.batchesRevert || transfers.some(({ from }) => this.burners.has(from)));
    const logs = fails ? [] : transfers.flatMap((transfer) => (this.#move(transfer) ? pair(transfer) : []));
    const succeeds = !fails && (transfers.length !== 1 || logs.length > 0);
    const place = { transactionHash: transaction.hash, blockNumber: toHex(this.#block) };
    return {
      ...place,
      status: succeeds ? '0x1' : '0x0',
      logs: logs.map((log, at) => ({ ...log, ...place, address: ASSET, logIndex: toHex(at) })),
    };
  }

  #move({ from, value, nonce }: Transfer): boolean {
    const balance = this.balances.get(from) ?? 0n;
    if (this.#spent.has(nonce) || balance < value) return false;
    this.#spent.add(nonce);
    this.balances.set(from, balance - value);
    return true;
  }

  #view({ to, data }: { readonly to?: string; readonly data: Hex }): Hex {
    if (to === undefined) {
      const words = (data.slice(2 + 2 * CODE_SIZES_BYTES).match(/.{64}/g) ?? []).map((word) => `0x${word.slice(24)}`);
      return `0x${words.map((payer) => (this.coded.has(payer) ? '17' : '').padStart(64, '0')).join('')}`;
    }
    if (to.toLowerCase() === MULTICALL3) {
      const left = new Map(this.balances);
      const results = callsIn(data).map((call) => {
        const transfer = transferIn(call);
        const success = this.#passes(transfer, left) && !this.failsJointly.has(transfer.from);
        return { success, returnData: '0x' as const };
      });
      return encodeFunctionResult({ abi: MULTICALL3_ABI, functionName: 'aggregate3', result: results });
    }
    const { functionName, args } = decodeFunctionData({ abi: TOKEN_ABI, data });
    if (functionName === 'authorizationState') return word(this.#spent.has(args[1]) ? 1n : 0n);
    if (functionName === 'balanceOf') return word(this.balances.get(args[0].toLowerCase()) ?? 0n);
    if (this.#passes(transferIn(data), new Map(this.balances))) return '0x';
    throw new RpcRefusal('eth_call', 3, 'execution reverted', true);
  }

  #passes({ from, value, nonce }: Transfer, left: Map<string, bigint>): boolean {
    this.simulated += 1;
    const balance = left.get(from) ?? 0n;
    if (this.#spent.has(nonce) || balance < value) return false;
    left.set(from, balance - value);
    return true;
  }
}

const CODE_SIZES_BYTES = 33;

/** The most that a transaction costs, wei. */
function mostOf({ gas = 0n, maxFeePerGas = 0n }: Transaction): bigint {
  return gas * maxFeePerGas;
}

function refused(message: string): RpcRefusal {
  return new RpcRefusal('eth_sendRawTransaction', -32_000, message, false);
}

function parsed(raw: Hex): Transaction {
  return { ...parseTransaction(raw), raw, hash: keccak256(raw) };
}

/** The transfers that a transaction makes. */
export function transfersIn({ data = '0x' }: { readonly data?: Hex | undefined }): readonly Transfer[] {
  return data === '0x' ? [] : callsIn(data).map(transferIn);
}

const TRANSFER = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);

function transferIn(call: string): Transfer {
  const [from, to, value, , , nonce] = decodeFunctionData({ abi: TRANSFER, data: call as Hex }).args;
  return { from: from.toLowerCase(), to, value, nonce };
}

function pair({ from, to, value, nonce }: Transfer): readonly object[] {
  const use = { authorizer: from as Hex, nonce };
  const move = { from: from as Hex, to: to as Hex };
  return [
    { topics: encodeEventTopics({ abi: TOKEN_ABI, eventName: 'AuthorizationUsed', args: use }), data: '0x' },
    { topics: encodeEventTopics({ abi: TOKEN_ABI, eventName: 'Transfer', args: move }), data: word(value) },
  ];
}

function word(value: bigint): Hex {
  return encodeAbiParameters([{ type: 'uint256' }], [value]);
}
