import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { openGateway } from '../support/gateway.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { ask } from './ask.ts';

type Channel = 'http' | 'mcp' | 'a2a';
const CHANNELS: readonly Channel[] = ['http', 'mcp', 'a2a'];

/** The path of each adapter, and how it answers when it is mounted. */
const PATHS: Readonly<Record<Channel, readonly (readonly [method: string, path: string, status: number])[]>> = {
  http: [['POST', '/api/resources/cities/invoke', 200]],
  mcp: [
    ['POST', '/mcp', 400],
    ['GET', '/mcp', 405],
  ],
  a2a: [
    ['POST', '/a2a', 200],
    ['POST', '/a2a/', 200],
    ['GET', '/a2a', 405],
    ['GET', '/.well-known/agent-card.json', 200],
    ['GET', '/a2a/.well-known/agent-card.json', 200],
  ],
};

/** Every choice of channels but the empty one. */
const CHOICES = Array.from({ length: 2 ** CHANNELS.length - 1 }, (_, index) =>
  CHANNELS.filter((_front, bit) => ((index + 1) >> bit) & 1),
);

describe('the choice of channels', () => {
  let chain: Chain;
  let backend: SampleBackend;
  before(async () => {
    [chain, backend] = await Promise.all([startChain(), startSampleBackend()]);
  });
  after(() => Promise.all([chain?.stop(), backend?.stop()]));

  for (const enabled of CHOICES)
    it(`${enabled.join(' and ')}: published as it is, and nothing else answers`, async () => {
      const protocols = Object.fromEntries(
        CHANNELS.map((channel) => [channel, { enabled: enabled.includes(channel) }]),
      );
      const overrides = { protocols };
      const gateway = await openGateway({ chain, backendUrl: backend.url, facilitator: { mode: 'local' }, overrides });
      try {
        const document = (await (await fetch(`${gateway.url}/.well-known/agent-commerce`)).json()) as {
          readonly protocols: Readonly<Record<string, { readonly enabled: boolean; readonly mountPath?: string }>>;
          readonly adapters: readonly { readonly name: string; readonly supportedSpec: string }[];
        };
        for (const channel of CHANNELS) assert.equal(document.protocols[channel]?.enabled, enabled.includes(channel));
        assert.deepEqual(
          document.adapters.map(({ name }) => name),
          enabled,
        );
        const { resources } = (await (await fetch(`${gateway.url}/api/resources`)).json()) as {
          readonly resources: readonly { readonly exposedVia: readonly string[] }[];
        };
        for (const { exposedVia } of resources) assert.deepEqual(exposedVia, enabled);
        const ready = (await (await fetch(`${gateway.url}/ready`)).json()) as { adapters: readonly { name: string }[] };
        assert.deepEqual(
          ready.adapters.map(({ name }) => name),
          enabled,
        );
        for (const channel of CHANNELS)
          for (const [method, path, status] of PATHS[channel]) {
            const answer = await ask(gateway.url, { method, path, body: method === 'POST' ? '{}' : '' });
            assert.equal(answer.status, enabled.includes(channel) ? status : 404, `${method} ${path}`);
            if (!enabled.includes(channel))
              assert.equal((JSON.parse(answer.text) as { code: string }).code, 'NOT_FOUND');
          }
      } finally {
        await gateway.close();
      }
    });

  it('another mount, published and served', async () => {
    const protocols = {
      mcp: { enabled: true, mountPath: '/tools' },
      a2a: { enabled: true, mountPath: '/agents/shop' },
    };
    const overrides = { protocols };
    const gateway = await openGateway({ chain, backendUrl: backend.url, facilitator: { mode: 'local' }, overrides });
    try {
      const document = (await (await fetch(`${gateway.url}/.well-known/agent-commerce`)).json()) as {
        readonly protocols: Readonly<Record<string, { readonly mountPath?: string }>>;
      };
      assert.deepEqual(
        [document.protocols['mcp']?.mountPath, document.protocols['a2a']?.mountPath],
        ['/tools', '/agents/shop'],
      );
      const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
      assert.equal((await ask(gateway.url, { path: '/tools', headers, body: JSON.stringify(list) })).status, 200);
      assert.equal((await ask(gateway.url, { path: '/mcp', headers, body: JSON.stringify(list) })).status, 404);
      const card = (await (await fetch(`${gateway.url}/agents/shop/.well-known/agent-card.json`)).json()) as {
        readonly supportedInterfaces: readonly { readonly url: string }[];
      };
      assert.equal(card.supportedInterfaces[0]?.url, `${gateway.config.merchant.publicBaseUrl}/agents/shop`);
      assert.equal((await ask(gateway.url, { path: '/agents/shop', headers, body: JSON.stringify(list) })).status, 200);
    } finally {
      await gateway.close();
    }
  });
});
