import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { createExchange } from '../../src/backend/backend-connection.ts';
import { type BackendFailure, classify } from '../../src/backend/backend-exchange.ts';
import { CONNECT_TIMEOUT_MS } from '../../src/backend/connection-pool.ts';
import { answering, call, GET, LIMITS, lost, notSent, POST, refusingOrigin, silent, withBackend } from './call.ts';
import { openFullListener } from './full-listener.ts';
import { answer, type Script } from './raw-backend.ts';

const MIB = 1_048_576;
/** More than the buffers of kernel and gateway take together. */
const LARGE_BYTES = 16 * MIB;
const OK = 'HTTP/1.1 200 OK\r\n';

/** The cap that the rows are written for, bytes. */
const CAP_BYTES = 1_000;
/** The total deadline of the rows that pass it, and of the others, milliseconds. */
const TIMEOUT_MS = 150;
const PATIENCE_MS = 10_000;
/** Between two bytes of a slow answer: well below any usual inactivity limit. */
const TRICKLE_MS = 10;

type Expected =
  | { readonly status: number; readonly body: string; readonly socket: 'kept' | 'gone' }
  | { readonly at: 'head' | 'body'; readonly reason: BackendFailure };

const answered = (status: number, body = '', socket: 'kept' | 'gone' = 'kept'): Expected => ({ status, body, socket });
const broken = (at: 'head' | 'body', reason: BackendFailure = 'transport'): Expected => ({ at, reason });

function trickle(head: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write('x'), TRICKLE_MS);
    socket.once('close', () => clearInterval(timer));
  };
}
function chunks(...parts: readonly string[]): string {
  return parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
}
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const big = 'x'.repeat(CAP_BYTES);

/** What a backend may answer, good and bad: bytes to write, or what to do with the socket. */
const ROWS: readonly (readonly [rule: string, answer: string | ((socket: Socket) => void), expect: Expected])[] = [
  ['a body with a length', `${OK}content-length: 5\r\n\r\nhello`, answered(200, 'hello')],
  ['a chunked body', `${CHUNKED}${chunks('hel', 'lo')}0\r\n\r\n`, answered(200, 'hello')],
  [
    'a chunked body with trailers, which are dropped',
    `${CHUNKED}${chunks('hello')}0\r\npayment-response: forged\r\n\r\n`,
    answered(200, 'hello'),
  ],
  [
    'a body that ends with the connection',
    (socket) => socket.end(`${OK}connection: close\r\n\r\nhello`),
    answered(200, 'hello', 'gone'),
  ],
  ['an HTTP/1.0 answer', (socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nhello'), answered(200, 'hello', 'gone')],
  [
    '103 before the answer is ignored',
    `HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n${OK}content-length: 5\r\n\r\nhello`,
    answered(200, 'hello'),
  ],
  ['204 is empty', 'HTTP/1.1 204 No Content\r\n\r\n', answered(204)],
  [
    '204 that declares a length is empty, and its connection is not trusted again',
    'HTTP/1.1 204 No Content\r\ncontent-length: 99999\r\n\r\n',
    answered(204, '', 'gone'),
  ],
  ['an empty body', `${OK}content-length: 0\r\n\r\n`, answered(200)],
  [
    '302 to itself is answered once and not followed',
    'HTTP/1.1 302 Found\r\nlocation: /reports/rome\r\ncontent-length: 0\r\n\r\n',
    answered(302),
  ],
  [
    '402 comes back as a status like any other',
    'HTTP/1.1 402 Payment Required\r\ncontent-length: 3\r\n\r\npay',
    answered(402, 'pay'),
  ],
  [
    'bytes after the declared length are no part of the answer',
    `${OK}content-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged`,
    answered(200, 'hello', 'gone'),
  ],
  ['a body of exactly the cap, declared', `${OK}content-length: ${CAP_BYTES}\r\n\r\n${big}`, answered(200, big)],
  ['a body of exactly the cap, undeclared', `${CHUNKED}${chunks(big)}0\r\n\r\n`, answered(200, big)],
  [
    'a declared length one byte above the cap fails before the first byte',
    `${OK}content-length: ${CAP_BYTES + 1}\r\n\r\n${big}x`,
    broken('head', 'response_too_large'),
  ],
  [
    'a declared length beyond any number fails before the first byte',
    `${OK}content-length: 9007199254740993\r\n\r\n`,
    broken('head', 'response_too_large'),
  ],
  [
    'an undeclared excess of one byte cuts the answer',
    `${CHUNKED}${chunks(big, 'x')}0\r\n\r\n`,
    broken('body', 'response_too_large'),
  ],
  [
    'an endless body is cut at the cap',
    (socket) => {
      socket.write(`${OK}connection: close\r\n\r\n`);
      const more = (): void => {
        while (!socket.destroyed && socket.write(big));
      };
      socket.on('drain', more);
      more();
    },
    broken('body', 'response_too_large'),
  ],
  ['silence', () => {}, broken('head', 'timeout')],
  ['a head that never ends', trickle(`${OK}x-slow: `), broken('head', 'timeout')],
  [
    'a byte at a time, each in time, the last one not',
    trickle(`${OK}content-length: 900\r\n\r\n`),
    broken('body', 'timeout'),
  ],
  [
    'interim answers without end',
    (socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), TRICKLE_MS);
      socket.once('close', () => clearInterval(timer));
    },
    broken('head', 'timeout'),
  ],
  ['closing without an answer', (socket) => socket.end(), broken('head')],
  ['reset on a fresh connection', (socket) => socket.resetAndDestroy(), broken('head')],
  ['half a head', (socket) => socket.end(`${OK}content-len`), broken('head')],
  ['fewer bytes than declared', (socket) => socket.end(`${OK}content-length: 9\r\n\r\nhello`), broken('body')],
  [
    'fewer bytes than declared on a connection announced to close',
    (socket) => socket.end(`${OK}connection: close\r\ncontent-length: 9\r\n\r\nhello`),
    broken('body'),
  ],
  ['a chunked body without its end', (socket) => socket.end(`${CHUNKED}${chunks('hello')}`), broken('body')],
  [
    '101 to a request that asked for nothing',
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    broken('head'),
  ],
  ['101 without Upgrade', 'HTTP/1.1 101 Switching\r\n\r\n', broken('head')],
  [
    '100 to a request that expected none',
    `HTTP/1.1 100 Continue\r\n\r\n${OK}content-length: 0\r\n\r\n`,
    broken('head'),
  ],
  ['garbage', '\x16\x03\x01 not HTTP at all\r\n\r\n', broken('head')],
  ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n', broken('head')],
  ['garbage as chunk size', `${CHUNKED}zz\r\nhello\r\n`, broken('body')],
  ['a header block of 20 KB', `${OK}x-large: ${'a'.repeat(20_000)}\r\ncontent-length: 0\r\n\r\n`, broken('head')],
  ['two lengths', `${OK}content-length: 5\r\ncontent-length: 6\r\n\r\nhello!`, broken('head')],
  [
    'a length and chunks at once',
    `${OK}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    broken('head'),
  ],
  ['a negative length', `${OK}content-length: -1\r\n\r\n`, broken('head')],
];

describe('what the backend may answer', () => {
  for (const [rule, answer, expect] of ROWS) {
    it(rule, async () => {
      const script = typeof answer === 'string' ? (socket: Socket) => void socket.write(answer) : answer;
      await withBackend(script, async (connection, backend) => {
        const isLate = 'reason' in expect && expect.reason === 'timeout';
        const limits = { timeoutMs: isLate ? TIMEOUT_MS : PATIENCE_MS, maxResponseBytes: CAP_BYTES };
        const startedAt = performance.now();
        const got = await call(connection, undefined, limits);
        if (isLate) assert.ok(performance.now() - startedAt >= TIMEOUT_MS - 5);
        if ('reason' in expect) {
          assert.deepEqual(got, lost(expect.reason, expect.at));
        } else {
          assert.ok(got.kind === 'answer', JSON.stringify(got));
          assert.deepEqual(
            { status: got.status, body: got.body.toString() },
            { status: expect.status, body: expect.body },
          );
        }
        const kept = 'socket' in expect && expect.socket === 'kept';
        if (!kept) await backend.settledTo(0);
        assert.equal(backend.open(), kept ? 1 : 0);
        assert.equal(backend.requests.length, 1, 'the request went out once');
        assert.equal(connection.inFlight(), 0);
      });
    });
  }
});

describe('the body of an answer', () => {
  it('holds the backend back while the reader is slow, and loses nothing', async () => {
    const block = randomBytes(64 * 1_024);
    const blocks = 512;
    let sent = 0;
    const script = (socket: Socket): void => {
      socket.write(`${OK}content-length: ${blocks * block.length}\r\n\r\n`);
      const more = (): void => {
        while (sent < blocks) {
          sent += 1;
          if (!socket.write(block)) return;
        }
      };
      socket.on('drain', more);
      more();
    };
    await withBackend(script, async (connection) => {
      const answer = await connection.exchange(GET, { timeoutMs: 10_000, maxResponseBytes: 64 * MIB });
      // Without a reader the backend stops once the buffers of both sides and of the kernel are
      // full.
      for (let before = -1; before !== sent; await pause(50)) before = sent;
      assert.ok(sent < blocks / 2, `${sent} of ${blocks} blocks were taken from the backend`);
      const { body } = answer;
      assert.ok(body.readableLength <= 2 * 65_536, `${body.readableLength} bytes wait for the reader`);
      const hash = createHash('sha256');
      for await (const chunk of body) hash.update(chunk);
      const expected = createHash('sha256');
      for (let i = 0; i < blocks; i += 1) expected.update(block);
      assert.equal(hash.digest('hex'), expected.digest('hex'));
    });
  });

  const large = (socket: Socket): void => {
    socket.write(`${OK}content-length: ${LARGE_BYTES}\r\n\r\n`);
    socket.write(Buffer.alloc(LARGE_BYTES));
  };

  it('does not count the time in which a slow reader holds the backend back', async () => {
    await withBackend(large, async (connection) => {
      const { body } = await connection.exchange(GET, { timeoutMs: 2_000, maxResponseBytes: LARGE_BYTES });
      await pause(3_000);
      let size = 0;
      for await (const chunk of body) size += chunk.length;
      assert.equal(size, LARGE_BYTES);
    });
  });

  for (const [rule, read] of [
    ['takes nothing', (body: Readable) => body.toArray()],
    // Each pause is short, and the sum of them counts.
    [
      'pauses behind every piece',
      async (body: Readable) => {
        for await (const _ of body) await pause(20);
      },
    ],
  ] as const)
    it(`does not wait for ever for a reader that ${rule}`, async () => {
      await withBackend(large, async (connection, backend) => {
        const { body } = await connection.exchange(GET, {
          timeoutMs: 5_000,
          maxResponseBytes: LARGE_BYTES,
          readerHoldMs: 150,
        });
        if (rule === 'takes nothing') await backend.settledTo(0);
        await assert.rejects(read(body), { reason: 'timeout' });
        assert.equal(connection.inFlight(), 0);
      });
    });

  for (const [rule, head] of [
    ['with a length', `${OK}content-length: 9\r\n\r\n`],
    ['in chunks', `${OK}transfer-encoding: chunked\r\n\r\n5\r\n`],
    ['that would end with the connection', `${OK}connection: close\r\n\r\n`],
  ] as const) {
    it(`fails when a reset cuts a body ${rule}`, async () => {
      let peer: Socket | undefined;
      const script = (socket: Socket): void => {
        peer = socket;
        socket.write(`${head}hello`);
      };
      await withBackend(script, async (connection) => {
        const { body } = await connection.exchange(GET, LIMITS);
        const [first] = await once(body, 'data');
        assert.equal(first.toString(), 'hello');
        peer?.resetAndDestroy();
        await assert.rejects(once(body, 'end'), { reason: 'transport' });
      });
    });
  }

  it('reports a failure that came before its reader, after the bytes that arrived', async () => {
    const script = (socket: Socket): void => {
      socket.end(`${OK}transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n`);
    };
    await withBackend(script, async (connection, backend) => {
      const broken = await connection.exchange(GET, LIMITS);
      await backend.settledTo(0);
      await pause(20);
      assert.equal(broken.whole, undefined);
      const { body } = broken;
      const seen: string[] = [];
      body.on('data', (chunk) => {
        seen.push(String(chunk));
        body.pause();
        setImmediate(() => body.resume());
      });
      await assert.rejects(once(body, 'end'), { reason: 'transport' });
      assert.deepEqual(seen, ['he', 'llo']);
    });
  });

  it('frees the socket of a reader that gives up', async () => {
    const script = (socket: Socket): void => {
      socket.write(`${OK}content-length: 900\r\n\r\nhello`);
    };
    await withBackend(script, async (connection, backend) => {
      const { body } = await connection.exchange(GET, LIMITS);
      body.destroy();
      assert.equal(connection.inFlight(), 0);
      await backend.settledTo(0);
      assert.equal(body.errored, null);
    });
  });

  it('that came whole leaves its socket in the pool, read or not', async () => {
    await withBackend(answering, async (connection, backend) => {
      const { body } = await connection.exchange(GET, LIMITS);
      await pause(20);
      body.destroy();
      assert.equal(connection.inFlight(), 0);
      assert.equal((await call(connection)).kind, 'answer');
      assert.equal(backend.accepted(), 1);
    });
  });
});

describe('an answer that is there as a whole', () => {
  for (const [rule, bytes, is] of [
    ['empty', 0, true],
    ['of a byte less than 64 KiB', 65_535, true],
    ['of 64 KiB, which is only a stream', 65_536, false],
  ] as const)
    it(rule, () =>
      withBackend(
        (socket) => answer(socket, Buffer.alloc(bytes)),
        async (connection) => {
          const got = await connection.exchange(GET, { ...LIMITS, maxResponseBytes: MIB });
          if (is) while (connection.inFlight() > 0) await pause(1);
          else await pause(20);
          assert.equal(got.whole?.byteLength, is ? bytes : undefined);
          assert.equal(Buffer.concat(await got.body.toArray()).byteLength, bytes);
          assert.equal(got.whole, undefined, 'the bytes are those of the body now');
        },
      ),
    );

  it('is not while its rest is on its way, and is then, however often that is asked', async () => {
    const rest = Promise.withResolvers<void>();
    const script: Script = (socket) => {
      socket.write(`${OK}content-length: 5\r\n\r\nhel`);
      void rest.promise.then(() => socket.write('lo'));
    };
    await withBackend(script, async (connection) => {
      const got = await connection.exchange(GET, LIMITS);
      assert.equal(got.whole, undefined);
      rest.resolve();
      while (connection.inFlight() > 0) await pause(1);
      for (const whole of [got.whole, got.whole]) assert.equal(String(whole), 'hello');
    });
  });
});

describe('a backend that cannot be reached', () => {
  it('refuses: nothing was written', async () => {
    const connection = createExchange({ origin: await refusingOrigin() });
    const got = await call(connection, POST);
    assert.deepEqual(got, notSent('unreachable'));
    assert.equal(connection.inFlight(), 0);
    await connection.close();
  });

  it('does not take the connection: given up after the connect deadline, inside the total one', async () => {
    const listener = await openFullListener('127.0.0.1');
    const connection = createExchange({ origin: `http://127.0.0.1:${listener.port}` });
    const startedAt = performance.now();
    const [patient, hurried] = await Promise.all([
      call(connection, POST, { timeoutMs: 10_000 }),
      call(connection, POST, { timeoutMs: 100 }),
    ]);
    const tookMs = performance.now() - startedAt;
    assert.deepEqual(patient, notSent('unreachable'));
    assert.deepEqual(hurried, notSent('timeout'));
    assert.ok(tookMs >= CONNECT_TIMEOUT_MS - 5 && tookMs < CONNECT_TIMEOUT_MS + 500, `took ${tookMs} ms`);
    await connection.close();
    await listener.close();
  });
});

describe('closing', () => {
  it('waits for the running exchange and then leaves no socket', async () => {
    let peer: Socket | undefined;
    const script: Script = (socket) => {
      peer = socket;
    };
    await withBackend(script, async (connection, backend) => {
      const running = call(connection);
      await backend.nextRequest();
      const closed = connection.close();
      assert.equal(connection.inFlight(), 1);
      if (peer !== undefined) answer(peer);
      assert.equal((await running).kind, 'answer');
      await closed;
      await backend.settledTo(0);
    });
  });
});

describe('an abort by the caller', () => {
  it('before the call: nothing is sent', async () => {
    await withBackend(silent, async (connection, backend) => {
      const got = await call(connection, GET, { signal: AbortSignal.abort() });
      assert.deepEqual(got, notSent('aborted'));
      assert.equal(backend.accepted(), 0);
      assert.equal(connection.inFlight(), 0);
    });
  });

  it('while the connection is being opened: the request is never written', async () => {
    await withBackend(answering, async (connection, backend) => {
      const leaving = new AbortController();
      const got = call(connection, POST, { signal: leaving.signal });
      leaving.abort();
      assert.deepEqual(await got, notSent('aborted'));
      assert.equal((await call(connection)).kind, 'answer');
      await pause(20);
      assert.deepEqual(
        backend.requests.map(({ head }) => head.split(' ')[0]),
        ['GET'],
      );
    });
  });

  for (const [at, script] of [
    ['head', silent],
    ['body', (socket: Socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello')],
  ] as const) {
    it(`while the ${at} is on its way: the backend's connection ends`, async () => {
      await withBackend(script, async (connection, backend) => {
        const leaving = new AbortController();
        const got = call(connection, GET, { signal: leaving.signal });
        await backend.nextRequest();
        // The bytes of the answer are on the wire; let them arrive.
        for (let turns = 0; turns < 10; turns += 1) await new Promise(setImmediate);
        leaving.abort();
        assert.deepEqual(await got, lost('aborted', at));
        await backend.settledTo(0);
        assert.equal(connection.inFlight(), 0);
      });
    });
  }

  it('after the answer changes nothing', async () => {
    const leaving = new AbortController();
    await withBackend(answering, async (connection) => {
      const { body } = await connection.exchange(GET, { ...LIMITS, signal: leaving.signal });
      await new Promise(setImmediate);
      leaving.abort();
      assert.equal(Buffer.concat(await body.toArray()).toString(), 'ok');
    });
  });
});

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

describe('what a status of the backend means', () => {
  for (const [kind, statuses, relayed, conditional] of [
    ['deliver', [200, 201, 202, 204, 206, 299], [], false],
    ['redirect', [300, 301, 302, 303, 304, 307, 308, 399], [302, 304], false],
    ['fail', [400, 401, 402, 403, 404, 409, 412, 416, 429, 499], [], false],
    ['fail', [500, 502, 503, 599], [500, 503], false],
    ['deliver', [404, 409], [404, 409], false],
    ['fail', [402], [402], false],
    ['fail', [199, 600, 999], [199, 600, 999], false],
    ['deliver', [200, 304, 412, 416], [], true],
    ['redirect', [301], [], true],
    ['fail', [402, 404, 500], [], true],
  ] as const)
    it(`${kind}: ${statuses.join(', ')}${relayed.length === 0 ? '' : ', all relayed'}${conditional ? ', with a condition' : ''}`, () => {
      for (const status of statuses) assert.equal(classify(status, relayed, conditional), kind, `${status}`);
    });
});
