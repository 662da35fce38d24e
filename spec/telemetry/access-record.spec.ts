import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Call, CHANNELS, type Reply } from '../e2e/mandate-channels.ts';
import { type MandateSeller, now } from '../e2e/mandate-seller.ts';
import { openMandateTestbed } from '../e2e/mandate-testbed.ts';
import { exchange, head } from '../server/http/raw.ts';
import type { TestGateway } from '../support/gateway.ts';
import { eventually } from '../support/records.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
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

/** Free, so that only the mandate can be refused. */
const FREE = 'free_market_report';
/** The members of the line of a refusal, beside level and time. */
const MEMBERS = 'callId channel method ms msg outcome path reason requestId resource status'.split(' ');
/** A text of the caller that no line may have. */
const CANARY = 'https://canary-of-the-caller.example';

type Line = Readonly<Record<string, unknown>>;

/** The line of a request, as soon as it is there. */
function lineOf({ logLines }: TestGateway, { requestId }: Reply): Promise<Line> {
  const lines = (): readonly Line[] => logLines.map((line) => JSON.parse(line) as Line);
  return eventually(
    async () => lines().find((line) => line['requestId'] === requestId && line['path'] !== undefined),
    `the line of ${requestId}`,
  );
}

for (const [channel, send] of Object.entries(CHANNELS))
  describe(`the line of a call with a mandate, over ${channel}`, () => {
    let testbed: MandateSeller;
    before(async () => {
      testbed = await openMandateTestbed(send);
    });
    after(() => testbed?.close());

    const loggedFor = async (order: Partial<Call>): Promise<Line> =>
      lineOf(testbed.gateway, await send(testbed.gateway, { resourceId: FREE, input: INPUT, ...order }));
    const mandateFor = async (input: object, wishes: Parameters<MandateSeller['mandateFor']>[1] = {}) => {
      const asked = await send(testbed.gateway, { resourceId: FREE, input });
      const purchase = testbed.purchaseOf(FREE, 'Market report', input);
      return testbed.mandateFor(asked.body, { purchase, now: now(), ...wishes }).header;
    };
    const because = ({ outcome, reason, resource }: Line) => [outcome, reason, resource];

    it('has the reason why the mandate was refused, of the closed list', async () => {
      assert.deepEqual(because(await loggedFor({})), ['AUTHORIZATION_REQUIRED', 'mandate_required', FREE]);
      const other = await mandateFor({ city: 'Paris' });
      assert.deepEqual(because(await loggedFor({ mandate: other })), ['AUTHORIZATION_INVALID', 'input_mismatch', FREE]);
      const mandate = await mandateFor(INPUT);
      assert.deepEqual(because(await loggedFor({ mandate })), ['delivered', undefined, FREE]);
      assert.deepEqual(because(await loggedFor({ mandate })), ['AUTHORIZATION_REPLAYED', 'replayed', FREE]);
    });

    it('has it for a mandate of a payment, which is refused at its reservation', async () => {
      const resourceId = 'market_report';
      const asked = await send(testbed.gateway, { resourceId, input: INPUT });
      const purchase = testbed.purchaseOf(resourceId, 'Market report', INPUT, '0.01');
      const mandate = testbed.mandateFor(asked.body, { purchase }).header;
      const order = async () => ({ resourceId, mandate, proof: await testbed.buyer.pay(asked.body.payment?.envelope) });
      assert.deepEqual(because(await loggedFor(await order())), ['delivered', undefined, resourceId]);
      assert.deepEqual(because(await loggedFor(await order())), ['AUTHORIZATION_REPLAYED', 'replayed', resourceId]);
    });

    it('has no content of the mandate, and only the listed members', async () => {
      const issuer = { key: testbed.mint.parties.stranger, iss: CANARY };
      const line = await loggedFor({ mandate: await mandateFor(INPUT, { issuer }) });
      assert.deepEqual(because(line), ['AUTHORIZATION_INVALID', 'untrusted_issuer', FREE]);
      const { level: _level, time: _time, ...rest } = line;
      assert.deepEqual(Object.keys(rest).sort(), MEMBERS);
      assert.ok(testbed.gateway.logLines.every((text) => !text.includes(CANARY)));
    });

    it('has no reason if something else was refused', async () => {
      const mandate = await mandateFor(INPUT);
      const unfit = await loggedFor({ mandate, input: {} });
      assert.deepEqual(because(unfit), ['INPUT_INVALID', undefined, FREE]);
    });
  });

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
