import assert from 'node:assert/strict';
import type { LookupFunction } from 'node:net';
import { describe, it } from 'node:test';
import { createExchange } from '../../src/backend/backend-connection.ts';
import { BackendError } from '../../src/backend/backend-exchange.ts';
import { allowedAddresses, isForbiddenAddress } from '../../src/backend/forbidden-addresses.ts';
import { call, notSent, POST } from './call.ts';
import { answer, rawBackend } from './raw-backend.ts';

const FORBIDDEN = [
  ...['169.254.0.0', '169.254.169.254', '169.254.255.255', '100.100.100.200', '192.0.0.192', '168.63.129.16'],
  ...['0.0.0.0', '0.255.255.255', '224.0.0.1', '255.255.255.255'],
  ...['fe80::1', 'fe80::1%eth0', 'febf:ffff::1', 'fd00:ec2::254', '::', 'ff02::1'],
  ...['::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '::ffff:100.100.100.200', '64:ff9b::169.254.169.254'],
  ...['64:ff9b::a9fe:a9fe', '64:ff9b::100.100.100.200', '::ffff:0.0.0.0'],
];
const ALLOWED = [
  ...['127.0.0.1', '10.0.0.5', '169.253.255.255', '169.255.0.0', '100.100.100.199', '100.100.100.201', '1.0.0.0'],
  ...['223.255.255.255', '192.0.0.191', '168.63.129.17', '::1', 'fe7f::1', 'fec0::1', 'fd00:ec2::253', '2001:db8::1'],
  ...['::ffff:127.0.0.1', '::ffff:10.0.0.5', '64:ff9b::10.0.0.5'],
];

/** Resolves every name to these addresses, a list for each call; the last is for all later ones. */
function resolver(...answers: readonly (readonly string[])[]): LookupFunction {
  let asked = 0;
  return (_name, options, callback) => {
    const addresses = answers[Math.min(asked, answers.length - 1)] ?? [];
    asked += 1;
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    assert.equal(options.all, true);
    process.nextTick(() => callback(null, found));
  };
}

describe('an address of a backend', () => {
  for (const address of FORBIDDEN)
    it(`is never ${address}`, () => {
      assert.equal(isForbiddenAddress(address), true);
    });
  for (const address of ALLOWED)
    it(`may be ${address}`, () => {
      assert.equal(isForbiddenAddress(address), false);
    });
});

describe('a name of a backend', () => {
  const look = (answers: readonly string[], all: boolean): Promise<unknown> =>
    new Promise((resolve, reject) =>
      allowedAddresses(resolver(answers))('merchant.example', { all }, (error, found, family) =>
        error === null ? resolve(all ? found : [found, family]) : reject(error),
      ),
    );

  it('resolves to its allowed addresses only', async () => {
    const answers = ['169.254.169.254', '127.0.0.1', 'fe80::1', '::1'];
    assert.deepEqual(await look(answers, true), [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
    assert.deepEqual(await look(answers, false), ['127.0.0.1', 4]);
  });

  it('with forbidden addresses only, or none, is refused', async () => {
    for (const answers of [['169.254.169.254'], ['fe80::1', 'fd00:ec2::254'], []])
      for (const all of [true, false]) await assert.rejects(look(answers, all), { name: 'ForbiddenAddress' });
  });

  it('that cannot be resolved fails with Node’s error, which comes without a list', async () => {
    const refused = new Promise((resolve, reject) =>
      // Two dots: the system refuses it without a query.
      allowedAddresses()('no..merchant.example', {}, (error) => (error === null ? resolve(0) : reject(error))),
    );
    await assert.rejects(refused, { syscall: 'getaddrinfo' });
  });

  it('that resolves to a metadata address later is called no more, and nothing is written: any method may be sent again', async () => {
    const backend = await rawBackend((socket) => {
      answer(socket, 'ok', 'HTTP/1.1 200 OK\r\nconnection: close');
      socket.end();
    });
    const { port } = new URL(backend.origin);
    for (const scheme of ['http', 'https']) {
      const resolve = resolver(scheme === 'http' ? ['127.0.0.1'] : ['::ffff:169.254.169.254'], ['169.254.169.254']);
      const connection = createExchange({ origin: `${scheme}://merchant.example:${port}`, resolve });
      try {
        if (scheme === 'http') assert.equal((await call(connection)).kind, 'answer');
        assert.deepEqual(await call(connection, POST), notSent('unreachable'));
        await assert.rejects(connection.exchange(POST, { timeoutMs: 1_000, maxResponseBytes: 1 }), (error) => {
          assert.ok(error instanceof BackendError && error.cause instanceof Error);
          return error.cause.name === 'ForbiddenAddress';
        });
      } finally {
        await connection.close();
      }
    }
    assert.equal(backend.accepted(), 1);
    await backend.close();
  });
});
