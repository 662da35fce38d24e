import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type InjectionOptions, USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import { mountedFiles, optionsSource } from '../../../src/sidecar/injector/open-injector.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { createAuthority, type Identity, makeCertificate, namesExtension } from '../../support/certificates.ts';
import { reviewOf } from './reviews.ts';
import { ask, Mount, type RunningInjector, secretOf, startInjector } from './running-injector.ts';

function fingerprint(certificate: string): string {
  return new X509Certificate(certificate).fingerprint256;
}

async function metric(injector: RunningInjector, line: string): Promise<number> {
  const { text } = await injector.management('/metrics');
  const found = text.split('\n').find((one) => one.startsWith(`${line} `));
  return Number(found?.slice(line.length));
}

describe('mounted files', () => {
  it('are read again at each swap of the directory that they link to', async () => {
    await using ends = new AsyncDisposableStack();
    const mount = new Mount(join(await temporaryDirectory(ends, 'mount-'), 'm'), { a: '0', b: '0' });
    let changed = Promise.withResolvers<string>();
    const mounted = mountedFiles({
      files: ['a', 'b'].map((name) => join(mount.directory, name)),
      read: (contents) => contents.join(' '),
      onChange: (value) => changed.resolve(value),
      onRejected: (reason) => changed.reject(reason),
    });
    ends.defer(() => mounted.close());
    for (const value of ['1', '2', '3']) {
      mount.swap({ a: value, b: value });
      assert.equal(await changed.promise, `${value} ${value}`);
      changed = Promise.withResolvers();
    }
    assert.equal(mounted.current(), '3 3');
  });

  it('are read again by a look from time to time where no watch tells of them', async () => {
    await using ends = new AsyncDisposableStack();
    const directory = await temporaryDirectory(ends, 'mount-');
    const mount = new Mount(join(directory, 'm'), { a: '0' });
    const changed = Promise.withResolvers<string>();
    // A link in a directory in which nothing happens: the watch there sees no swap.
    mkdirSync(join(directory, 'still'));
    symlinkSync(join(mount.directory, 'a'), join(directory, 'still', 'a'));
    const mounted = mountedFiles({
      files: [join(directory, 'still', 'a')],
      read: ([content = '']) => content,
      onChange: (value) => changed.resolve(value),
      onRejected: (reason) => changed.reject(reason),
      pollMs: 20,
    });
    ends.defer(() => mounted.close());
    mount.swap({ a: '1' });
    assert.equal(await changed.promise, '1');
  });

  it('stay as they were while they are not good, which is told once', async () => {
    await using ends = new AsyncDisposableStack();
    const directory = await temporaryDirectory(ends, 'mount-');
    const file = join(directory, 'a');
    writeFileSync(file, '1');
    const reasons: string[] = [];
    let told = Promise.withResolvers<void>();
    let looks = 0;
    const mounted = mountedFiles({
      files: [file],
      read: ([content = '']) => {
        looks += 1;
        if (content === 'bad') throw new Error('it is bad');
        return content;
      },
      onChange: () => told.resolve(),
      onRejected: (reason) => {
        reasons.push(String(reason));
        told.resolve();
      },
      pollMs: 5,
    });
    ends.defer(() => mounted.close());
    const next = async (change: () => void): Promise<void> => {
      told = Promise.withResolvers();
      change();
      await told.promise;
    };
    await next(() => writeFileSync(file, 'bad'));
    await next(() => rmSync(file));
    assert.equal(mounted.current(), '1');
    await next(() => writeFileSync(file, '2'));
    assert.equal(mounted.current(), '2');
    assert.deepEqual(
      reasons.map((reason) => /it is bad|ENOENT/.exec(reason)?.[0]),
      ['it is bad', 'ENOENT'],
    );
    assert.equal(looks, 3);
  });

  it('must be good at first', async () => {
    await using ends = new AsyncDisposableStack();
    const files = [join(await temporaryDirectory(ends, 'mount-'), 'none')];
    const never = (): void => assert.fail();
    assert.throws(() => mountedFiles({ files, read: never, onChange: never, onRejected: never }), /ENOENT/);
  });
});

describe('a running injector', () => {
  const ends = new AsyncDisposableStack();
  let injector: RunningInjector;
  before(async () => {
    injector = await startInjector(ends);
  });
  after(() => ends.disposeAsync());

  it('serves renewed certificates under load: no review fails, and open connections go on', async () => {
    const kept = new https.Agent({ keepAlive: true, maxSockets: 1 });
    const served = async (agent?: https.Agent): Promise<string> => {
      const answer = await ask(injector, { body: reviewOf(), ...(agent === undefined ? {} : { agent }) });
      assert.equal(answer.status, 200);
      return answer.served;
    };
    const before = await served(kept);
    let loaded = 0;
    let stopped = false;
    const load = Array.from({ length: 3 }, async () => {
      for (; !stopped; loaded += 1) await served();
    });
    for (let renewals = 0; renewals < 5; renewals += 1) {
      const renewed = injector.authority.issue();
      injector.certificates.swap(secretOf(renewed));
      while ((await served()) !== fingerprint(renewed.certificate));
      assert.equal(await served(kept), before);
    }
    stopped = true;
    await Promise.all(load);
    assert.ok(loaded > 0);
    kept.destroy();
    assert.equal(await metric(injector, 'acg_injector_reloads_total{what="certificate",result="reloaded"}'), 5);
  });

  const another = createAuthority('injector').issue();
  for (const [what, files, message] of [
    ['a key of another certificate', { key: another.key }, /not the key/],
    ['no certificate', { certificate: 'torn' }, /no certificate in PEM/],
    ['no key', { key: '' }, /no private key/],
    ['a chain that is torn behind its first certificate', torn(), /cannot be used for TLS/],
    ['an expired certificate', pairOf({ until: Date.now() - 1_000, names: ['localhost'] }), /has expired at/],
    ['a certificate without names', pairOf({ names: [] }), /subject alternative name/],
  ] as const)
    it(`keeps its certificate when the mounted files hold ${what}, and says so`, async () => {
      const good = (await ask(injector, { body: reviewOf() })).served;
      const rejected = 'acg_injector_reloads_total{what="certificate",result="rejected"}';
      const earlier = await metric(injector, rejected);
      injector.certificates.swap(secretOf({ ...injector.authority.issue(), ...files }));
      await injector.logged(({ err }) => message.test((err as { message?: string } | undefined)?.message ?? ''));
      assert.equal(await metric(injector, rejected), earlier + 1);
      assert.equal((await ask(injector, { body: reviewOf() })).served, good);
      assert.equal((await injector.management('/ready')).status, 200);
    });

  it('uses new options, and keeps them when worse ones come', async () => {
    const patch = async (): Promise<string> => {
      const { document } = await ask(injector, { body: reviewOf() });
      return Buffer.from(document.response?.patch ?? '', 'base64').toString();
    };
    injector.options.swap({ 'options.yaml': 'image: registry.example/gateway:2\n' });
    await injector.logged(({ what, msg }) => what === 'options' && msg === 'reloaded');
    assert.match(await patch(), /registry\.example\/gateway:2/);
    injector.options.swap({ 'options.yaml': 'imag: registry.example/gateway:3\n' });
    const { err } = await injector.logged(({ what, level }) => what === 'options' && level === 50);
    assert.match(JSON.stringify(err), /imag.*did you mean image/);
    assert.match(await patch(), /registry\.example\/gateway:2/);
  });
});

describe('an injector that is given another client authority', () => {
  it('refuses the clients of the one before, whose connections it has closed', async () => {
    await using ends = new AsyncDisposableStack();
    const clients = createAuthority('clients');
    const { certificate: cert, key } = clients.issue();
    const injector = await startInjector(ends, { clients });
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
    ends.defer(() => agent.destroy());
    const asked = { body: reviewOf(), tls: { cert, key }, agent };
    const kept = once(agent, 'free') as Promise<[Socket]>;
    assert.equal((await ask(injector, asked)).status, 200);
    const closed = once((await kept)[0], 'close');
    writeFileSync(injector.clientAuthority, createAuthority('clients').certificate);
    await closed;
    assert.equal((await ask(injector, asked)).status, 403);
  });
});

function torn(): Identity {
  const { certificate, key } = pairOf({ names: ['localhost'] });
  return { certificate: `${certificate}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`, key };
}

/** A certificate and its key with these members. */
function pairOf(parts: { readonly until?: number; readonly names: readonly string[] }): Identity {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { names, ...times } = parts;
  const extensions = names.length === 0 ? [] : [namesExtension(...names)];
  const statement = { issuer: 'injector', subject: 'localhost', publicKey, extensions, ...times };
  return {
    certificate: makeCertificate(statement, privateKey),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

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
