import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { terminate } from '../../tools/local-world/child.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { freePorts } from '../support/ports.ts';
import { startRedis } from '../support/redis.ts';
import { Development } from './rendered.ts';

/** The ports of the overlay, for which this machine has others. */
const PORTS = ['8402', '8403', '3000'];
const POLL_MS = 40;
const DEADLINE_MS = 60_000;

describe('the pod of the development overlay, as processes', () => {
  const ends = new AsyncDisposableStack();
  after(() => ends.disposeAsync());
  let gateway: GatewayProcess;
  let managementUrl: string;
  let startMerchant: () => void;

  before(async () => {
    const dev = new Development();
    const ports = await freePorts(PORTS.length);
    const moved = (text: string): string =>
      text.replaceAll(new RegExp(`\\b(${PORTS.join('|')})\\b`, 'g'), (port) => String(ports[PORTS.indexOf(port)]));
    const root = await temporaryDirectory(ends, 'pod-');
    const redis = await startRedis();
    ends.defer(() => redis.stop());
    const facilitator = await startHostileFacilitator('eip155:84532');
    ends.defer(() => facilitator.stop());

    const config = dev.pick('ConfigMap', 'agent-commerce-gateway-config').data?.['gateway.yaml'] ?? '';
    const token = dev.pick('Secret', 'agent-commerce-gateway-secret').data?.['ADMIN_TOKEN'] ?? '';
    const files = {
      '/etc/agent-commerce/gateway.yaml': moved(config).replace('https://www.x402.org/facilitator', facilitator.url),
      '/run/agent-commerce/ADMIN_TOKEN': Buffer.from(token, 'base64').toString(),
      '/run/agent-commerce/REDIS_URL': redis.url,
      '/opt/merchant/merchant.mjs': moved(dev.pick('ConfigMap', 'market-shop-source').data?.['merchant.mjs'] ?? ''),
    };
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
    const [, program = ''] = dev.backend.command ?? [];
    startMerchant = () => {
      const merchant = spawn(process.execPath, [join(root, program)], { stdio: 'ignore' });
      leash(merchant);
      ends.defer(async () => void (await terminate(merchant, 2_000)));
    };

    const env = Object.fromEntries(
      (dev.gateway.env ?? []).map(({ name, value = '' }) => [
        name,
        value.startsWith('/') ? join(root, value) : moved(value),
      ]),
    );
    gateway = await startGateway({
      configPath: join(root, '/etc/agent-commerce/gateway.yaml'),
      baseUrl: `http://127.0.0.1:${ports[0]}`,
      // Nothing routes to it.
      env: { ...env, GATEWAY_DRAIN_SECONDS: '0' },
    });
    ends.defer(async () => void (await gateway.stop()));
    managementUrl = `http://127.0.0.1:${ports[1]}`;
  });

  async function probed(path: string): Promise<number> {
    const answer = await fetch(`${managementUrl}${path}`);
    await answer.arrayBuffer();
    return answer.status;
  }

  function invoke(resource: string, input: object): Promise<Response> {
    const headers = { 'content-type': 'application/json' };
    return fetch(`${gateway.baseUrl}/api/resources/${resource}/invoke`, {
      ...{ method: 'POST', headers, body: JSON.stringify(input) },
    });
  }

  it('starts before its merchant, which is not ready yet', async () => {
    assert.equal(await probed('/health'), 200);
    assert.equal(await probed('/routing'), 200);
    assert.notEqual(await probed('/app-probe/readiness'), 200);
  });

  it('is ready by the merchant’s own probes once the merchant listens, and sells', {
    timeout: DEADLINE_MS,
  }, async () => {
    startMerchant();
    while ((await probed('/app-probe/readiness')) !== 200) await delay(POLL_MS);
    assert.equal(await probed('/app-probe/liveness'), 200);
    const free = await invoke('shop_status', {});
    assert.deepEqual([free.status, await free.json()], [200, { open: true }]);
    const priced = await invoke('market_report', { city: 'Berlin' });
    assert.equal(priced.status, 402);
  });
});
