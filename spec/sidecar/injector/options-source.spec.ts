import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type InjectionOptions, USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import { optionsSource } from '../../../src/sidecar/injector/open-injector.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';

/** The values that the ConfigMap of the admission policies has. */
const PARAMETERS = {
  image: 'registry.example/gateway@sha256:aa',
  imagePullPolicy: 'Always',
  configMap: 'shop-config',
  secret: 'shop-secret',
  secretKeys: 'ADMIN_TOKEN,REDIS_URL,ACP_TOKEN',
  agentsPort: '9402',
  managementPort: '9403',
  drainSeconds: '90',
  cpuRequest: '60m',
  memoryRequest: '97Mi',
  memoryLimit: '193Mi',
};

function read(path: string): InjectionOptions {
  const source = optionsSource(path);
  return source.read(source.files.map((file) => readFileSync(file, 'utf8')));
}

async function mounted(ends: AsyncDisposableStack, parameters: object): Promise<string> {
  const directory = await temporaryDirectory(ends, 'options-');
  for (const [key, value] of Object.entries(parameters)) writeFileSync(join(directory, key), value);
  return directory;
}

describe('the options of an injector', () => {
  it('are a YAML file', async () => {
    await using ends = new AsyncDisposableStack();
    const directory = await mounted(ends, { 'options.yaml': 'drainSeconds: 80\n' });
    assert.deepEqual(read(join(directory, 'options.yaml')), { ...USUAL_OPTIONS, drainSeconds: 80 });
  });

  it('are the mounted keys of the ConfigMap of the policies, every one of them', async () => {
    await using ends = new AsyncDisposableStack();
    assert.deepEqual(read(await mounted(ends, PARAMETERS)), {
      image: 'registry.example/gateway@sha256:aa',
      imagePullPolicy: 'Always',
      configMap: 'shop-config',
      secret: 'shop-secret',
      secretKeys: ['ADMIN_TOKEN', 'REDIS_URL', 'ACP_TOKEN'],
      ports: { agents: 9402, management: 9403 },
      drainSeconds: 90,
      resources: { requests: { cpu: '60m', memory: '97Mi' }, limits: { memory: '193Mi' } },
    });
  });

  it('may end with a line break', async () => {
    await using ends = new AsyncDisposableStack();
    const lines = Object.entries(PARAMETERS).map(([key, value]) => [key, `${value}\n`]);
    assert.deepEqual(read(await mounted(ends, Object.fromEntries(lines))), read(await mounted(ends, PARAMETERS)));
  });

  it('are refused in words where a value is not right', async () => {
    await using ends = new AsyncDisposableStack();
    const directory = await mounted(ends, { ...PARAMETERS, agentsPort: '84o2', image: '' });
    assert.throws(() => read(directory), /image: .*\n.*ports\.agents: must be a port/);
  });
});
