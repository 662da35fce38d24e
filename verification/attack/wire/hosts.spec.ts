// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { attack, proven } from '../catalogue.ts';
import { openTarget } from '../target.ts';
import { answerTo } from './conversation.ts';
import { head, JSON_TYPE } from './framing-case.ts';

describe('host names that are not listed', () => {
  const [origin, cors] = ['spec/server/http/origin.spec.ts', 'spec/routes/cors.spec.ts'];
  proven('H8', origin, "\"${host}\" is ${served ? 'served' : 'refused'}");
  proven('H8', origin, 'the host of a target in absolute form counts too: neither hides the other');
  proven(
    ['H8', 'I10'],
    cors,
    "${route.method} ${route.path} (${route.app}) is ${isForProbes(route) ? 'answered to' : '403 for'} any other",
  );
  proven(
    ['H8', 'I10', 'O5'],
    cors,
    '${title}: of any other origin are 403 without CORS headers, also when they ask before',
  );
  proven(
    'O5',
    cors,
    '${title}: of a listed origin are answered, may read the payment headers, and send no credentials',
  );
  proven('O5', origin, '"${origin}" is ${verdict}');

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
