import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { headRoom, headWarnings } from '../../src/app/head-room.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { type Changes, load } from '../config/document/document.ts';

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
});
