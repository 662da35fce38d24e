import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { stringify } from 'yaml';
import { COMPILE_CACHE } from '../../spec/support/compile-cache.ts';
import { hookHeader } from '../../src/sidecar/injection/names.ts';
import { terminate } from '../../tools/local-world/child.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';

/** What stands in `PATH` of root, and not always in that of others. */
const IP = existsSync('/usr/sbin/ip') ? '/usr/sbin/ip' : 'ip';
/** Addresses for tests of networks (RFC 2544); no other namespace sees them. */
const POD_ADDRESS = '198.18.7.1';
const AGENT_ADDRESS = '198.18.7.2';

interface Namespaces {
  readonly podAddress: string;
  /** Runs Node with these arguments there. */
  spawn(where: 'pod' | 'agent', args: readonly string[], env?: Readonly<Record<string, string>>): ChildProcess;
  /** Removes both, and with them the cable. */
  close(): void;
}

/** Why there can be no namespaces here; undefined: there can. */
function namespacesFault(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are of Linux';
  if (process.getuid?.() !== 0) return 'only root may make network namespaces';
  const probe = `acg-probe-${process.pid}`;
  const made = ip('netns', 'add', probe);
  if (made === undefined) ip('netns', 'delete', probe);
  return made;
}

/** @throws Error with the words of `ip`, when nothing is left behind */
function openNamespaces(): Namespaces {
  const names = { pod: `acg-pod-${process.pid}`, agent: `acg-agent-${process.pid}` };
  const cable = { pod: `acgp${process.pid}`, agent: `acga${process.pid}` };
  const close = (): void => {
    process.off('exit', close);
    for (const name of Object.values(names)) ip('netns', 'delete', name);
  };
  process.once('exit', close);
  const steps: readonly (readonly string[])[] = [
    ...Object.values(names).map((name) => ['netns', 'add', name]),
    ['link', 'add', cable.pod, 'netns', names.pod, 'type', 'veth', 'peer', 'name', cable.agent, 'netns', names.agent],
    ['-n', names.pod, 'address', 'add', `${POD_ADDRESS}/30`, 'dev', cable.pod],
    ['-n', names.agent, 'address', 'add', `${AGENT_ADDRESS}/30`, 'dev', cable.agent],
    ...(['pod', 'agent'] as const).flatMap((one) => [
      ['-n', names[one], 'link', 'set', 'lo', 'up'],
      ['-n', names[one], 'link', 'set', cable[one], 'up'],
    ]),
  ];
  for (const step of steps) {
    const fault = ip(...step);
    if (fault === undefined) continue;
    close();
    throw new Error(fault);
  }
  return {
    podAddress: POD_ADDRESS,
    spawn(where, args, env = {}) {
      // `ip` becomes the program, so a signal reaches it.
      const child = spawn(IP, ['netns', 'exec', names[where], process.execPath, ...args], {
        env: { PATH: process.env['PATH'] ?? '', ...env },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      leash(child);
      return child;
    },
    close,
  };
}

/** Undefined when it did; else its words. */
function ip(...args: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync(IP, args, { encoding: 'utf8' });
  return status === 0 ? undefined : `ip ${args.join(' ')}: ${error?.message ?? stderr.trim()}`;
}

const MAIN = process.env['GATEWAY_ENTRY'] ?? join(import.meta.dirname, '../../src/main.ts');
const { name: HOOK_NAME, value: HOOK_VALUE } = hookHeader();
const HOOK = { [HOOK_NAME]: HOOK_VALUE };
const MERCHANT_PORT = 8_080;
const STOP_GRACE_MS = 10_000;
/** Between two looks, milliseconds. */
const LOOK_MS = 100;

interface Answer {
  readonly status?: number;
  readonly text?: string;
  readonly failed?: string;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const fault = namespacesFault();

describe('a pod in a network namespace, and an agent in another', { skip: fault ?? false }, () => {
  const ends = new AsyncDisposableStack();
  after(() => ends.disposeAsync());
  let namespaces: Namespaces;
  let ask: (port: number, path: string, asked?: Asked) => Promise<Answer>;

  before(() => {
    namespaces = openNamespaces();
    ends.defer(() => namespaces.close());
    ask = agentIn(namespaces, ends);
  });

  it('reaches both listeners, changes nothing on 8403 without the hook header, and not the merchant', async () => {
    await using pod = await startPod(namespaces, ask, '127.0.0.1');
    const bought = await ask(8402, '/api/resources/cities/invoke', {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' },
    });
    assert.equal(bought.status, 200, JSON.stringify(bought));
    assert.deepEqual(await ask(MERCHANT_PORT, '/cities'), { failed: 'ECONNREFUSED' });
    for (const path of ['/health', '/ready', '/routing', '/metrics'])
      assert.equal((await ask(8403, path)).status, 200, path);
    assert.match((await ask(8403, '/metrics')).text ?? '', /^acg_merchant_exposed 0$/m);
    assert.doesNotMatch(pod.output(), /past the gateway/);

    // Browsers send these with every request of a page, which cannot leave them out.
    const pages = [
      {},
      { ...HOOK, origin: 'http://page.example' },
      { ...HOOK, origin: 'null' },
      { ...HOOK, 'sec-fetch-site': 'cross-site' },
      { [HOOK_NAME]: '0' },
    ];
    for (const path of ['/drain', '/release'])
      for (const method of ['GET', 'HEAD', 'POST'])
        for (const headers of pages) {
          const { status } = await ask(8403, path, { method, headers });
          assert.ok(status === 403 || (method !== 'GET' && status === 405), `${method} ${path} ${status}`);
        }
    assert.equal((await ask(8403, '/routing')).status, 200);
    assert.equal((await ask(8402, '/ready')).status, 200);
    assert.doesNotMatch(pod.output(), /draining/);
  });

  it('drains with the header, which shows that the requests above could have', async () => {
    await using pod = await startPod(namespaces, ask, '127.0.0.1');
    assert.equal((await pod.hook('/drain')).status, 200);
    assert.equal((await ask(8403, '/routing')).status, 503);
  });

  it('is told by log and metric of a merchant that listens on every address', async () => {
    await using pod = await startPod(namespaces, ask, '0.0.0.0');
    assert.equal((await ask(MERCHANT_PORT, '/cities')).status, 200);
    let text = '';
    do {
      await delay(LOOK_MS);
      text = (await ask(8403, '/metrics')).text ?? '';
    } while (!/^acg_merchant_exposed 1$/m.test(text));
    // The log is written a moment later.
    const told = /"address":"198\.18\.7\.1","port":8080,"msg":"the backend can be called past the gateway/;
    while (!told.test(pod.output())) await delay(LOOK_MS);
  });
});

/** Asks from the namespace of the agent, one after the other. */
function agentIn(namespaces: Namespaces, ends: AsyncDisposableStack) {
  const agent = namespaces.spawn('agent', [join(import.meta.dirname, 'agent-main.ts')]);
  ends.defer(async () => void (await terminate(agent, STOP_GRACE_MS)));
  const { stdin, stdout } = agent;
  assert.ok(stdin !== null && stdout !== null);
  const lines = createInterface({ input: stdout });
  return async (port: number, path: string, asked: Asked = {}): Promise<Answer> => {
    const answered = once(lines, 'line');
    stdin.write(`${JSON.stringify({ url: `http://${namespaces.podAddress}:${port}${path}`, ...asked })}\n`);
    const [line] = (await answered) as [string];
    return JSON.parse(line) as Answer;
  };
}

/** Gateway and merchant in the namespace of the pod, when both answer. */
async function startPod(
  namespaces: Namespaces,
  ask: (port: number, path: string) => Promise<Answer>,
  merchantHost: string,
) {
  const ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-namespace-');
  const configPath = join(directory, 'gateway.yaml');
  writeFileSync(configPath, stringify(configuration(join(directory, 'gateway.db'))));
  const merchantArgs = [join(import.meta.dirname, 'merchant-main.ts'), String(MERCHANT_PORT), '0', merchantHost];
  const merchant = namespaces.spawn('pod', merchantArgs);
  ends.defer(async () => void (await terminate(merchant, STOP_GRACE_MS)));
  const [listening] = (await once(merchant.stdout ?? merchant, 'data')) as [Buffer];
  assert.match(listening.toString(), /listening/);
  const gateway = namespaces.spawn('pod', [MAIN, 'serve', '--config', configPath], {
    ...COMPILE_CACHE,
    GATEWAY_DRAIN_SECONDS: '0',
  });
  ends.defer(async () => void (await terminate(gateway, STOP_GRACE_MS)));
  let output = '';
  gateway.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  while ((await ask(8403, '/ready')).status !== 200) {
    assert.ok(gateway.exitCode === null, output);
    await delay(LOOK_MS);
  }
  return {
    output: () => output,
    hook: (path: string) => askWithHook(ask, path),
    [Symbol.asyncDispose]: () => ends.disposeAsync(),
  };
}

function askWithHook(
  ask: (port: number, path: string, asked?: Asked) => Promise<Answer>,
  path: string,
): Promise<Answer> {
  return ask(8403, path, { headers: HOOK });
}

/** The ports and addresses of the image; one free resource, so that nothing settles. */
function configuration(path: string): object {
  return {
    version: 1,
    merchant: { id: 'market-shop', name: 'Market Shop', publicBaseUrl: 'http://shop.example' },
    backend: { baseUrl: `http://127.0.0.1:${MERCHANT_PORT}` },
    storage: { sqlite: { path } },
    resources: {
      cities: { name: 'Cities', backend: { method: 'GET', path: '/cities' }, pricing: { type: 'free' } },
    },
  };
}
