import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import express, { type Express } from 'express';
import { pack, writePackage } from '../../deploy/package/make.ts';
import { parseConfig } from '../../src/config/load.ts';
import type { createGateway, GatewayOptions, OpenGateway } from '../../src/library.ts';
import { createRail, type X402Rail } from '../../src/payments/x402/create-rail.ts';
import type { ConfigError } from '../../src/problems/problem.ts';
import { openStore } from '../../src/store/open.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { blocksOf } from '../documents/blocks.ts';
import { brokenLinks } from '../documents/links.ts';
import { createBuyer } from '../support/buyer.ts';
import { type ConfigObject, worldConfig } from '../support/config.ts';
import { freePorts } from '../support/ports.ts';
import { askPrice, redeem } from '../support/purchase.ts';
import { startSampleBackend } from '../support/sample-backend.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Of the archive, bytes. */
const LARGEST = 6_000_000;
const TOKEN = 'a-token-of-this-test-alone';
const CITY = '{"city":"Berlin"}';
const SILENT = { info: () => undefined, warn: () => undefined };

interface Library {
  readonly createGateway: typeof createGateway;
  readonly ConfigError: typeof ConfigError;
}

describe('the package', () => {
  const work = mkdtempSync(join(tmpdir(), 'package-'));
  const installed = join(work, 'install/node_modules/agent-commerce-gateway');
  let archive = '';
  const ends = new AsyncDisposableStack();

  before(async () => {
    await writePackage(join(work, 'written'));
    archive = pack(join(work, 'written'), work);
    mkdirSync(join(work, 'install'));
    // Without the optional chain, of which the registry has the archive: nothing else is needed.
    npm('install', archive, '--omit=optional', '--offline', '--ignore-scripts', '--no-audit', '--no-fund');
  });
  after(async () => {
    await ends.disposeAsync();
    rmSync(work, { recursive: true, force: true });
  });

  function npm(...words: readonly string[]): void {
    execFileSync('npm', words, { cwd: join(work, 'install'), stdio: 'pipe' });
  }

  function acg(...words: readonly string[]) {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(work, 'install/node_modules/.bin/acg'), ...words],
      {
        cwd: work,
        encoding: 'utf8',
        env: {},
      },
    );
    return { code: status, out: stdout, errors: stderr };
  }

  it('holds the bundles, the schemas, types, documents, examples and licence, no spec and no secret', () => {
    const names = execFileSync('tar', ['tzf', archive], { encoding: 'utf8' }).trim().split('\n');
    for (const name of [
      'acg.mjs',
      'library.mjs',
      'types/src/library.d.ts',
      'schemas/config.schema.json',
      'README.md',
      'docs/pictures/pod.svg',
      'deploy/examples/base.yaml',
      'LICENSE',
    ])
      assert.ok(names.includes(`package/${name}`), name);
    assert.deepEqual(
      names.filter(
        (name) =>
          /\bspec\/|node_modules|\.map$/.test(name) ||
          /(?<!\.d)\.ts$/.test(name) ||
          /\/secrets\/(?!generate\.sh$)/.test(name),
      ),
      [],
    );
    assert.ok(statSync(archive).size < LARGEST, `${statSync(archive).size} bytes`);
  });

  it('holds whatever its documents link to', () => {
    const documents = globSync(join(installed, '**/*.md'));
    assert.ok(documents.length > 25, `${documents.length} documents`);
    assert.deepEqual(brokenLinks(documents), []);
  });

  it('needs no other package', () => {
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
    assert.equal(manifest.dependencies, undefined);
    const chains = ['darwin-amd64', 'darwin-arm64', 'linux-amd64', 'linux-arm64', 'win32-amd64'];
    assert.deepEqual(
      Object.keys(manifest.optionalDependencies),
      chains.map((machine) => `@foundry-rs/anvil-${machine}`),
    );
    assert.equal(manifest.scripts, undefined);
  });

  it('runs acg with the commands of a gateway and of developers, from any folder', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    assert.deepEqual(acg('--version'), { code: 0, out: `${version}\n`, errors: '' });
    const { out } = acg('--help');
    for (const command of ['serve', 'validate', 'mandate']) assert.match(out, new RegExp(`^  ${command} `, 'm'));
    writeFileSync(join(work, 'shop.yaml'), shop());
    const { code, out: said } = acg('validate', '--config', 'shop.yaml');
    assert.deepEqual([code, said.split(',')[0]], [0, 'valid: 1 resources']);
  });

  it('writes the schema with its descriptions, which editors show', () => {
    assert.equal(acg('init', '--out', 'first.yaml', '--schema').code, 0);
    const written = JSON.parse(readFileSync(join(work, 'acg-config.schema.json'), 'utf8'));
    assert.deepEqual(written, JSON.parse(readFileSync(join(ROOT, 'schemas/config.schema.json'), 'utf8')));
  });

  describe('as a library', () => {
    let library: Library;
    let chain: Chain;
    let backendUrl = '';

    before(async () => {
      library = await import(pathToFileURL(join(installed, 'library.mjs')).href);
      chain = await startChain();
      ends.defer(() => chain.stop());
      const backend = await startSampleBackend();
      ends.defer(() => backend.stop());
      backendUrl = backend.url;
    });

    /** A document of the sample merchant. */
    function config(ports: { readonly agents: number; readonly management: number }): ConfigObject {
      const storage = { sqlite: { path: ':memory:' } };
      return worldConfig({ backendUrl, chain, storage, facilitator: { mode: 'local' }, ports, adminToken: TOKEN });
    }

    async function opened(options: Partial<GatewayOptions> = {}): Promise<OpenGateway> {
      const usual = { config: config({ agents: 1, management: 2 }), log: { write: () => undefined } };
      const gateway = await library.createGateway({ ...usual, ...options });
      ends.defer(() => gateway.close());
      return gateway;
    }

    /** An Express app of the user, at an address. */
    async function served(app: Express): Promise<string> {
      const server = app.listen(0, '127.0.0.1');
      await once(server, 'listening');
      ends.defer(() => void server.closeAllConnections());
      ends.defer(() => void server.close());
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    }

    it('sells behind an Express app, whose own routes come first', async () => {
      const app = express();
      app.get('/own', (_req, res) => void res.send('own'));
      const gateway = await opened({ app });
      assert.match(gateway.warnings[0] ?? '', /^resources\.free_market_report: is the same operation/);
      const url = await served(app);
      assert.equal(await (await fetch(`${url}/own`)).text(), 'own');
      assert.equal((await fetch(`${url}/absent`)).status, 404);
      const buyer = await createBuyer(chain);
      const { paymentRequired, units } = await askPrice(url, 'market_report', CITY);
      const bought = await redeem(url, 'market_report', CITY, await buyer.pay(paymentRequired));
      assert.deepEqual([bought.status, JSON.parse(bought.body.toString()).city], [200, 'Berlin']);
      assert.equal(await buyer.balance(), 10_000_000n - units);
    });

    it('listens where its configuration says, and no more once it is closed', async () => {
      const [agents = 0, management = 0] = await freePorts(2);
      const gateway = await opened({ config: config({ agents, management }) });
      assert.deepEqual(await gateway.listen(), { agents, management });
      assert.equal((await fetch(`http://127.0.0.1:${management}/ready`)).status, 200);
      await gateway.close();
      await assert.rejects(fetch(`http://127.0.0.1:${agents}/api/resources`));
    });

    it('reads a configuration file, and refuses a wrong one with its problems', async () => {
      const path = join(work, 'wrong.yaml');
      writeFileSync(path, shop().replace('"free"', '"cheap"'));
      await assert.rejects(opened({ config: path }), (error) => {
        assert.ok(error instanceof library.ConfigError);
        assert.match(error.message, /resources\.cities\.pricing/);
        return true;
      });
    });

    it('keeps its payments in a store of the caller, and settles by a rail of the caller', async () => {
      const { storage, merchant, x402 } = parseConfig(JSON.stringify(config({ agents: 1, management: 2 })), {});
      const store = await openStore({ ...storage, merchantId: merchant.id });
      const rail = await createRail(x402 ?? assert.fail('nothing is sold'), SILENT);
      const settled: string[] = [];
      const counting = {
        ...rail,
        settle: (...given: Parameters<X402Rail['settle']>) => {
          settled.push(given[0].payId);
          return rail.settle(...given);
        },
      };
      const app = express();
      await opened({ app, store, rail: counting });
      const url = await served(app);
      const buyer = await createBuyer(chain);
      const { paymentRequired } = await askPrice(url, 'market_report', CITY);
      await redeem(url, 'market_report', CITY, await buyer.pay(paymentRequired));
      const { receipts } = await store.receipts.page({ limit: 10 });
      assert.deepEqual(
        receipts.map(({ payment }) => payment?.replayKey),
        settled,
      );
      assert.equal(settled.length, 1);
    });

    it('writes its log to a place of the caller, and masks secrets in it', async () => {
      const lines: string[] = [];
      const app = express();
      await opened({ app, log: { write: (line) => void lines.push(line) } });
      await fetch(`${await served(app)}/api/resources?${TOKEN}`);
      await fetch(`${await served(app)}/${TOKEN}`);
      assert.ok(lines.length > 0);
      assert.ok(lines.some((line) => line.includes('/[secret]')));
      assert.ok(!lines.join('').includes(TOKEN));
    });

    it('runs as docs/embedding.md shows', async () => {
      const [block = assert.fail('the document shows no program')] = blocksOf('docs/embedding.md');
      const [port = 0] = await freePorts(1);
      const url = `http://127.0.0.1:${port}`;
      const asked = `console.log(await Promise.all(['/health', '/api/resources'].map(async (path) => (await fetch('${url}' + path)).status)));`;
      const program = block.text.replace('8402', String(port)).replace(/^\/\/ later.*$/m, asked);
      assert.ok(program.includes(asked));
      writeFileSync(join(work, 'install/embedding.ts'), program);
      writeFileSync(join(work, 'install/config.yaml'), shop());
      symlinkSync(join(ROOT, 'node_modules/express'), join(work, 'install/node_modules/express'));
      const { stdout, stderr, status } = spawnSync(process.execPath, ['embedding.ts'], {
        cwd: join(work, 'install'),
        encoding: 'utf8',
      });
      assert.equal(status, 0, stderr);
      assert.match(stdout, /\[ 200, 200 \]/);
    });

    it('has types that a strict program compiles against', () => {
      const consumer = join(work, 'install/consumer.ts');
      writeFileSync(
        consumer,
        `import { createGateway, ConfigError, type OpenGateway, type Store, type X402Rail } from 'agent-commerce-gateway';
export async function open(app: { use(handler: unknown): unknown }, store: Store, rail: X402Rail): Promise<number> {
  const gateway: OpenGateway = await createGateway({ config: 'config.yaml', app, store, rail });
  const { agents } = await gateway.listen();
  return agents;
}
// @ts-expect-error: a configuration is needed
export const wrong = (): Promise<OpenGateway> => createGateway({});
export { ConfigError };
`,
      );
      mkdirSync(join(work, 'install/node_modules/@types'));
      symlinkSync(join(ROOT, 'node_modules/@types/node'), join(work, 'install/node_modules/@types/node'));
      symlinkSync(join(ROOT, 'node_modules/undici-types'), join(work, 'install/node_modules/undici-types'));
      const options = [
        '--ignoreConfig',
        '--noEmit',
        '--strict',
        '--module',
        'nodenext',
        '--target',
        'es2024',
        '--types',
        'node',
      ];
      const { status, stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), [...options, consumer], {
        encoding: 'utf8',
      });
      assert.equal(stdout, '');
      assert.equal(status, 0);
    });
  });
});

function shop(): string {
  return JSON.stringify({
    version: 1,
    merchant: { id: 'shop', name: 'Shop', publicBaseUrl: 'http://127.0.0.1:8402' },
    backend: { baseUrl: 'http://127.0.0.1:3000' },
    storage: { sqlite: { path: ':memory:' } },
    resources: { cities: { name: 'Cities', backend: { method: 'GET', path: '/cities' }, pricing: { type: 'free' } } },
  });
}
