import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { beforeEach, describe, it } from 'node:test';
import { MAX_BUFFERED_BYTES, readContent, withContent } from '../../../src/adapters/json-rpc/answer-content.ts';
import {
  ANSWER_BUFFER_BYTES,
  type BackendAnswer,
  BackendError,
  type BackendFailure,
} from '../../../src/backend/backend-exchange.ts';
import type { Relayed } from '../../../src/pipeline/call.ts';
import { captureAnswer, readOn } from '../../../src/pipeline/middleware/deliver.ts';
import { type AnswerBudget, createAnswerBudget, FREE_WAIT_MS } from '../../../src/server/limits/load-shedding.ts';
import { type VirtualTime, virtualTime } from '../../payments/settlement/virtual-time.ts';

const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const LATIN = Buffer.from('Grüß', 'latin1');

describe('the answer of a backend as content', () => {
  it('JSON keeps its spelling beside its value', () => {
    const text = '{ "id": 12345678901234567890, "price": 1.10 }';
    const content = readContent(utf8(text), 'application/json; charset=utf-8', undefined);
    assert.deepEqual(content, { kind: 'json', text, value: JSON.parse(text) });
  });
  it('a +json type is JSON, and so is JSON without a type', () => {
    for (const type of ['application/problem+json', 'application/vnd.x+json;v=1', undefined])
      assert.equal(readContent(utf8('[1]'), type, undefined).kind, 'json');
  });
  it('malformed JSON is text', () => {
    assert.deepEqual(readContent(utf8('{oops'), 'application/json', undefined), {
      kind: 'text',
      text: '{oops',
      mediaType: 'application/json',
    });
  });
  it('text is read in its charset, and anything else is bytes', () => {
    const read = readContent(LATIN, 'text/plain; charset=iso-8859-1', undefined);
    assert.equal(read.kind === 'text' && read.text, 'Grüß');
    assert.equal(readContent(LATIN, 'text/plain', undefined).kind, 'bytes');
    assert.equal(readContent(utf8('x'), 'text/plain; charset=none-such', undefined).kind, 'bytes');
    assert.equal(readContent(LATIN, undefined, undefined).kind, 'bytes');
  });
  it('text with control characters is bytes', () => {
    assert.equal(readContent(utf8('a\u0001b'), 'text/plain', undefined).kind, 'bytes');
    assert.equal(readContent(utf8('a\tb\r\nc\u001b[0m'), 'text/plain', undefined).kind, 'text');
  });
  it('any other type is bytes, with their type', () => {
    assert.deepEqual(readContent(Buffer.from([0, 255]), 'image/png', undefined), {
      kind: 'bytes',
      base64: 'AP8=',
      mediaType: 'image/png',
      contentEncoding: undefined,
    });
  });
  it('compressed JSON stays bytes, with its coding', () => {
    const content = readContent(utf8('x'), 'application/json', 'gzip');
    assert.equal(content.kind === 'bytes' && content.contentEncoding, 'gzip');
    assert.equal(readContent(utf8('1'), 'application/json', 'identity').kind, 'json');
  });
  it('an answer without bytes is empty', () => {
    assert.deepEqual(readContent(Buffer.alloc(0), 'application/json', undefined), { kind: 'empty' });
  });
});

const FREE = { paid: false };

/** An answer of so many bytes in pieces of 16 KiB, with or without its length in the head. */
function answerOf(bytes: number, declared: boolean): BackendAnswer {
  const pieces = Math.ceil(bytes / 16_384);
  const body = Readable.from(
    Array.from({ length: pieces }, (_, at) => Buffer.alloc(Math.min(16_384, bytes - at * 16_384), 'x')),
    { objectMode: false },
  );
  return { status: 200, headers: declared ? { 'content-length': String(bytes) } : {}, body };
}

describe('the memory for a whole answer', () => {
  let time: VirtualTime;
  let budget: AnswerBudget;
  let reservedWhileSending: number | undefined;
  const send = async (): Promise<Relayed> => {
    reservedWhileSending = budget.taken;
    return { kind: 'finished' };
  };
  beforeEach(() => {
    time = virtualTime();
    budget = createAnswerBudget(MAX_BUFFERED_BYTES, time);
    reservedWhileSending = undefined;
  });

  const SIZES: readonly (readonly [string, number, boolean, number])[] = [
    ['declared, of a size that needs none', ANSWER_BUFFER_BYTES, true, 0],
    ['declared and larger: its length', ANSWER_BUFFER_BYTES + 1, true, ANSWER_BUFFER_BYTES + 1],
    ['undeclared and small', ANSWER_BUFFER_BYTES, false, 0],
    ['undeclared and larger: the largest size', ANSWER_BUFFER_BYTES + 1, false, MAX_BUFFERED_BYTES],
  ];
  for (const [title, bytes, declared, reserved] of SIZES)
    it(`is reserved until the answer is sent, ${title}`, async () => {
      assert.deepEqual(await withContent(answerOf(bytes, declared), { budget, ...FREE }, send), { kind: 'finished' });
      assert.deepEqual([reservedWhileSending, budget.taken], [reserved, 0]);
    });

  const ENDS: readonly (readonly [string, BackendFailure, Relayed['kind']])[] = [
    ['breaks off', 'transport', 'broken'],
    ['is too slow', 'timeout', 'broken'],
    ['is aborted because the caller left', 'aborted', 'client_gone'],
  ];
  for (const [title, reason, kind] of ENDS)
    it(`is released when the answer ${title}`, async () => {
      const body = new PassThrough();
      const answer = { status: 200, headers: { 'content-length': '100000' }, body };
      const relayed = withContent(answer, { budget, ...FREE }, send);
      body.write('half');
      queueMicrotask(() => body.destroy(new BackendError(reason, true)));
      assert.equal((await relayed).kind, kind);
      assert.deepEqual([reservedWhileSending, budget.taken], [undefined, 0], 'nothing was sent');
    });

  it('is released when the message cannot be sent', async () => {
    const bug = new Error('cannot be written');
    await assert.rejects(
      withContent(answerOf(100_000, true), { budget, ...FREE }, () => Promise.reject(bug)),
      bug,
    );
    assert.equal(budget.taken, 0);
  });

  for (const declared of [true, false])
    it(`without memory nothing is sent, and the answer can still be kept, ${declared ? '' : 'un'}declared`, async () => {
      const held = await budget.wait({ rank: 'free', size: MAX_BUFFERED_BYTES });
      const answer = answerOf(200_000, declared);
      const collected = captureAnswer(answer);
      const relayed = withContent(answer, { budget, ...FREE }, send);
      while (budget.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
      await time.pass(FREE_WAIT_MS);
      assert.deepEqual(await relayed, { kind: 'busy' });
      await readOn(answer.body);
      assert.equal(collected().answer?.body.byteLength, 200_000);
      assert.equal(reservedWhileSending, undefined);
      held?.leave();
      assert.equal(budget.taken, 0);
    });
});
