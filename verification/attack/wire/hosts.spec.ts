import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { attack } from '../catalogue.ts';
import { formOf } from '../forms.ts';
import { openTarget, type Target } from '../target.ts';
import { answerTo } from './conversation.ts';
import { head, JSON_TYPE } from './framing-case.ts';
import type { WireAnswer } from './http-bytes.ts';

const SERVED = 'shop.example:8443';
/** Host names that a page or a proxy may send to the gateway. */
const FOREIGN = [
  'evil.test',
  'shop.example',
  'shop.example:80',
  'shop.example:8443.evil.test',
  'evil.test:8443',
  'shop.example:8443, evil.test',
  'shop.example.:8443',
  '127.0.0.1:8443',
  'localhost',
  '[::1]:8443',
  '',
];
const ENTRANCES: readonly (readonly [line: string, body: string])[] = [
  ['POST /mcp HTTP/1.1', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'],
  ['POST /a2a HTTP/1.1', '{"jsonrpc":"2.0","id":1,"method":"SendMessage"}'],
  ['POST /api/resources/free_echo/invoke HTTP/1.1', '{}'],
  ['GET /api/resources HTTP/1.1', ''],
  ['GET /api/receipts HTTP/1.1', ''],
  ['GET /.well-known/agent-commerce HTTP/1.1', ''],
  ['OPTIONS /mcp HTTP/1.1', ''],
];

describe('host names that are not listed', () => {
  let target: Target;
  before(async () => {
    target = await openTarget({ server: { allowedHosts: [SERVED] } });
  });
  after(() => target.stop());

  const ask = (line: string, body: string, ...lines: readonly string[]): Promise<WireAnswer> => {
    const length = body === '' ? [] : [JSON_TYPE, `Content-Length: ${body.length}`];
    return answerTo(target.url, head(line, ...length, ...lines) + body);
  };

  for (const [line, body] of ENTRANCES)
    attack('H8', `${line.slice(0, -9)} is served for the listed host, and for no other`, async () => {
      for (const host of FOREIGN) {
        const answer = await ask(line, body, `Host: ${host}`);
        assert.deepEqual([answer.status, formOf(answer)], [403, 'envelope'], host);
      }
      const own = await ask(line, body, `Host: ${SERVED.toUpperCase()}`);
      assert.notEqual(own.status, 403);
    });

  attack('H8', 'the authority of an absolute target is a Host too', async () => {
    const answer = await ask('GET http://evil.test/api/resources HTTP/1.1', '', `Host: ${SERVED}`);
    assert.equal(answer.status, 403);
  });

  attack('H8', 'a page of another origin cannot use a channel, with any Host', async () => {
    target.backend.forget();
    for (const [line, body] of ENTRANCES)
      for (const origin of ['http://evil.test', 'null', 'http://shop.example:8443.evil.test', `http://127.0.0.1:1`]) {
        const answer = await ask(line, body, `Host: ${SERVED}`, `Origin: ${origin}`);
        assert.equal(answer.status, 403, `${line} ${origin}`);
        assert.ok(![...answer.headers.keys()].some((name) => name.startsWith('access-control-')));
      }
    assert.equal(target.backend.requests.length, 0);
  });

  attack('H8', 'probes are answered without a listed Host', async () => {
    for (const path of ['/health', '/ready'])
      assert.equal((await ask(`GET ${path} HTTP/1.1`, '', 'Host: 10.1.2.3:8402')).status, 200);
  });

  attack('H8', 'the URL of the resource in an offer comes from the configuration, never from the Host', async () => {
    const open = await openTarget();
    try {
      const line = 'POST /api/resources/echo/invoke HTTP/1.1';
      const bytes = `${head(line, 'Host: evil.test', 'X-Forwarded-Host: evil.test', 'Forwarded: host=evil.test', JSON_TYPE, 'Content-Length: 2')}{}`;
      const challenge = await answerTo(open.url, bytes);
      assert.equal(challenge.status, 402);
      const required = Buffer.from(challenge.headers.get('payment-required')?.[0] ?? '', 'base64').toString();
      assert.ok(required.includes(`${open.url}/api/resources/echo/invoke`));
      assert.ok(!required.includes('evil') && !challenge.body.includes('evil'));
      const card = await answerTo(open.url, head('GET /.well-known/agent-card.json HTTP/1.1', 'Host: evil.test'));
      assert.ok(!card.body.includes('evil'));
    } finally {
      await open.stop();
    }
  });
});
