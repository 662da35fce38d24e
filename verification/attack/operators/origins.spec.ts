import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { attack } from '../catalogue.ts';
import { openTarget, type Target } from '../target.ts';
import { answerTo } from '../wire/conversation.ts';
import { HOST, head, JSON_TYPE } from '../wire/framing-case.ts';
import type { WireAnswer } from '../wire/http-bytes.ts';

const LISTED = 'https://console.example';
/** Each resembles the listed one. */
const FOREIGN = [
  'null',
  '*',
  '',
  'http://console.example',
  'https://console.example:443',
  'https://console.example:8443',
  'https://console.example/',
  'https://console.example.',
  'https://console.example.evil.test',
  'https://evil-console.example',
  'https://evil.test/https://console.example',
  'https://console.example@evil.test',
  'https://user@console.example',
  'https://console.example, https://console.example',
  'https://console%2eexample',
  'https://xn--console-.example',
  'https://console.exampl\xe9',
  'file://console.example',
  'https://sub.console.example',
];

describe('pages other than the console', () => {
  let target: Target;
  before(async () => {
    target = await openTarget({ server: { allowedOrigins: [LISTED] } });
  });
  after(() => target.stop());

  const get = (path: string, ...lines: readonly string[]): Promise<WireAnswer> =>
    answerTo(target.url, head(`GET ${path} HTTP/1.1`, HOST, `Authorization: Bearer ${target.adminToken}`, ...lines));
  const cors = ({ headers }: WireAnswer): readonly string[] =>
    [...headers.keys()].filter((name) => name.startsWith('access-control-'));

  for (const origin of FOREIGN)
    attack('O5', `Origin "${origin}" is refused with the right token, and echoed nowhere`, async () => {
      for (const path of ['/api/events', '/api/receipts', '/api/events/stream', '/api/resources']) {
        const answer = await get(path, `Origin: ${origin}`);
        assert.equal(answer.status, 403, path);
        assert.deepEqual(cors(answer), []);
        assert.ok(origin === '' || origin === '*' || !answer.body.includes(origin));
      }
    });

  attack('O5', 'the listed origin can read, without credentials of the browser', async () => {
    for (const origin of [LISTED, LISTED.toUpperCase()]) {
      const answer = await get('/api/events', `Origin: ${origin}`);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('access-control-allow-origin')?.join(), origin);
      assert.equal(answer.headers.get('vary')?.join(), 'Origin');
      assert.equal(answer.headers.has('access-control-allow-credentials'), false);
    }
  });

  attack('O5', 'a preflight of another origin is not allowed, and agents get no CORS headers at all', async () => {
    for (const origin of FOREIGN) {
      const lines = [
        `Origin: ${origin}`,
        'Access-Control-Request-Method: POST',
        'Access-Control-Request-Private-Network: true',
      ];
      const answer = await answerTo(target.url, head('OPTIONS /api/resources/cities/invoke HTTP/1.1', HOST, ...lines));
      assert.equal(answer.status, 403);
      assert.deepEqual(cors(answer), []);
    }
    const agent = await answerTo(
      target.url,
      `${head('POST /api/resources/cities/invoke HTTP/1.1', HOST, JSON_TYPE, 'Content-Length: 2')}{}`,
    );
    assert.equal(agent.status, 200);
    assert.deepEqual(cors(agent), []);
  });
});
