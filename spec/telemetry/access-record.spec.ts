import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { INPUT, message, TOOL, tool, watchedGateway } from './callers.ts';
import { scrape } from './scrape.ts';

const STEPS = ['front', 'admit', 'resolve', 'validate', 'challenge', 'verify', 'settle', 'forward', 'conclude'];

describe('the record of a call', () => {
  const { seller: testbed, invoke, post, proof, lineOf } = watchedGateway();

  it('has the trace of a caller whose traceparent is valid, and no other', async () => {
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const sent = async (path: string, id: string, traceparent: string): Promise<string | undefined> => {
      await (await fetch(`${testbed().gateway.url}${path}`, { headers: { 'x-request-id': id, traceparent } })).text();
      return (await lineOf(id)).traceId;
    };
    assert.equal(await sent('/api/resources', 'trace-ok', `00-${trace}-b7ad6b7169203331-01`), trace);
    assert.equal(await sent('/api/resources', 'trace-bad', `00-${trace}-${'0'.repeat(16)}-01`), undefined);
  });

  it('makes no time series that a caller can choose', async () => {
    const names = ['made-up-by-a-caller', 'another_one'];
    for (const name of names) {
      await (await invoke(`made-${name}`, name, {})).text();
      await (await post('/mcp', `made-mcp-${name}`, tool(name, {}))).text();
      await (await post('/a2a', `made-a2a-${name}`, message(name, {}))).text();
    }
    const text = [...(await scrape(testbed().gateway.managementUrl)).keys()].join('\n');
    for (const name of names) assert.ok(!text.includes(name));
  });

  it('has the time of each middleware that a call was in', async () => {
    const counts = async (): Promise<readonly number[]> => {
      const series = await scrape(testbed().gateway.managementUrl);
      return STEPS.map((step) => series.get(`acg_layer_seconds_count{layer="${step}"}`) ?? 0);
    };
    const grown = async (send: () => Promise<Response>): Promise<readonly string[]> => {
      const before = await counts();
      await (await send()).text();
      const after = await counts();
      return STEPS.filter((_, at) => (after[at] ?? 0) > (before[at] ?? 0));
    };
    const paid = await proof();
    assert.deepEqual(await grown(() => invoke('timed-paid', TOOL, INPUT, paid)), STEPS);
    assert.deepEqual(
      await grown(() => invoke('timed-free', 'cities', {})),
      STEPS.filter((step) => step !== 'verify' && step !== 'settle'),
    );
    assert.deepEqual(await grown(() => invoke('timed-asked', TOOL, INPUT)), STEPS.slice(0, 5));
    assert.deepEqual(await grown(() => post('/mcp', 'timed-none', '{')), []);
  });
});
