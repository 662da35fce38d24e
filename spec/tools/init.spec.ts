import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import release from '../../package.json' with { type: 'json' };
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { parseConfig } from '../../src/config/load.ts';
import { soldOperations } from '../../tools/init/operation.ts';
import { configText, type InitNetwork } from '../../tools/init/template.ts';
import { ended } from '../../tools/local-world/child.ts';
import { acg, acgOfCheckout, TOOLS } from '../cli/acg.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { answerJson, type HttpServer, serveHttp } from '../support/http-server.ts';

const PAYEE = '0x8D170Db9aB247E7013d024566093E13dc7b0f181';

describe('acg init', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-init-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const init = (...args: readonly string[]) => acgOfCheckout(folder, ['init', ...args]);
  const written = (name: string) => readFileSync(join(folder, name), 'utf8');

  it('writes a configuration that is valid at once, and says that nothing answers there and how to go on', async () => {
    const { code, lines, errors } = await init('--backend', 'http://127.0.0.1:1');
    assert.equal(code, 0, errors);
    assert.match(errors, /^http:\/\/127\.0\.0\.1:1 does not answer: start your service/);
    assert.deepEqual(lines.slice(1), [
      '  npm run -s acg -- dev',
      '  npm run -s acg -- pay http://127.0.0.1:8402 --resource home',
    ]);
    const checked = await acg(folder, ['validate']);
    assert.equal(checked.code, 0, checked.errors);
    assert.match(checked.lines[0] ?? '', /^valid: 1 resources, 1 of them paid; x402 on eip155:31337 \(local\)/);
  });

  describe('before a service', () => {
    const DOCUMENT = {
      openapi: '3.1.0',
      info: { title: 'Socks', version: '1' },
      paths: {
        '/socks': {
          get: { operationId: 'list_socks', responses: { '200': { description: 'all' } } },
          post: { operationId: 'add_sock', responses: { '201': { description: 'added' } } },
        },
      },
    };
    const PAGE = '<script>SwaggerUIBundle({ url: "/inner/schema.json" })</script>';
    /** What it serves by path; every other path is 404. */
    let served: Readonly<Record<string, unknown>> = {};
    let service: HttpServer;
    before(async () => {
      service = await serveHttp(({ request, response }) => {
        const body = served[request.url ?? ''];
        if (typeof body === 'string') response.end(body);
        else answerJson(response, body === undefined ? 404 : 200, body ?? {});
      });
    });
    after(() => service.stop());
    const pathsOf = (name: string) =>
      parseConfig(written(name), {}).resources.map(({ backend }) => `${backend.method} ${backend.path}`);

    for (const [title, paths] of [
      ['/openapi.json', { '/': 'up', '/openapi.json': DOCUMENT }],
      ['the document that the page /docs names', { '/': 'up', '/docs': PAGE, '/inner/schema.json': DOCUMENT }],
    ] as const)
      it(`sells the GET operations of ${title}, and names the others`, async () => {
        served = paths;
        const { errors } = await init('--backend', service.url, '--price', '$0.02', '--out', 'found.yaml', '--force');
        assert.match(errors, /\.json: 1 operations with GET are sold \(list_socks\)\.\nIt has 1 others: /);
        assert.deepEqual(pathsOf('found.yaml'), ['GET /socks']);
        const { pricing } = parseConfig(written('found.yaml'), {}).resources[0] ?? {};
        assert.equal(pricing?.type === 'fixed' && pricing.amount, '0.02');
      });

    it('sells what --sell names, and says what answers 404', async () => {
      served = { '/': 'up', '/search?q=socks': 'found' };
      const sold = ['--sell', 'GET /search?q=socks', '--sell', '/nothing', '--price', '$0.02'];
      const { errors } = await init('--backend', service.url, '--out', 'sold.yaml', ...sold);
      assert.equal(errors, 'GET /nothing of your service answers 404: buyers would pay for that; correct --sell\n');
      assert.deepEqual(pathsOf('sold.yaml'), ['GET /search', 'GET /nothing']);
      const [search] = parseConfig(written('sold.yaml'), {}).resources;
      assert.deepEqual(search?.inputSchema?.['properties'], {
        q: { type: 'string', maxLength: 256, examples: ['socks'] },
      });
      assert.equal(search?.pricing.type === 'fixed' && search.pricing.amount, '0.02');
    });
  });

  it('names the schema of its release, which editors read in any folder; with --schema the file beside it', async () => {
    await init('--out', 'linked.yaml');
    const url = `https://unpkg.com/${release.name}@${release.version}/schemas/config.schema.json`;
    assert.ok(written('linked.yaml').startsWith(`# yaml-language-server: $schema=${url}\n`));
    await init('--out', 'beside.yaml', '--schema');
    assert.ok(written('beside.yaml').startsWith('# yaml-language-server: $schema=./acg-config.schema.json\n'));
    assert.deepEqual(JSON.parse(written('acg-config.schema.json')), schema);
  });

  it('asks of the environment what it does not know: Base Sepolia is valid with two variables', async () => {
    const { lines } = await init('--network', 'base-sepolia', '--out', 'sepolia.yaml');
    assert.ok(
      lines.includes(
        'acg serve --config sepolia.yaml needs PUBLIC_URL and PAY_TO in the environment; acg dev needs neither.',
      ),
    );
    const unset = await acg(folder, ['validate', '--config', 'sepolia.yaml']);
    assert.equal(unset.code, 78);
    assert.match(unset.errors, /payments\.x402\.payTo: .*PAY_TO/);
    const env = { PUBLIC_URL: 'https://shop.example', PAY_TO: PAYEE };
    assert.equal((await acg(folder, ['validate', '--config', 'sepolia.yaml'], env)).code, 0);
  });

  it('writes for real money what a mainnet needs', async () => {
    await init('--network', 'base', '--out', 'base.yaml', '--pay-to', PAYEE);
    const secrets: Record<string, string | Buffer> = {
      'admin-token': 'a-long-operator-token',
      'redis-password': 'password',
      'sealing-key': Buffer.alloc(32, 7).toString('base64'),
      'cdp-key-id': 'key',
      'cdp-key-secret': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
        type: 'pkcs8',
        format: 'pem',
      }),
    };
    for (const [name, secret] of Object.entries(secrets)) writeFileSync(join(folder, name), secret);
    const text = written('base.yaml').replaceAll('/run/secrets/', `${folder}/`);
    const env = { PUBLIC_URL: 'https://shop.example', RPC_URL: 'https://rpc.example', REDIS_URL: 'redis://127.0.0.1' };
    const { x402, resources } = parseConfig(text, env);
    assert.deepEqual([x402?.mode, x402?.payTo, resources.length], ['mainnet', PAYEE, 1]);
    const settle = (resource = resources[0]) => resource?.pricing.type === 'fixed' && resource.pricing.settle;
    assert.equal(settle(), undefined);
    // As the comment above the resources proposes.
    assert.match(text, /^# May be paid after the answer: home\. /m);
    const [proposed = ''] = /pricing: \{.*settle: after \}/.exec(text) ?? [];
    assert.equal(settle(parseConfig(text.replace('pricing: $0.01', proposed), env).resources[0]), 'after');
  });

  it('proposes the payment after the answer only beside sealing keys, of what can be repeated and costs something', () => {
    const proposed = (network: InitNetwork, price: string, ...sold: readonly string[]) => {
      const resources = soldOperations(sold, price);
      const given = { merchant: 'Shop', backend: 'http://127.0.0.1:3000', payTo: undefined, schema: 'it' };
      return /^# May be paid after the answer: (.*?)\. /m.exec(configText({ ...given, network, resources }))?.[1];
    };
    const sold = ['POST /orders', 'PUT /items', 'GET /items'];
    assert.equal(proposed('base', '0.01', ...sold), 'items, items-2');
    assert.equal(proposed('base', 'free', ...sold), undefined);
    assert.equal(proposed('base', '0.01', 'POST /orders'), undefined);
    assert.equal(proposed('base-sepolia', '0.01', ...sold), undefined);
  });

  it('puts any name and any service into it', async () => {
    for (const [index, [merchant, id, backend]] of (
      [
        ['Köln "Reports" & Co: #1', 'koln-reports-co-1', 'http://127.0.0.1:3000'],
        ['市場', 'shop', 'http://shop.internal:8080/api'],
        ['- a\\b', 'a-b', 'http://[::1]:3000'],
      ] as const
    ).entries()) {
      const { code, errors } = await init('--merchant', merchant, '--backend', backend, '--out', `${index}.yaml`);
      assert.equal(code, 0, errors);
      const { merchant: read, backend: service } = parseConfig(written(`${index}.yaml`), {});
      assert.deepEqual([read.name, read.id], [merchant, id]);
      assert.equal(`${service.origin}${service.pathPrefix}`, backend);
    }
  });

  it('never overwrites a file without --force', async () => {
    writeFileSync(join(folder, 'precious.yaml'), 'precious');
    const refused = await init('--out', 'precious.yaml');
    assert.deepEqual(
      [refused.code, refused.errors],
      [1, 'precious.yaml is there already: --force overwrites it, --out writes elsewhere\n'],
    );
    assert.equal(written('precious.yaml'), 'precious');
    assert.equal((await init('--out', 'precious.yaml', '--force')).code, 0);
    assert.notEqual(written('precious.yaml'), 'precious');
  });

  const REFUSALS: readonly (readonly [args: readonly string[], words: RegExp])[] = [
    [['--network', 'solana'], /Allowed choices are local, base-sepolia, base/],
    [['--backend', 'shop:3000'], /must be an absolute http.*; did you mean http:\/\/shop:3000\?/],
    [['--backend', 'localhost/api'], /; did you mean http:\/\/localhost\/api\?/],
    [['--backend', 'https:/shop.example/'], /; did you mean https:\/\/shop\.example\?/],
    [['--backend', ':3000'], /; did you mean http:\/\/127\.0\.0\.1:3000\?/],
    [['--sell', 'search'], /--sell must be an operation such as 'GET \/search'/],
    [['--price', 'cheap'], /^--price: /],
    [['--backend', 'http://u:p@shop'], /must not have credentials/],
    [['--pay-to', '0x12'], /must be 0x and 40 hexadecimal digits/],
    [['--merchant', ''], /must have 1 to 200 characters/],
  ];
  for (const [args, words] of REFUSALS)
    it(`${args.join(' ')}: one line, exit 64, and no file`, async () => {
      const { code, errors } = await init(...args, '--out', 'refused.yaml');
      assert.equal(code, 64);
      assert.match(errors, words);
      assert.equal(errors.split('\n').length, 2);
      assert.throws(() => written('refused.yaml'));
    });

  it('asks on a terminal for what no option says', async () => {
    const command = [process.execPath, TOOLS, 'init', '--out', 'asked.yaml'].map((word) => `'${word}'`).join(' ');
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], ...COMPILE_CACHE },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const answers = [
      ['Network (local, base-sepolia, base) [local]: ', 'base-sepolia'],
      ['Name of the shop [My shop]: ', ''],
      ['URL of your service [http://127.0.0.1:3000]: ', '127.0.0.1:1'],
      ['URL of your service [http://127.0.0.1:1]: ', ''],
      ['Your address for the money', PAYEE],
      ['Operation to sell, with an example [GET /]: ', 'GET /search'],
    ] as const;
    let shown = '';
    let next = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
      const [question, answer] = answers[next] ?? [];
      if (question === undefined || !shown.includes(question)) return;
      next += 1;
      child.stdin.write(`${answer}\n`);
    });
    assert.equal((await ended(child)).code, 0, shown);
    child.stdin.end();
    const { merchant, backend, x402 } = parseConfig(written('asked.yaml'), { PUBLIC_URL: 'https://shop.example' });
    assert.deepEqual(
      [merchant.name, backend.origin, x402?.network, x402?.payTo],
      ['My shop', 'http://127.0.0.1:1', 'eip155:84532', PAYEE],
    );
  });
});
