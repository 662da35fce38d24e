import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { AgentCard } from '@a2a-js/sdk';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { agentCard } from '../../src/adapters/a2a/agent-card.ts';
import { toolsListResult } from '../../src/adapters/mcp/tools.ts';
import { readSigningKey, signDocument } from '../../src/crypto/signing-key.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/types.ts';
import type { ListedResource } from '../../src/resources/listing.ts';
import { schemaOf } from './a2a/post.ts';

const PLAIN: ListedResource = {
  id: 'cities',
  name: 'Cities',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: false },
  method: 'GET',
  pricing: { type: 'free' },
  exposedVia: ['mcp', 'a2a'],
  paymentMethods: [],
};
const MANDATED: ListedResource = { ...PLAIN, id: 'guarded', authorization: { required: ['ap2'] } };
const SOLD: ListedResource = {
  ...MANDATED,
  id: 'report',
  description: 'Prices of one city',
  pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' },
};

interface Tool {
  readonly description: string;
  readonly inputSchema: JsonObject & { readonly properties: object };
  readonly _meta: Readonly<Record<string, unknown>>;
}
const tool = (resource: ListedResource): Tool => {
  const text = toolsListResult([resource], 'modern', { name: 'shop', title: 'Shop', version: '1' });
  return (JSON.parse(text) as { tools: [Tool] }).tools[0];
};
const cardOf = (...listed: readonly ListedResource[]): JsonObject =>
  agentCard({
    settings: { ...NOTHING, mountPath: '/a2a', continuation: false },
    catalogue: { byId: new Map(), listed },
    merchant: { name: 'Shop', publicBaseUrl: 'https://shop.example' },
    version: '1.0.0',
  });
const NOTHING = { description: undefined, provider: undefined, documentationUrl: undefined, iconUrl: undefined };

describe('a tool that needs a mandate', () => {
  it('says so to the model, and where the mandate goes', () => {
    assert.match(tool(MANDATED).description, /^Cities\. Needs an AP2 mandate .*Agent-Authorization.*_authorization/);
    assert.match(tool(SOLD).description, /^Prices of one city\. Costs 0\.01 USDC per call.* Needs an AP2 mandate/);
    assert.equal(tool(PLAIN).description, 'Cities');
    assert.deepEqual(tool(SOLD)._meta['agent-commerce/authorization'], { required: ['ap2'] });
    assert.equal('agent-commerce/authorization' in tool(PLAIN)._meta, false);
  });

  it('declares _authorization, free or paid, and no other tool does', () => {
    for (const [resource, names] of [
      [PLAIN, ['city']],
      [MANDATED, ['city', '_authorization']],
      [SOLD, ['city', '_payment', '_authorization']],
    ] as const) {
      const { inputSchema } = tool(resource);
      assert.deepEqual(Object.keys(inputSchema.properties), names);
      const fits = new Ajv2020({ strict: false }).compile(inputSchema);
      assert.equal(fits({ city: 'Berlin', _authorization: 'x' }), resource !== PLAIN);
      assert.ok(fits({ city: 'Berlin' }), 'it is never required');
    }
  });

  it('makes room for both members where a schema counts', () => {
    const inputSchema = { ...SOLD.inputSchema, maxProperties: 1, propertyNames: { pattern: '^[a-z]+$' } };
    const fits = new Ajv2020({ strict: false }).compile(tool({ ...SOLD, inputSchema }).inputSchema);
    assert.ok(fits({ city: 'Berlin', _payment: 'x', _authorization: 'y' }));
  });
});

describe('the agent card of a shop with mandates', () => {
  const skillsOf = (card: JsonObject): readonly JsonObject[] => (card['skills'] as readonly Json[]).filter(isObject);

  it('declares the header once, and names it with the skills that need it', () => {
    const card = cardOf(PLAIN, SOLD);
    const isCard = schemaOf('a2a-agent-card');
    assert.ok(isCard(card), JSON.stringify(isCard.errors));
    const [plain, sold] = skillsOf(card);
    assert.deepEqual(plain?.['tags'], ['agent-commerce', 'free']);
    assert.equal(plain['securityRequirements'], undefined);
    assert.deepEqual(sold?.['tags'], ['agent-commerce', 'paid', 'ap2']);
    assert.deepEqual(sold['securityRequirements'], [{ schemes: { ap2Mandate: {} } }]);
    const { ap2Mandate } = card['securitySchemes'] as Readonly<Record<string, JsonObject>>;
    const scheme = ap2Mandate?.['apiKeySecurityScheme'];
    assert.ok(isObject(scheme));
    assert.deepEqual([scheme['location'], scheme['name']], ['header', 'Agent-Authorization']);
    assert.match(JSON.stringify(card['capabilities']), /"authorizationField":"input\._authorization"/);
  });

  it('says nothing of them where there are none', () => {
    assert.ok(!/securit|authorization|mandate/i.test(JSON.stringify(cardOf(PLAIN))));
  });

  it('can be signed: nothing in it is a default that readers drop', () => {
    const { privateKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    const reading = readSigningKey(privateKey);
    assert.ok(reading.ok);
    assert.ok(signDocument(cardOf(SOLD), reading.key, 'https://shop.example/keys').signature);
    assert.ok(!/\[\]|""/.test(JSON.stringify(cardOf(SOLD))));
    const { skills, securityRequirements = [] } = AgentCard.fromJSON(cardOf(SOLD));
    assert.deepEqual([securityRequirements.length, skills[0]?.securityRequirements?.length], [0, 1]);
  });
});
