import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { envelopeOf, exchange, head, statusOf } from '../server/http/raw.ts';
import { openPassthroughTestbed, type PassthroughTestbed, startRawMerchant } from './testbed.ts';

const MIB = 1_048_576;

/** What a merchant that speaks as the test says is sent, and what a caller gets for it. */
async function withRawMerchant(
  answer: string,
  use: (testbed: PassthroughTestbed, got: () => string) => Promise<void>,
): Promise<void> {
  let got = '';
  const merchant = await startRawMerchant((socket) => {
    socket.on('data', (chunk: Buffer) => {
      got += chunk.toString('latin1');
      if (got.includes('\r\n\r\n')) socket.end(answer, 'latin1');
    });
  });
  const testbed = await openPassthroughTestbed({ backendUrl: merchant.url });
  try {
    await use(testbed, () => got);
  } finally {
    await testbed.close();
    merchant.close();
  }
}

describe('a backend that does not answer well', () => {
  for (const [what, answer, reason] of [
    ['status 99', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n', 'backend_status'],
    ['status 600', 'HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n', 'backend_status'],
    ['402', 'HTTP/1.1 402 Pay me\r\nContent-Length: 0\r\n\r\n', 'backend_payment_required'],
    ['a coding of its own', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 'backend_framing'],
    [
      'a 101 that was not asked for',
      'HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      'backend_upgrade',
    ],
  ] as const)
    it(`answers 502 for ${what}`, () =>
      withRawMerchant(answer, async ({ url, metric }) => {
        const got = await exchange(url, [
          head(['GET /free HTTP/1.1', 'Host: a', 'Connection: Upgrade, close', 'Upgrade: h2c']),
        ]);
        assert.equal(statusOf(got), 502);
        assert.equal(envelopeOf(got)['code'], 'BACKEND_ERROR');
        assert.equal(envelopeOf(got)['reason'], reason);
        assert.match(await metric('acg_passthrough_requests_total{end="unusable"}'), / 1$/);
      }));

  it('relays one whose reason phrase, trailers or connection fields are not for the caller', () =>
    withRawMerchant(
      'HTTP/1.1 200 O\x01K\r\nTrailer: X\r\nContent-Length: 2\r\nConnection: X-Own\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\n' +
        'Payment-Response: forged\r\nX-Payment: forged\r\nAgent_Commerce_Payer: forged\r\nX-Request-Id: theirs\r\n\r\nok',
      async ({ url }) => {
        const got = await exchange(url, [
          head(['GET /free HTTP/1.0', 'Host: a', 'X-Request-Id: mine', 'Connection: close']),
        ]);
        assert.equal(statusOf(got), 200);
        assert.doesNotMatch(got, /forged|theirs|trailer|x-own|keep-alive/i);
        assert.match(got, /x-request-id: mine\r\n/i);
      },
    ));

  it('answers 502 with the envelope, or with a page, when nothing listens, and the process goes on', async () => {
    const merchant = await startRawMerchant(() => undefined);
    merchant.close();
    const testbed = await openPassthroughTestbed({ backendUrl: merchant.url });
    try {
      const dead = await fetch(`${testbed.url}/free`, { method: 'POST', body: 'x'.repeat(200_000) });
      assert.equal(dead.status, 502);
      assert.equal(((await dead.json()) as { code: string }).code, 'BACKEND_ERROR');
      const page = await fetch(`${testbed.url}/free`, {
        headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
      });
      assert.equal(page.status, 502);
      assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
      assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none';/);
      assert.equal(page.headers.get('cache-control'), 'no-store');
      assert.doesNotMatch(await page.text(), /127\.0\.0\.1|ECONNREFUSED|<script/);
      assert.match(await testbed.metric('acg_passthrough_requests_total{end="unreachable"}'), / 2$/);
      assert.equal((await testbed.passedLines(2)).length, 2);
    } finally {
      await testbed.close();
    }
  });

  it('answers 502 with a head of its own when the first bytes of a body are broken', () =>
    withRawMerchant(
      'HTTP/1.1 200 Fine\r\nContent-Encoding: gzip\r\nSet-Cookie: sid=1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n',
      async (testbed) => {
        const got = await exchange(testbed.url, [head(['GET /free HTTP/1.1', 'Host: a', 'Connection: close'])]);
        assert.match(got, /^HTTP\/1\.1 502 Bad Gateway\r\n/);
        assert.doesNotMatch(got, /content-encoding|set-cookie/i);
        assert.equal(envelopeOf(got)['code'], 'BACKEND_ERROR');
      },
    ));

  it('answers 502 when the connection is reset, before the head and while the body is sent', () =>
    withReset(async ({ url }) => {
      for (const body of ['', 'x'.repeat(MIB)])
        assert.equal((await fetch(`${url}/free`, { method: 'POST', body })).status, 502);
    }));
});

async function withReset(use: (testbed: PassthroughTestbed) => Promise<void>): Promise<void> {
  const merchant = await startRawMerchant((socket) => socket.once('data', () => socket.resetAndDestroy()));
  const testbed = await openPassthroughTestbed({ backendUrl: merchant.url });
  try {
    await use(testbed);
  } finally {
    await testbed.close();
    merchant.close();
  }
}
