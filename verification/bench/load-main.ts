/**
 * The load generator: takes a LoadTask as message, says `ready`, keeps its connections busy from
 * `go` on, answers with a LoadReport. Ends with its parent. It works on plain sockets with bytes
 * made beforehand, because what it costs is taken from the backend on its core.
 */

import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { privateKeyToAddress } from 'viem/accounts';
import { authorizationDigest, bytesHex, domainSeparator } from '../../src/payments/x402/evm/eip3009.ts';
import type { Question } from './contestant.ts';
import { closes, Framer, headerOf, type Message } from './framing.ts';
import type { LoadReport, LoadTask } from './load.ts';
import { percentile } from './meter.ts';

/** Challenges that are asked for at a time. */
const ASKED_AT_ONCE = 32;
const KEY_BYTES = 32;
const NONCE_BYTES = 32;
/** Official clients begin the window of a payment this long ago, seconds. */
const VALID_BEFORE_NOW = 600;
/** `v` of an account's signature is this plus the recovery id. */
const V_OFFSET = 27;

/** Most requests of one task; also the room for their times. */
const MAX_REQUESTS = 2_000_000;
/** How much of a wrong answer is printed, characters. */
const SHOWN_CHARS = 300;
const PAYERS = 64;
/** Paid calls a second that proofs are signed for until the contestant's own rate is known. */
const FIRST_RATE = 1_500;
/** Proofs beside those that the last rate asks for. */
const SPARE = 1.4;
const MAX_PROOFS = 40_000;
/** Between two tries to connect, milliseconds. */
const RECONNECT_MS = 20;

const times = new Float64Array(MAX_REQUESTS);
const payers = freshPayers(PAYERS);
const rates = new Map<string, number>();

/** The requests of one connection, each sent after the answer to the last one. */
class Lane {
  readonly #port: number;
  #socket: Socket | undefined;
  #framer = new Framer();
  #round: Round | undefined;
  #sentAt = 0;
  #asking = false;

  constructor(port: number) {
    this.#port = port;
  }

  /** Resolves once it is connected. */
  async connected(): Promise<void> {
    if (this.#socket !== undefined) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#connect(resolve);
    await promise;
  }

  run(round: Round): void {
    this.#round = round;
    this.#next();
  }

  destroy(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #next(): void {
    const round = this.#round;
    if (round === undefined) return;
    const request = round.over() ? undefined : round.request();
    if (request === undefined) {
      this.#round = undefined;
      round.leave();
      return;
    }
    const send = (): void => {
      this.#sentAt = performance.now();
      this.#asking = true;
      this.#socket?.write(request);
    };
    if (this.#socket === undefined) this.#connect(send);
    else send();
  }

  #connect(then: () => void): void {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    this.#framer = new Framer();
    const answered = (message: Message, bytes: Buffer): void => this.#answered(message, bytes);
    let open = false;
    socket.once('connect', () => {
      open = true;
      then();
    });
    socket.on('data', (chunk: Buffer) => this.#framer.take(chunk, answered));
    socket.on('error', () => {});
    socket.once('close', () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      if (!open) {
        const round = this.#round;
        if (round?.over() === true) round.leave();
        else setTimeout(() => this.#connect(then), RECONNECT_MS);
      } else if (this.#asking) {
        this.#asking = false;
        this.#round?.broken();
        this.#next();
      }
    });
  }

  #answered(message: Message, bytes: Buffer): void {
    if (!this.#asking) return;
    this.#asking = false;
    this.#round?.count(performance.now() - this.#sentAt, message, bytes);
    if (closes(message.head)) this.destroy();
    this.#next();
  }
}

/** One task, its requests and their counts. */
class Round {
  readonly #task: LoadTask;
  readonly #holds: Buffer;
  readonly #requests: readonly Buffer[];
  readonly #done = Promise.withResolvers<void>();
  readonly #expected: string;
  #ends = 0;
  #running = 0;
  #sent = 0;
  #good = 0;
  #failure: string | undefined;

  constructor(task: LoadTask, requests: readonly Buffer[]) {
    this.#task = task;
    this.#holds = Buffer.from(task.question.holds);
    this.#expected = ` ${task.question.expect} `;
    this.#requests = requests;
  }

  over(): boolean {
    return this.#failure !== undefined || this.#good >= MAX_REQUESTS || performance.now() >= this.#ends;
  }

  /** Undefined when all proofs are used. */
  request(): Buffer | undefined {
    return this.#requests[this.#task.question.pays === true ? this.#sent++ : 0];
  }

  count(ms: number, message: Message, bytes: Buffer): void {
    const problem = this.#problem(message, bytes);
    if (problem === undefined) times[this.#good++] = ms;
    else if (this.#task.retries !== true || !message.head.startsWith('HTTP/1.1 5')) this.fail(problem);
  }

  broken(): void {
    if (this.#task.retries !== true) this.fail('broke a connection');
  }

  fail(why: string): void {
    this.#failure ??= `${why} (after ${this.#good} good answers)`;
  }

  leave(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#done.resolve();
  }

  async run(lanes: readonly Lane[]): Promise<LoadReport> {
    const startedAt = performance.now();
    this.#ends = startedAt + this.#task.seconds * 1_000;
    this.#running = lanes.length;
    for (const lane of lanes) lane.run(this);
    await this.#done.promise;
    const elapsedMs = performance.now() - startedAt;
    const sorted = times.subarray(0, this.#good).toSorted();
    const [p50Ms, p99Ms] = [percentile(sorted, 0.5), percentile(sorted, 0.99)];
    return { requests: this.#good, elapsedMs, p50Ms, p99Ms, failure: this.#failure };
  }

  /** Undefined for a right answer. */
  #problem({ head, bodyAt, end }: Message, bytes: Buffer): string | undefined {
    const { expect, holds, pays } = this.#task.question;
    const shown = (): string => bytes.toString('utf8', bodyAt, Math.min(end, bodyAt + SHOWN_CHARS));
    if (!head.startsWith(this.#expected, 8)) return `answered ${head.slice(9, 12)}, not ${expect}: ${shown()}`;
    const at = bytes.indexOf(this.#holds, bodyAt);
    if (at === -1 || at >= end) return `answered without ${JSON.stringify(holds)}: ${shown()}`;
    if (pays === true && !settled(head)) return `answered without a settled payment: ${shown()}`;
    return undefined;
  }
}

/** Whether PAYMENT-RESPONSE says that the payment is settled. */
function settled(head: string): boolean {
  const response = headerOf(head, 'payment-response');
  return response !== undefined && Buffer.from(response, 'base64').includes('"success":true');
}

let open: { readonly origin: string; readonly lanes: readonly Lane[] } | undefined;

/**
 * Connections are kept between tasks of the same contestant, so that connecting is not measured.
 */
async function lanesFor({ origin, connections }: LoadTask): Promise<readonly Lane[]> {
  if (open?.origin !== origin || open.lanes.length !== connections) {
    for (const lane of open?.lanes ?? []) lane.destroy();
    const port = Number(new URL(origin).port);
    open = { origin, lanes: Array.from({ length: connections }, () => new Lane(port)) };
  }
  await Promise.all(open.lanes.map((lane) => lane.connected()));
  return open.lanes;
}

async function requestsFor(task: LoadTask): Promise<readonly Buffer[]> {
  const { question, origin, connections } = task;
  if (question.pays !== true) return [requestBytes(task)];
  const wanted = Math.ceil((rates.get(origin) ?? FIRST_RATE) * task.seconds * SPARE) + 2 * connections;
  const count = Math.min(MAX_PROOFS, wanted);
  const proofs = await signedProofs(origin, question, payers, count);
  return proofs.map((proof) => requestBytes(task, proof));
}

function requestBytes({ origin, question }: LoadTask, proof?: string): Buffer {
  const { path, headers, body } = question;
  const lines = [
    `POST ${path} HTTP/1.1`,
    `host: ${new URL(origin).host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    ...(proof === undefined ? [] : [`payment-signature: ${proof}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}

async function work(task: LoadTask): Promise<LoadReport> {
  const requests = await requestsFor(task);
  const lanes = await lanesFor(task);
  const go = once(process, 'message');
  process.send?.('ready');
  await go;
  const report = await new Round(task, requests).run(lanes);
  if (task.question.pays === true) rates.set(task.origin, (report.requests * 1_000) / report.elapsedMs);
  return report;
}

process.on('message', async (task: LoadTask | 'go') => {
  if (task === 'go') return;
  try {
    process.send?.(await work(task));
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error);
    process.send?.({ requests: 0, elapsedMs: 0, p50Ms: 0, p99Ms: 0, failure });
  }
});
process.on('disconnect', () => process.exit(0));

/** What an offer of a 402 names; the other members are repeated as they came. */
interface Accepted {
  readonly network: string;
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: { readonly name: string; readonly version: string };
}

/** The PAYMENT-REQUIRED document of a contestant. */
interface Challenge {
  readonly resource: object;
  readonly accepts: readonly Accepted[];
  readonly extensions?: object;
}

/** A key that pays. */
interface Payer {
  readonly key: Buffer;
  readonly address: string;
}

/** The part of libsecp256k1 that is used: 40 us a signature, where JavaScript takes 350. */
interface Curve {
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { readonly signature: Uint8Array; readonly recid: number };
}

type Asked = Pick<Question, 'path' | 'headers' | 'body'>;

/** `count` fresh keys. */
function freshPayers(count: number): readonly Payer[] {
  return Array.from({ length: count }, () => {
    const key = randomBytes(KEY_BYTES);
    return { key, address: privateKeyToAddress(`0x${key.toString('hex')}`) };
  });
}

/** The challenge of a contestant. @throws Error when it does not ask for a payment */
async function challengeOf(origin: string, { path, headers, body }: Asked): Promise<Challenge> {
  const answer = await fetch(`${origin}${path}`, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  const required = answer.headers.get('payment-required');
  if (answer.status !== 402 || required === null) throw new Error(`answered ${answer.status} without a challenge`);
  return JSON.parse(Buffer.from(required, 'base64').toString()) as Challenge;
}

/** A challenge for each proof, as a client has it; one for all where they are all the same. */
async function challengesOf(origin: string, asked: Asked, count: number): Promise<readonly Challenge[]> {
  const challenges = [await challengeOf(origin, asked)];
  const another = await challengeOf(origin, asked);
  if (isDeepStrictEqual(another, challenges[0])) return challenges;
  const asking = Array.from({ length: ASKED_AT_ONCE }, async () => {
    while (challenges.length < count) challenges.push(await challengeOf(origin, asked));
  });
  await Promise.all(asking);
  return challenges;
}

/**
 * `count` values of PAYMENT-SIGNATURE for challenges of a contestant, each with a nonce of its own,
 * by the payers in turn.
 * @throws Error when it asks for no payment, or offers nothing
 */
async function signedProofs(
  origin: string,
  asked: Asked,
  payers: readonly Payer[],
  count: number,
): Promise<readonly string[]> {
  const challenges = await challengesOf(origin, asked, count);
  const curve = createRequire(import.meta.url)('secp256k1') as Curve;
  const first = randomInt(payers.length);
  return Array.from({ length: count }, (_, nth) => {
    const challenge = challenges[nth % challenges.length];
    const payer = payers[(first + nth) % payers.length];
    if (challenge === undefined || payer === undefined) throw new Error('no payers');
    return signed(challenge, payer, curve);
  });
}

/** The official client makes the same document, at a hundred times the cost. */
function signed({ resource, accepts, extensions }: Challenge, { key, address }: Payer, curve: Curve): string {
  const [accepted] = accepts;
  if (accepted === undefined) throw new Error('the challenge offers nothing');
  const domain = domainSeparator({
    ...accepted.extra,
    chainId: Number(accepted.network.split(':')[1]),
    verifyingContract: accepted.asset,
  });
  const now = Math.floor(Date.now() / 1_000);
  const authorization = {
    from: address,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: String(now - VALID_BEFORE_NOW),
    validBefore: String(now + accepted.maxTimeoutSeconds),
    nonce: bytesHex(randomBytes(NONCE_BYTES)),
  };
  const { signature, recid } = curve.ecdsaSign(authorizationDigest(domain)(authorization), key);
  const payload = { signature: `${bytesHex(signature)}${(V_OFFSET + recid).toString(16)}`, authorization };
  const proof = { x402Version: 2, resource, accepted, ...(extensions && { extensions }), payload };
  return Buffer.from(JSON.stringify(proof)).toString('base64');
}
