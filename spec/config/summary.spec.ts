import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { adaptersSummary } from '../../src/config/summary.ts';
import { load } from './document/document.ts';

describe('the summary of the adapters', () => {
  it('names the enabled ones, their paths, and how many resources each offers', () => {
    const changes = {
      'protocols.mcp.enabled': true,
      'protocols.a2a.enabled': true,
      'protocols.a2a.mountPath': '/agent',
    };
    const config = load({ ...changes, 'resources.report.expose': ['http', 'mcp'] });
    assert.equal(adaptersSummary(config), 'http (1), mcp at /mcp (1), a2a at /agent (0)');
    assert.equal(adaptersSummary(load({})), 'http (1)');
  });
});
