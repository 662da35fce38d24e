import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { idPrefixes } from '../../../src/server/http/access-record.ts';
import { belowMount, rawPath } from '../../../src/server/http/request.ts';

describe('the path of a request target', () => {
  const rows = [
    ['/a/b?c=/d', '/a/b'],
    ['/a/%2e%2e/b', '/a/%2e%2e/b'],
    ['/a/../b', '/a/../b'],
    ['http://shop.example/a?b', '/a'],
    ['HTTP://user:pass@shop.example:80/a', '/a'],
    ['http://shop.example', '/'],
    ['http://shop.example?a', '/'],
    ['other://[shop', '/'],
    ['*', '*'],
    ['*a', '/*a'],
  ] as const;
  for (const [target, path] of rows) it(`of ${target} is ${path}`, () => assert.equal(rawPath(target), path));

  it('is below a mount when a slash follows it, or is the mount', () => {
    assert.equal(belowMount('/acp', '/acp'), '');
    assert.equal(belowMount('/acp', '/acp/'), '/');
    assert.equal(belowMount('/acp', '/acp/x/y'), '/x/y');
    for (const path of ['/acpx', '/ACP/x', '/', '/x/acp', '/acp%2Fx'])
      assert.equal(belowMount('/acp', path), undefined);
  });
});

describe('the beginnings of request ids', () => {
  it('are the names of the channels: of mounts, and of everything below the one that has routes', () => {
    const prefixes = idPrefixes({
      http: { enabled: true },
      mcp: { enabled: true, mountPath: '/mcp' },
      a2a: { enabled: false, mountPath: '/a2a' },
      acp: { enabled: true, mountPath: '/acp' },
    });
    const rows = {
      '/mcp': 'mcp',
      '/mcp/': 'mcp',
      '/mcp/x': undefined,
      '/a2a': undefined,
      '/acp': 'acp',
      '/acp/x/y': 'acp',
      '/': undefined,
    };
    for (const [path, prefix] of Object.entries(rows)) assert.equal(prefixes.get(path), prefix, path);
  });
  it('are not those of a channel that is not enabled', () =>
    assert.equal(idPrefixes({ acp: { enabled: false, mountPath: '/acp' } }).get('/acp/x'), undefined));
});
