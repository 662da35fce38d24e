import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load } from '../document/document.ts';

const P = 'backend.passthrough';
const passthrough = (settings: object) =>
  load({ [P]: { enabled: true, ...settings } }).backend.passthrough ?? assert.fail('it is off');

describe('backend.passthrough', () => {
  it('is off when left out, and where it is not enabled', () => {
    assert.equal(load({}).backend.passthrough, undefined);
    assert.equal(load({ [P]: { enabled: false, include: ['/shop'] } }).backend.passthrough, undefined);
  });

  it('passes every path but usual pages of operators when nothing else is said', () => {
    const { exclude, ...others } = passthrough({});
    const defaults = { include: undefined, websocket: true, idleTimeoutMs: 60_000, preserveHost: true };
    assert.deepEqual(others, { ...defaults, allow: [], allowHeaders: [] });
    for (const path of ['/actuator', '/admin', '/debug', '/metrics', '/server-status', '/.env', '/.git'])
      assert.ok(exclude.includes(path), path);
  });

  it('excludes nothing of its own accord beside an include or an exclude', () => {
    assert.deepEqual(passthrough({ include: ['/shop', '/img/{size}'] }).exclude, []);
    assert.deepEqual(passthrough({ include: ['/shop', '/img/{size}'] }).include, ['/shop', '/img/{size}']);
    assert.deepEqual(passthrough({ exclude: ['/staff'] }).exclude, ['/staff']);
    assert.deepEqual(passthrough({ exclude: [] }).exclude, []);
  });

  it('takes the other settings as they are', () => {
    const switches = { websocket: false, idleTimeoutMs: 1_000, preserveHost: false };
    const settings = { ...switches, allow: ['/a=b'], allowHeaders: ['x-method'] };
    assert.deepEqual(passthrough({ ...settings, exclude: [] }), { ...settings, include: undefined, exclude: [] });
  });
});

describe('backend.originHeaders', () => {
  it('are none when left out, and otherwise some of three', () => {
    assert.deepEqual(load({}).backend.originHeaders, []);
    const all = ['cookie', 'accept', 'authorization'];
    assert.deepEqual(load({ 'backend.originHeaders': all }).backend.originHeaders, all);
  });
});

describe('the base URL', () => {
  it('has its path before every path of a resource, without a slash at its end', () => {
    const { backend, resources } = load({ 'backend.baseUrl': 'http://127.0.0.1:3000/shop/v1/' });
    assert.deepEqual([backend.origin, backend.pathPrefix], ['http://127.0.0.1:3000', '/shop/v1']);
    assert.equal(resources[0]?.backend.path, '/shop/v1/reports/{city}');
    assert.equal(load({}).backend.pathPrefix, '');
  });
});
