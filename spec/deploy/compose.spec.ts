import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { parse } from 'yaml';
import { drainLengthOf } from '../../src/app/open-pod-hooks.ts';
import { loadConfig } from '../../src/config/load.ts';
import { drainSeconds } from '../../src/sidecar/lifecycle.ts';
import { instructions } from './dockerfile.ts';
import { Development } from './rendered.ts';

interface Mount {
  readonly type: 'bind' | 'volume';
  readonly source: string;
  readonly target: string;
  readonly read_only?: boolean;
}

interface Service {
  readonly image: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly privileged?: boolean;
  readonly ports?: readonly string[];
  readonly network_mode?: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly stop_grace_period?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly volumes?: readonly Mount[];
}

/** What a service of the Compose Specification may have, as far as this file uses it. */
const KNOWN_KEYS = [
  ...['image', 'user', 'read_only', 'cap_drop', 'security_opt', 'restart', 'ports', 'network_mode', 'entrypoint'],
  ...['command', 'environment', 'depends_on', 'stop_grace_period', 'mem_limit', 'healthcheck', 'volumes'],
];

const root = mkdtempSync(join(tmpdir(), 'compose-'));
const folder = join(root, 'compose');
for (const name of ['compose', 'overlays'])
  cpSync(join(import.meta.dirname, '../../deploy', name), join(root, name), {
    recursive: true,
    filter: (source) => !/\/secrets\/(gateway|redis)$/.test(source),
  });
execFileSync(join(root, 'overlays/dev/secrets/generate.sh'), { stdio: 'pipe' });

const file = parse(readFileSync(join(folder, 'compose.yaml'), 'utf8'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const services = Object.entries(file.services);

function service(name: string): Service {
  return file.services[name] ?? assert.fail(`no service ${name}`);
}

/** The same path in this copy, for what a container has mounted. */
function onHost(path: string, { volumes = [] }: Service): string {
  const mount = volumes.find(({ target }) => path.startsWith(`${target}/`)) ?? assert.fail(`${path} is not mounted`);
  return join(folder, mount.source, path.slice(mount.target.length));
}

/** The environment of the gateway, with the paths of this copy. */
function environmentOnHost(): Readonly<Record<string, string>> {
  const gateway = service('gateway');
  return Object.fromEntries(
    Object.entries(gateway.environment ?? {}).map(([name, value]) => [
      name,
      value.startsWith('/') ? onHost(value, gateway) : value,
    ]),
  );
}

describe('the compose file', () => {
  after(() => rmSync(root, { recursive: true }));

  it('has a gateway, a merchant, a Redis, and what holds their network', () => {
    assert.deepEqual(Object.keys(file.services).sort(), ['gateway', 'merchant', 'pod', 'redis']);
    for (const [name, one] of services)
      assert.deepEqual(
        Object.keys(one).filter((key) => !KNOWN_KEYS.includes(key)),
        [],
        name,
      );
  });

  it('takes every image from a variable, and none by a tag that moves', () => {
    for (const [name, { image }] of services) {
      const [, defaultImage, needed] =
        /^\$\{[A-Z]+_IMAGE:(?:-([\w./-]+:[\w.-]+)|\?(.+))\}$/.exec(image) ?? assert.fail(image);
      assert.ok((defaultImage ?? needed) !== undefined, name);
      assert.doesNotMatch(defaultImage ?? '', /:latest$/, name);
    }
  });

  it('closes every container', () => {
    for (const [name, { user = '', read_only, cap_drop, security_opt, privileged }] of services) {
      assert.match(user, /^(\d{3,5}:\d{3,5}|redis)$/, name);
      assert.deepEqual(
        { read_only, cap_drop, security_opt, privileged },
        { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'], privileged: undefined },
        name,
      );
    }
  });

  it('publishes the port of agents on this machine, and no other', () => {
    assert.deepEqual(
      services.flatMap(([, { ports = [] }]) => ports),
      ['127.0.0.1:8402:8402'],
    );
  });

  it('lets only the gateway reach the merchant, over their loopback', () => {
    for (const name of ['gateway', 'merchant']) assert.equal(service(name).network_mode, 'service:pod');
    assert.equal(service('redis').network_mode, undefined);
    const [, program = ''] = service('merchant').entrypoint ?? [];
    assert.match(readFileSync(onHost(program, service('merchant')), 'utf8'), /listen\(PORT, '127\.0\.0\.1'\)/);
  });

  it('stops the gateway first, and gives it the time of a drain', () => {
    assert.deepEqual(Object.keys(service('gateway').depends_on ?? {}).sort(), ['merchant', 'pod', 'redis']);
    assert.equal(service('gateway').depends_on?.['redis']?.condition, 'service_healthy');
    const propagation = Number(service('gateway').environment?.['GATEWAY_DRAIN_SECONDS']);
    const drain = drainSeconds(drainLengthOf(loadConfig({ env: environmentOnHost() }), propagation));
    assert.ok(Number.parseInt(service('gateway').stop_grace_period ?? '', 10) > drain);
  });

  it('mounts directories that exist or that the script makes, read-only', () => {
    for (const [name, { volumes = [] }] of services)
      for (const { type, source, read_only } of volumes) {
        if (type === 'volume') assert.ok(source in file.volumes, name);
        else assert.ok(existsSync(join(folder, source)) && read_only, `${name}: ${source}`);
      }
    const [, conf = ''] = service('redis').command ?? [];
    const text = readFileSync(onHost(conf, service('redis')), 'utf8');
    const [, include = ''] = /^include (.*)$/m.exec(text) ?? [];
    assert.match(readFileSync(onHost(include, service('redis')), 'utf8'), /^requirepass [0-9a-f]{48}\n$/);
  });

  it('gives the gateway what the pod of the overlay gives it, and a configuration that it starts with', () => {
    const environment = service('gateway').environment ?? {};
    for (const { name, value } of new Development().gateway.env ?? [])
      if (name in environment && name !== 'GATEWAY_DRAIN_SECONDS') assert.equal(environment[name], value, name);
    const { storage, server, backend } = loadConfig({ env: environmentOnHost() });
    assert.equal(storage.engine.kind, 'redis');
    assert.match(server.adminTokens[0] ?? '', /^[0-9a-f]{48}$/);
    assert.equal(backend.origin, 'http://127.0.0.1:3000');
  });

  it('asks for the health as the image does', () => {
    const [check = ''] = instructions(join(import.meta.dirname, '../../deploy/Dockerfile'))
      .filter(({ name }) => name === 'HEALTHCHECK')
      .map(({ value }) => value);
    assert.deepEqual(service('gateway').healthcheck?.test.slice(1), JSON.parse(check.slice(check.indexOf('['))));
  });
});
