import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { routeWarnings } from '../../src/app/route-warnings.ts';
import { configWarnings } from '../../src/config/warnings.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { load, problems } from '../config/document/document.ts';
import { type ConfigObject, NO_CHAIN } from '../support/config.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { connectFirst, connectSecond } from '../support/mcp-clients.ts';

/** As many as fit beside the sample resources of the test gateway. */
const MANY = 9_950;
const IDS = Array.from({ length: 10_000 }, (_, index) => `report-${index}`);
const SOLD = IDS.slice(0, MANY);

/** Free and paid ones, each with a schema of its own. */
function resource(index: number): ConfigObject {
  return {
    name: `Report ${index}`,
    description: `Prices of one city, number ${index}`,
    inputSchema: {
      type: 'object',
      required: ['city'],
      properties: { city: { type: 'string', maxLength: 80 }, [`option${index}`]: { type: 'integer', minimum: 1 } },
    },
    backend: { method: 'POST', path: `/reports/${index}` },
    pricing: index % 2 === 0 ? { type: 'free' } : { type: 'fixed', amount: '0.01', currency: 'TUSD' },
    expose: ['http', 'mcp', 'a2a'],
  };
}

describe('a gateway of nearly 10,000 resources', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await openGateway({
      chain: NO_CHAIN,
      backendUrl: 'http://127.0.0.1:9',
      facilitator: { mode: 'remote', url: 'http://127.0.0.1:9' },
      overrides: {
        protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
        resources: Object.fromEntries(SOLD.map((id, index) => [id, resource(index)])),
      },
    });
  });
  after(() => gateway?.close());

  it('lists all of them in one document', async () => {
    const { resources } = (await (await fetch(`${gateway.url}/api/resources`)).json()) as {
      resources: { id: string }[];
    };
    assert.deepEqual(resources.map(({ id }) => id).slice(-MANY), SOLD);
  });

  it('has a card with the first thousand skills, which says how many there are and where', async () => {
    const card = (await (await fetch(`${gateway.url}/.well-known/agent-card.json`)).json()) as {
      skills: object[];
      capabilities: { extensions: { params: object }[] };
    };
    assert.equal(card.skills.length, 1_000);
    const [{ params } = { params: {} }] = card.capabilities.extensions;
    assert.ok('resourcesOffered' in params && Number(params.resourcesOffered) >= MANY);
    assert.match(JSON.stringify(params), /\/api\/resources"/);
  });

  for (const [name, connect] of Object.entries({ '1.x': connectFirst, '2.x': connectSecond }))
    it(`is paged through by the official ${name} client`, async () => {
      const client = await connect(`${gateway.url}/mcp`);
      const names: string[] = [];
      let nextCursor: string | undefined;
      do {
        const page: { tools: { name: string }[]; nextCursor?: string | undefined } = await client.listTools(
          nextCursor === undefined ? {} : { cursor: nextCursor },
        );
        names.push(...page.tools.map((tool) => tool.name));
        nextCursor = page.nextCursor;
      } while (nextCursor !== undefined);
      await client.close();
      assert.deepEqual(names.slice(-MANY), SOLD);
    });

  it('checks the input of the last one, and asks for its price', async () => {
    const wrong = await gateway.invoke('report-9949', { option9949: 0 });
    assert.equal(wrong.status, 400);
    const { details } = (await wrong.json()) as { details: { errors: { path: string }[] } };
    assert.deepEqual(details.errors.map(({ path }) => path).sort(), ['$.city', '$.option9949']);
    assert.equal((await gateway.invoke('report-9949', { city: 'Oslo' })).status, 402);
  });
});

describe('a document of many resources', () => {
  const many = (count: number) => ({
    resources: Object.fromEntries(IDS.slice(0, count).map((id, at) => [id, free(at)])),
  });
  const free = (index: number): ConfigObject => ({ ...resource(index), pricing: { type: 'free' }, expose: ['http'] });

  it('names the mistakes of each by its path, also those that only a compiler finds', () => {
    const { resources } = many(300);
    const inputSchema = { type: 'object', properties: { a: { type: 'string', minLength: -1 } } };
    const changes = { resources: { ...resources, 'report-250': { ...free(250), inputSchema } } };
    assert.deepEqual(
      problems(changes).map(({ path }) => path),
      ['resources.report-250.inputSchema.properties.a.minLength'],
    );
    const count = { type: 'object', properties: { a: { type: 'array', minContains: 2 } } };
    const config = load({ resources: { ...resources, 'report-299': { ...free(299), inputSchema: count } } });
    assert.throws(
      () => compileCatalogue(config),
      /resources\.report-299\.inputSchema: does not compile: .*"minContains"/,
    );
  });

  it('may have no more than 10,000', () => {
    const one = { name: 'One', backend: { method: 'GET', path: '/one' }, pricing: { type: 'free' } };
    const resources = Object.fromEntries([...IDS, 'one-more'].map((id) => [id, one]));
    assert.match(problems({ resources })[0]?.message ?? '', /10,?000/);
  });

  it('compares addresses in place with all others without comparing every pair', () => {
    const inPlace = { protocols: { http: { enabled: false } } };
    const at = (path: string): ConfigObject => ({ ...free(0), backend: { method: 'GET', path }, expose: ['origin'] });
    const schema = { type: 'object', required: ['a'], properties: { a: { type: 'string' } } };
    const resources = Object.fromEntries(IDS.slice(0, 2_000).map((id, index) => [id, at(`/v1/reports/${index}`)]));
    assert.deepEqual(load({ resources, ...inPlace }).resources.length, 2_000);
    const any = { ...at('/v1/{a}/7'), inputSchema: schema };
    assert.deepEqual(problems({ resources: { ...resources, any }, ...inPlace }), [
      {
        path: 'resources.any.backend.path',
        message: 'must not be an address of resources.report-7 too while one of them is sold at its own address',
      },
    ]);
  });

  it('draws the warnings of each, without comparing every pair', () => {
    const { resources } = many(2_000);
    const same = { ...resource(0), expose: ['http'], pricing: { type: 'fixed', amount: '1', currency: 'USDC' } };
    const config = load({
      resources: { ...resources, dear: same },
      'backend.passthrough': { enabled: true, include: ['/other'] },
    });
    assert.deepEqual(configWarnings(config), []);
    assert.match(routeWarnings(config).join('\n'), /resources\.dear: is the same operation as resources\.report-0 at/);
  });
});
