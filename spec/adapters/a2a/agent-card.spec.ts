import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, type webcrypto } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import release from '../../../package.json' with { type: 'json' };
import { agentCard } from '../../../src/adapters/a2a/agent-card.ts';
import { readSigningKey, signDocument } from '../../../src/crypto/signing-key.ts';
import type { JsonObject } from '../../../src/json/json.ts';
import type { ListedResource } from '../../../src/resources/listing.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { type Answered, ask } from '../../e2e/ask.ts';
import type { ConfigObject } from '../../support/config.ts';
import { openGateway, type TestGateway } from '../../support/gateway.ts';
import { type Members, postA2a, schemaOf, sendMessage, taskOf } from './post.ts';

const CARD = '/.well-known/agent-card.json';
const KEYS = '/.well-known/jwks.json';
const isCard = schemaOf('a2a-agent-card');

interface Skill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[];
}
interface Card extends Members {
  readonly skills: readonly Skill[];
  readonly capabilities: { readonly extensions: readonly { readonly uri: string; readonly params?: object }[] };
  readonly signatures?: readonly { readonly protected: string }[];
}

type Jwk = webcrypto.JsonWebKey & { readonly kid: string };
const report = {
  name: 'Report',
  backend: { method: 'GET', path: '/cities' },
  pricing: { type: 'fixed', amount: '0.01', currency: 'TUSD' },
  expose: ['http', 'a2a'],
};
const city = (rules: object): object => ({
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, ...rules },
});
const days = { type: 'integer', default: 3 };
const parts = { city: { type: 'string', examples: ['Oslo'] }, days };
/** The exposed resources, each with the input of its example. */
const SKILLS: Readonly<Record<string, readonly [changes: object, example: object | undefined]>> = {
  plain: [{ description: 'Prices of one city' }, {}],
  bare: [{ pricing: { type: 'free' } }, {}],
  sentence: [{ description: 'What does it cost?' }, {}],
  shown: [city({ examples: [{ city: 7 }, { city: 'Bern' }] }), { city: 'Bern' }],
  usual: [city({ default: { city: 'Rome' } }), { city: 'Rome' }],
  parts: [{ inputSchema: { type: 'object', properties: parts, required: ['city'] } }, { city: 'Oslo', days: 3 }],
  unshown: [city({ required: ['city'] }), undefined],
};
const RESOURCES: ConfigObject = {
  ...Object.fromEntries(Object.entries(SKILLS).map(([id, [changes]]) => [id, { ...report, ...changes }])),
  elsewhere: { ...report, expose: ['http'] },
};

describe('the agent card', () => {
  let chain: Chain;
  let gateway: TestGateway;
  before(async () => {
    chain = await startChain();
    gateway = await open({});
  });
  after(async () => {
    await gateway?.close();
    await chain?.stop();
  });

  async function open(a2a: object): Promise<TestGateway> {
    const sample = Object.keys((await import('../../support/resources.ts')).sampleResources('TUSD'));
    const hidden = Object.fromEntries(sample.map((id) => [id, undefined]));
    const overrides = { protocols: { a2a: { enabled: true, ...a2a } }, resources: { ...hidden, ...RESOURCES } };
    return openGateway({ chain, backendUrl: 'http://127.0.0.1:9', facilitator: { mode: 'local' }, overrides });
  }

  function cardOf(answer: Answered): Card {
    assert.equal(answer.status, 200, answer.text);
    const card = JSON.parse(answer.text) as Card;
    assert.ok(isCard(card), JSON.stringify(isCard.errors));
    return card;
  }
  const get = (base: string, path: string, headers = {}) => ask(base, { method: 'GET', path, headers });

  it('names the agent, its one interface, its capabilities, and the release', async () => {
    const card = cardOf(await get(gateway.url, CARD));
    const { publicBaseUrl, name } = gateway.config.merchant;
    assert.deepEqual([card['name'], card['version']], [name, release.version]);
    assert.deepEqual(card['supportedInterfaces'], [
      { url: `${publicBaseUrl}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    ]);
    const { extensions, ...flags } = card.capabilities;
    assert.deepEqual(flags, { streaming: false, pushNotifications: false, extendedAgentCard: false });
    assert.equal(extensions.length, 1, 'not that of x402, whose tasks wait for a payment');
    assert.deepEqual(extensions[0]?.params, {
      resourcesUrl: `${publicBaseUrl}/api/resources`,
      discoveryUrl: `${publicBaseUrl}/.well-known/agent-commerce`,
      paymentField: 'input._payment',
    });
  });

  it('has one skill for each exposed resource, in the order of the configuration', async () => {
    const { skills } = cardOf(await get(gateway.url, CARD));
    assert.deepEqual(
      skills.map(({ id }) => id),
      Object.keys(SKILLS),
    );
    const [plain, bare, sentence] = skills;
    assert.equal(plain?.description, 'Prices of one city. Costs 0.01 TUSD per call.');
    assert.deepEqual(plain.tags, ['agent-commerce', 'paid']);
    assert.equal(
      bare?.description,
      'Report',
      'the name replaces a missing description, and a free skill names no price',
    );
    assert.deepEqual(bare.tags, ['agent-commerce', 'free']);
    assert.equal(sentence?.description, 'What does it cost? Costs 0.01 TUSD per call.');
    assert.ok(!JSON.stringify(skills).includes('inputSchema'), 'schemas are published with the resources');
  });

  for (const [id, [, input]] of Object.entries(SKILLS))
    it(`${id}: ${input === undefined ? 'its schema gives no example' : 'its example is a part that can be sent'}`, async () => {
      const { skills } = cardOf(await get(gateway.url, CARD));
      const [text] = skills.find((skill) => skill.id === id)?.examples ?? [];
      if (input === undefined) {
        assert.equal(text, undefined);
        return;
      }
      const part = JSON.parse(text ?? '') as { data: object };
      assert.deepEqual(part, { data: { resource: id, input }, mediaType: 'application/json' });
      const content = { messageId: 'example', role: 'ROLE_USER', parts: [part] };
      const task = taskOf(await postA2a(gateway.url, sendMessage(content)));
      const { code } = task.artifacts?.[0].parts[0].data ?? {};
      // No backend is running, so a call that gets that far was accepted.
      assert.ok(code === 'PAYMENT_REQUIRED' || code === 'BACKEND_ERROR', String(code));
    });

  it('is the same at both paths where clients look', async () => {
    const [root, mounted] = [await get(gateway.url, CARD), await get(gateway.url, `/a2a${CARD}`)];
    assert.equal(root.text, mounted.text);
    assert.equal(root.headers.etag, mounted.headers.etag);
  });

  it('is not signed without a key', async () => {
    assert.equal(cardOf(await get(gateway.url, CARD)).signatures, undefined);
  });

  it('is signed with a key: the official verifier accepts it, and no change of it', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const signed = await open({
      mountPath: '/agents',
      description: 'Reports for agents',
      provider: { organization: 'Shop AG', url: 'https://shop.example' },
      documentationUrl: 'https://shop.example/docs',
      iconUrl: 'https://shop.example/icon.svg',
      signingKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    });
    try {
      const answer = await get(signed.url, `/agents${CARD}`);
      const card = cardOf(answer);
      const { publicBaseUrl } = signed.config.merchant;
      const asked: (string | undefined)[] = [];
      const verifier = verifyAgentCardSignature(async (kid, jku) => {
        asked.push(jku);
        const { keys } = JSON.parse((await get(signed.url, KEYS)).text) as { keys: Jwk[] };
        const key = keys.find((candidate) => candidate.kid === kid);
        assert.ok(key);
        return createPublicKey({ key, format: 'jwk' });
      });
      await verifier(card as unknown as AgentCard);
      await verifier(AgentCard.fromJSON(card));
      assert.deepEqual(new Set(asked), new Set([`${publicBaseUrl}${KEYS}`]));
      for (const change of [{ name: 'Other' }, { skills: card.skills.slice(1) }, { iconUrl: 'https://a.example' }])
        await assert.rejects(verifier({ ...card, ...change } as unknown as AgentCard));
      const keys = await get(signed.url, KEYS);
      assert.deepEqual([keys.status, keys.headers['cache-control']], [200, 'public, max-age=300']);
      assert.ok(!keys.text.includes('"d"'), 'only the public half');
    } finally {
      await signed.close();
    }
  });
});

describe('the agent card with mandates', () => {
  const listed: ListedResource = {
    id: 'cities',
    name: 'Cities',
    inputSchema: { type: 'object', properties: {} },
    method: 'GET',
    pricing: { type: 'free' },
    exposedVia: ['a2a'],
    paymentMethods: [],
  };
  const guarded: ListedResource = {
    ...listed,
    pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' },
    authorization: { required: ['ap2'] },
  };
  const cardWith = (...resources: readonly ListedResource[]): JsonObject =>
    agentCard({
      settings: {
        mountPath: '/a2a',
        ...{ description: undefined, provider: undefined, documentationUrl: undefined, iconUrl: undefined },
      },
      catalogue: { byId: new Map(), listed: resources },
      merchant: { name: 'Shop', publicBaseUrl: 'https://shop.example', iconUrl: 'https://shop.example/icon.svg' },
      version: '1.0.0',
    });

  it('has the icon of the merchant unless it has its own, and tags of a resource once beside those of the gateway', () => {
    const card = cardWith({ ...guarded, tags: ['paid', 'weather'] });
    assert.ok(isCard(card), JSON.stringify(isCard.errors));
    assert.equal(card['iconUrl'], 'https://shop.example/icon.svg');
    const [skill] = card['skills'] as readonly JsonObject[];
    assert.deepEqual(skill?.['tags'], ['agent-commerce', 'paid', 'ap2', 'weather']);
  });

  it('declares the header once, and names it with the skills that need it', () => {
    const card = cardWith(listed, guarded);
    assert.ok(isCard(card), JSON.stringify(isCard.errors));
    const [plain, sold] = card['skills'] as readonly JsonObject[];
    assert.deepEqual([plain?.['tags'], plain?.['securityRequirements']], [['agent-commerce', 'free'], undefined]);
    assert.deepEqual(sold?.['tags'], ['agent-commerce', 'paid', 'ap2']);
    assert.deepEqual(sold['securityRequirements'], [{ schemes: { ap2Mandate: {} } }]);
    const { ap2Mandate } = card['securitySchemes'] as Readonly<Record<string, JsonObject>>;
    const { location, name } = (ap2Mandate?.['apiKeySecurityScheme'] ?? {}) as JsonObject;
    assert.deepEqual([location, name], ['header', 'Agent-Authorization']);
    assert.match(JSON.stringify(card['capabilities']), /"authorizationField":"input\._authorization"/);
  });

  it('does not mention them where no resource needs one', () =>
    assert.doesNotMatch(JSON.stringify(cardWith(listed)), /securit|authorization|mandate/i));

  it('can be signed: nothing in it is a default that readers drop', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const reading = readSigningKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    assert.ok(reading.ok);
    assert.ok(signDocument(cardWith(guarded), reading.key, 'https://shop.example/keys').signature);
    assert.doesNotMatch(JSON.stringify(cardWith(guarded)), /\[\]|""/);
    const { skills, securityRequirements = [] } = AgentCard.fromJSON(cardWith(guarded));
    assert.deepEqual([securityRequirements.length, skills[0]?.securityRequirements?.length], [0, 1]);
  });
});
