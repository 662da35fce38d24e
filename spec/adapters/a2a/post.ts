import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { SendMessageResponse } from '@a2a-js/sdk';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import { type Answered, ask } from '../../e2e/ask.ts';

export type Headers = Readonly<Record<string, string>>;
export type Members = Readonly<Record<string, unknown>>;

export const VERSION: Headers = { 'a2a-version': '1.0' };

export const ENABLED = { protocols: { a2a: { enabled: true } } };

/** A raw POST to the mount; an object is sent as JSON. */
export function postA2a(base: string, body: unknown, headers: Headers = VERSION, path = '/a2a'): Promise<Answered> {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return ask(base, { path, headers: { 'content-type': 'application/json', ...headers }, body: text });
}

/** A message of one data part, with members changed; `undefined` removes one. */
export function message(resource: unknown, input: unknown = {}, changes: Members = {}): Members {
  const parts = [{ data: { resource, input }, mediaType: 'application/json' }];
  return { messageId: randomUUID(), role: 'ROLE_USER', parts, ...changes };
}

export function sendMessage(content: unknown, id: unknown = 1): Members {
  return { jsonrpc: '2.0', id, method: 'SendMessage', params: { message: content, configuration: {} } };
}

/** The members of a task that specs read. */
export interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: {
    readonly state: string;
    readonly message?: { readonly parts: readonly [{ readonly text: string }]; readonly metadata?: Members };
  };
  readonly artifacts?: readonly [
    { readonly name: string; readonly parts: readonly [{ readonly data: Members }]; readonly metadata?: Members },
  ];
  readonly metadata: Members;
}

const ajv = new Ajv2020({ strict: true, strictRequired: false });
(formatsPlugin.default ?? formatsPlugin)(ajv);

/** The published schema of that name. */
export function schemaOf(name: string): ReturnType<typeof ajv.compile> {
  const text = readFileSync(new URL(`../../../schemas/${name}.schema.json`, import.meta.url), 'utf8');
  return ajv.compile(JSON.parse(text) as object);
}
/** The schema of a result of SendMessage. */
export const isResult = schemaOf('a2a-result');

/** The task of an answer, which must fit the published schema and the official parser. */
export function taskOf(answer: Answered, id: unknown = 1): Task {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.equal(answer.headers['cache-control'], 'no-store');
  const body = JSON.parse(answer.text) as { jsonrpc: string; id: unknown; result: { task: Task }; error?: object };
  assert.deepEqual(Object.keys(body), ['jsonrpc', 'id', 'result'], answer.text);
  assert.equal(body.id, id);
  assert.ok(isResult(body.result), JSON.stringify(isResult.errors));
  assert.deepEqual(SendMessageResponse.toJSON(SendMessageResponse.fromJSON(body.result)), body.result);
  assert.equal(body.result.task.metadata['agent-commerce/requestId'], answer.headers['x-request-id']);
  return body.result.task;
}

export async function send(base: string, content: unknown, headers: Headers = {}): Promise<Task> {
  return taskOf(await postA2a(base, sendMessage(content), { ...VERSION, ...headers }));
}

/** The data of the one artifact. */
export function dataOf({ artifacts }: Task): Members {
  assert.ok(artifacts !== undefined, 'the task has an artifact');
  return artifacts[0].parts[0].data;
}

/** The summary of a delivery. */
export function deliveryOf({ metadata }: Task): Members {
  return metadata['agent-commerce/delivery'] as Members;
}

/** The members of the x402 extension. */
export function x402Of({ status }: Task): Members {
  return status.message?.metadata ?? {};
}

/** The members of a JSON-RPC error that specs read. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: readonly (Members & {
    readonly reason?: string;
    readonly metadata?: Members;
    readonly fieldViolations?: readonly { readonly field: string; readonly description: string }[];
  })[];
}

/** The error of an answer, in the form of A2A 1.0. */
export function errorOf(answer: Answered, id: unknown, status = 200): RpcError {
  assert.equal(answer.status, status, answer.text);
  const body = JSON.parse(answer.text) as { id: unknown; error: RpcError };
  assert.deepEqual(Object.keys(body), ['jsonrpc', 'id', 'error'], answer.text);
  assert.deepEqual(body.id, id);
  assert.deepEqual(Object.keys(body.error), ['code', 'message', 'data']);
  const info = body.error.data.at(-1);
  assert.equal(info?.['@type'], 'type.googleapis.com/google.rpc.ErrorInfo');
  assert.equal(info['domain'], 'a2a-protocol.org');
  assert.equal(info.metadata?.['requestId'], answer.headers['x-request-id']);
  for (const value of Object.values(info.metadata ?? {})) assert.equal(typeof value, 'string');
  return body.error;
}
