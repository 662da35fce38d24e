/** A whole gateway process as the target of attacks. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import { createBuyer } from '../../spec/support/buyer.ts';
import type { ConfigObject } from '../../spec/support/config.ts';
import { askPrice } from '../../spec/support/purchase.ts';
import { startWorld, type World } from '../../spec/support/world.ts';
import { ERRORS } from '../../src/errors.ts';
import { residentBytes } from '../bench/meter.ts';
import type { WireAnswer } from './wire/conversation.ts';

/**
 * A whole gateway process with every channel on, a chain and a backend that records its requests.
 */
export interface Target extends World {
  readonly url: string;
  /** Fails unless the first process still runs, is ready and sells. */
  stillSells(): Promise<void>;
  /** Resident memory of the process, bytes. */
  residentBytes(): number;
}

/** Starts it. `overrides` as in `worldConfig`. */
export async function openTarget(overrides: ConfigObject = {}): Promise<Target> {
  const channels = { mcp: { enabled: true }, a2a: { enabled: true } };
  return targetOf(await startWorld({ overrides: { protocols: channels, ...overrides } }));
}

/** A running world as a target. */
export function targetOf(world: World): Target {
  const url = world.gateway.baseUrl;
  let gone: string | undefined;
  void world.gateway.ended.then(({ code, signal }) => {
    gone = `ended with ${signal ?? code}`;
  });
  return {
    ...world,
    url,
    residentBytes: () => residentBytes(world.gateway.pid),
    async stillSells() {
      assert.equal(gone, undefined, world.gateway.output());
      const ready = await fetch(`${url}/ready`);
      assert.equal(ready.status, 200, await ready.text());
      const echoed = await fetch(`${url}/api/resources/free_echo/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"still":"sells"}',
      });
      assert.equal(await echoed.text(), '{"still":"sells"}');
    },
  };
}

/** All forms; no other answer may leave the process. */
type AnswerForm = 'envelope' | 'challenge' | 'rpc error' | 'rpc result' | 'empty' | 'bare' | 'delivery';

const ajv = new Ajv2020({ strict: false });
(formatsPlugin.default ?? formatsPlugin)(ajv);
const isEnvelope = ajv.compile<{ readonly code: string; readonly requestId: string }>(schema('error'));
const isChallenge = ajv.compile(schema('payment-required'));

function schema(name: string): object {
  return JSON.parse(readFileSync(new URL(`../../schemas/${name}.schema.json`, import.meta.url), 'utf8')) as object;
}

/** What Node writes to a connection that it cannot read any more: a status and no body. */
const BARE: ReadonlySet<number> = new Set([400, 408, 431]);

/**
 * The form of an answer, or undefined when it is none of them: a page of a framework, an envelope
 * whose status or id does not fit, and every answer that reports a failure of the gateway itself.
 */
export function formOf(answer: WireAnswer): AnswerForm | undefined {
  const { status, headers, body } = answer;
  const requestId = headers.get('x-request-id');
  if (requestId === undefined) return BARE.has(status) && body.length === 0 ? 'bare' : undefined;
  if (requestId.length !== 1 || headers.has('x-powered-by') || headers.has('server')) return undefined;
  if (body.length === 0) return 'empty';
  const document = parsed(body);
  const rpc = rpcForm(document);
  if (rpc !== undefined) return rpc;
  if (status === 402) return isChallenge(document) ? 'challenge' : undefined;
  if (status < 400) return 'delivery';
  if (!isEnvelope(document) || document.requestId !== requestId[0]) return undefined;
  const rule = new Map<string, { readonly status: number }>(Object.entries(ERRORS)).get(document.code);
  return rule?.status === status && document.code !== 'INTERNAL_ERROR' ? 'envelope' : undefined;
}

function rpcForm(document: unknown): 'rpc error' | 'rpc result' | undefined {
  if (typeof document !== 'object' || document === null || !('jsonrpc' in document)) return undefined;
  if ('result' in document) return 'rpc result';
  const error = 'error' in document ? document.error : undefined;
  // -32603 is JSON-RPC's word for a bug.
  const isOurs = typeof error === 'object' && error !== null && 'code' in error && error.code !== -32603;
  return isOurs ? 'rpc error' : undefined;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Makes proofs of a buyer with funds. */
export interface ProofMaker {
  /** A fresh PAYMENT-SIGNATURE for a resource and its input. */
  proof(resourceId: string, input?: object): Promise<string>;
}

export async function proofMaker({ chain, url }: Pick<Target, 'chain' | 'url'>): Promise<ProofMaker> {
  const buyer = await createBuyer(chain);
  return {
    proof: async (resourceId, input = {}) =>
      buyer.pay((await askPrice(url, resourceId, JSON.stringify(input))).paymentRequired),
  };
}
