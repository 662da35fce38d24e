import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { exchange, head } from '../server/http/raw.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';

/** Longest path in a line, characters. */
const MAX_PATH = 512;

describe("a request's line in the log", () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  /** The path in the log for a target, which is sent as it is. */
  async function logged(target: string, id: string): Promise<unknown> {
    const { url, logLines } = testbed.gateway;
    await exchange(url, [head([`GET ${target} HTTP/1.1`, 'Host: shop', `X-Request-Id: ${id}`, 'Connection: close'])]);
    const lines = logLines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    return lines.find(({ requestId, path }) => requestId === id && path !== undefined)?.['path'];
  }

  it('has no more of a path than its bound', async () => {
    assert.equal(await logged(`/${'a'.repeat(MAX_PATH - 1)}`, 'whole'), `/${'a'.repeat(MAX_PATH - 1)}`);
    assert.equal(await logged(`/${'a'.repeat(MAX_PATH)}`, 'cut'), `/${'a'.repeat(MAX_PATH - 1)}`);
  });

  it('has neither the query nor what stands before the path in an absolute target', async () => {
    assert.equal(await logged('http://user:password@shop/health?token=secret', 'absolute'), '/health');
  });
});
