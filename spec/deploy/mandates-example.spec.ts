import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readmeOf } from './readme-commands.ts';

const DEADLINE_MS = 120_000;

describe('the example of mandates', () => {
  it('does what its README says', { timeout: DEADLINE_MS }, async () => {
    const { code, said, errors, answering } = await readmeOf('deploy/examples/mandates', ['8402', '8403', '3000']);
    assert.equal(code, 0, `${said}\n${errors}`);
    assert.deepEqual(answering, [], 'the last command closes the shop');
    const wanted = [
      'ap2 mandates for 1 of 1 resources (issuers: 1)',
      '"authorizationProviders":[{"name":"ap2","status":"pass"}]',
      '"code":"AUTHORIZATION_REQUIRED"',
      'Decoded, not verified.',
      'HTTP/1.1 200 OK',
      'agent-authorization-receipt: ',
      '{"report":"/reports/Berlin"}',
      '"reason":"replayed"',
      '"reason":"input_mismatch"',
      '"reason":"open_mandate_spent"',
    ];
    let from = 0;
    for (const text of wanted) {
      const at = said.indexOf(text, from);
      assert.ok(at >= 0, `${text} is not in its place:\n${said.slice(from)}`);
      from = at;
    }
  });
});
