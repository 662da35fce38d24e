import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BackendError } from '../../src/backend/exchange.ts';
import { ReceivedAnswer } from '../../src/backend/received-answer.ts';
import { GET, LIMITS, withBackend } from './call.ts';
import { answer } from './raw-backend.ts';

const SHORT_BYTES = 65_536;

function received() {
  const asked: ('resume' | 'abandon')[] = [];
  const source = { resume: () => void asked.push('resume'), abandon: () => void asked.push('abandon') };
  return { answer: new ReceivedAnswer(200, {}, source), asked };
}

describe('an answer of the backend', () => {
  it('is whole once its last byte is there, however often that is asked', () => {
    const { answer } = received();
    answer.accept(Buffer.from('hel'));
    assert.equal(answer.whole, undefined);
    answer.accept(Buffer.from('lo'));
    answer.complete();
    assert.equal(String(answer.whole), 'hello');
    assert.equal(String(answer.whole), 'hello');
  });
  it('without a byte is whole and empty', () => {
    const { answer } = received();
    answer.complete();
    assert.equal(answer.whole?.byteLength, 0);
  });
  it('is no longer whole once its body was asked for, which has all bytes', async () => {
    const { answer } = received();
    answer.accept(Buffer.from('hel'));
    answer.accept(Buffer.from('lo'));
    answer.complete();
    assert.equal(String(Buffer.concat(await answer.body.toArray())), 'hello');
    assert.equal(answer.whole, undefined);
  });
  for (const [rule, bytes, whole] of [
    ['of 64 KiB is whole', SHORT_BYTES, true],
    ['of a byte more is not', SHORT_BYTES + 1, false],
  ] as const)
    it(rule, () => {
      const { answer } = received();
      answer.accept(Buffer.alloc(bytes));
      answer.complete();
      assert.equal(answer.whole !== undefined, whole);
    });
  it('that broke off is not whole, and its body fails once it is read', async () => {
    const { answer } = received();
    answer.accept(Buffer.from('hel'));
    answer.fail(new BackendError('transport', true));
    assert.equal(answer.whole, undefined);
    await assert.rejects(answer.body.toArray(), { reason: 'transport' });
  });
  it('takes no more than 64 KiB before its body is asked for, and asks for the rest when it is read', async () => {
    const { answer, asked } = received();
    assert.equal(answer.accept(Buffer.alloc(SHORT_BYTES - 1)), true);
    assert.equal(answer.accept(Buffer.alloc(1)), false);
    assert.equal(asked.length, 0);
    const { body } = answer;
    body.resume();
    await new Promise((resolve) => body.once('data', resolve));
    assert.equal(asked[0], 'resume');
    body.destroy();
  });
});

describe('the exchange', () => {
  it('hands over an answer that came in one piece as a whole', () =>
    withBackend(
      (socket) => answer(socket, 'hello'),
      async ({ exchange }) => assert.equal(String((await exchange(GET, LIMITS)).whole), 'hello'),
    ));
  it('hands over the head alone of an answer whose body is still on its way', async () => {
    const rest = Promise.withResolvers<void>();
    await withBackend(
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel');
        void rest.promise.then(() => socket.write('lo'));
      },
      async ({ exchange }) => {
        const early = await exchange(GET, LIMITS);
        assert.equal(early.whole, undefined);
        const { body } = early;
        rest.resolve();
        assert.equal(String(Buffer.concat(await body.toArray())), 'hello');
      },
    );
  });
});
