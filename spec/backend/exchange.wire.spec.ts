import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { call, withBackend } from './call.ts';

const OK = 'HTTP/1.1 200 OK\r\n';

describe('an answer on the wire', () => {
  it('is the same however the wire cuts and frames it', async () => {
    const framing = fc.constantFrom('length', 'chunked', 'close');
    const property = fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 3_000 }), { maxLength: 8 }),
      framing,
      fc.integer({ min: 1, max: 5_000 }),
      async (parts, frame, cut) => {
        const whole = Buffer.concat(parts);
        const wire = framed(parts, whole, frame);
        const script = async (socket: Socket): Promise<void> => {
          for (let at = 0; at < wire.length; at += cut) {
            socket.write(wire.subarray(at, at + cut));
            await new Promise(setImmediate);
          }
          if (frame === 'close') socket.end();
        };
        await withBackend(script, async (connection) => {
          const got = await call(connection);
          assert.ok(got.kind === 'answer', JSON.stringify(got));
          assert.ok(got.body.equals(whole));
        });
      },
    );
    await fc.assert(property, { numRuns: 30 });
  });

  it('whatever bytes come, the exchange ends with an answer or a BackendError and no socket is left', async () => {
    const start = fc.constantFrom(
      '',
      'HTTP/1.1 ',
      OK,
      `${OK}content-length: 3\r\n`,
      `${OK}transfer-encoding: chunked\r\n\r\n`,
    );
    await fc.assert(
      fc.asyncProperty(start, fc.uint8Array({ maxLength: 200 }), async (head, noise) => {
        const script = (socket: Socket): void => {
          socket.write(head);
          socket.end(noise);
        };
        await withBackend(script, async (connection, backend) => {
          const got = await call(connection);
          assert.ok(got.kind === 'answer' || got.reason === 'transport', JSON.stringify(got));
          assert.equal(connection.inFlight(), 0);
          await backend.settledTo(0);
        });
      }),
      { numRuns: 60 },
    );
  });
});

function framed(parts: readonly Uint8Array[], whole: Uint8Array, frame: string): Buffer {
  if (frame === 'length') return Buffer.concat([Buffer.from(`${OK}content-length: ${whole.length}\r\n\r\n`), whole]);
  if (frame === 'close') return Buffer.concat([Buffer.from(`${OK}connection: close\r\n\r\n`), whole]);
  const chunks = parts.flatMap((part) => [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]);
  return Buffer.concat([Buffer.from(`${OK}transfer-encoding: chunked\r\n\r\n`), ...chunks, Buffer.from('0\r\n\r\n')]);
}
