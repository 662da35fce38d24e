import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { headRoom, headWarnings } from '../../src/app/head-room.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { baseDocument, type Changes, load, SEPOLIA } from '../config/document/document.ts';

const LONG = { 'resources.report.description': 'x'.repeat(1_900) };

function warned(changes: Changes): readonly string[] {
  const config = load(changes);
  return headWarnings(config, compileCatalogue(config));
}

describe('the room in the head of an answer', () => {
  it('is less by the fields for pages of allowed origins, and more by the setting', () => {
    const plain = headRoom(load({})).plain;
    const origin = 'https://console.example';
    const cors = headRoom(load({ 'server.allowedOrigins': [origin] })).plain;
    assert.ok(plain - cors > 'access-control-allow-origin: '.length + origin.length);
    assert.equal(headRoom(load({ 'server.maxHeadBytes': 8_192 })).plain - plain, 4_096);
  });

  it('is named by a warning where a 402 leaves something out for it', () => {
    assert.deepEqual(warned({}), []);
    const [warning = '', ...more] = warned(LONG);
    assert.deepEqual(more, []);
    assert.match(warning, /^resources\.report: its 402 leaves out its description, .* raise server\.maxHeadBytes/);
    assert.deepEqual(warned({ ...LONG, 'server.maxHeadBytes': 8_192 }), []);
    const [icon = ''] = warned({ 'merchant.iconUrl': `https://shop.example/${'i'.repeat(2_000)}` });
    assert.match(icon, /leaves out its icon, so that/);
  });

  it('is named for each resource whose offers on several networks do not fit in beside their signatures', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { resources } = baseDocument() as { resources: { report: object } };
    const networks = ['eip155:84532', 'eip155:80002', 'eip155:421614'];
    const three = {
      'payments.x402': networks.map((network) => ({ ...SEPOLIA, network })),
      signing: { key: privateKey.export({ type: 'pkcs8', format: 'pem' }), offers: true },
      'resources.report.bazaar': { example: { city: 'Berlin' } },
      'resources.report.description': 'x'.repeat(480),
      'resources.free': { ...resources.report, pricing: { type: 'free' } },
    };
    const parts = 'the schema of its catalogue form, its description, the name of the merchant, its signed offers';
    const [warning = '', ...more] = warned(three);
    assert.deepEqual(more, []);
    assert.ok(warning.startsWith(`resources.report: its 402 leaves out ${parts}, so that`), warning);
    assert.deepEqual(warned({ ...three, 'server.maxHeadBytes': 8_192 }), []);
  });
});
