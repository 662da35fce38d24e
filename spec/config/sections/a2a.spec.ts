import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { configWarnings } from '../../../src/config/warnings.ts';
import { load } from '../document/document.ts';
import { at, file } from '../files.ts';

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const PEM = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const EXPOSED = { 'protocols.a2a.enabled': true, 'resources.report.expose': ['http', 'a2a'] };

describe('protocols.a2a', () => {
  it('takes the texts of the card, and a key', () => {
    const card = {
      mountPath: '/agents/shop',
      errorProfile: 'spec',
      description: 'Prices of cities',
      provider: { organization: 'Shop AG', url: 'https://shop.example' },
      documentationUrl: 'https://shop.example/agents?lang=en#a2a',
      iconUrl: 'https://shop.example/icon.svg',
      signingKey: PEM,
    };
    const { enabled, ...a2a } = load({ ...EXPOSED, 'protocols.a2a': { enabled: true, ...card } }).protocols.a2a;
    assert.equal(enabled, true);
    assert.deepEqual(a2a, card);
  });

  it('reads the key out of a mounted file, and counts each of its lines as a secret', () => {
    const config = load({ ...EXPOSED, 'protocols.a2a.signingKey': at(`file:${file('key.pem', PEM)}`) });
    assert.equal(config.protocols.a2a.signingKey?.trimEnd(), PEM.trimEnd());
    const secrets = config.secrets;
    const lines = PEM.split('\n').filter((line) => /^[A-Za-z0-9+/=]{8,}$/.test(line));
    assert.ok(lines.length >= 2);
    for (const line of lines) assert.ok(secrets.includes(line));
    assert.ok(!secrets.some((secret) => secret.includes('PRIVATE KEY')), 'the armour is no secret');
  });

  it('warns when it is enabled and nothing is exposed through it', () => {
    assert.deepEqual(configWarnings(load(EXPOSED)), []);
    const [warning, ...others] = configWarnings(load({ 'protocols.a2a.enabled': true }));
    assert.match(warning ?? '', /^protocols\.a2a: enabled, but no resource/);
    assert.deepEqual(others, []);
  });
});
