import { describe, it } from 'node:test';
import { runReadme } from './readme-commands.ts';

const DEADLINE_MS = 120_000;

describe('the example of mandates', () => {
  it('does what its README states', { timeout: DEADLINE_MS }, async () => {
    await runReadme('deploy/examples/mandates', [
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
    ]);
  });
});
