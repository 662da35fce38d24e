import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { parse } from 'yaml';
import { parseConfig } from '../../../src/config/load.ts';
import { type ImportArguments, runImport } from '../../../tools/import/command.ts';

const folder = mkdtempSync(join(tmpdir(), 'acg-import-command-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

function file(text: string, ending = 'yaml'): string {
  files += 1;
  const path = join(folder, `${files}.${ending}`);
  writeFileSync(path, text);
  return path;
}

const read = (path: string): string => readFileSync(path, 'utf8');

const DOCUMENT = file(`
openapi: 3.1.0
info: { title: Market, version: "1" }
servers: [{ url: /v1 }]
paths:
  /reports/{city}:
    get:
      operationId: report
      summary: Market report
      tags: [reports]
      x-price: "0.01"
      parameters:
        - { name: city, in: path, required: true, schema: { type: string, maxLength: 64 } }
        - { name: days, in: query, schema: { type: array, items: { type: integer } }, explode: false }
        - { name: X-Trace, in: header, schema: { type: string } }
  /cities:
    get: { operationId: cities, tags: [cities] }
  /upload:
    post: { operationId: upload, requestBody: { content: { multipart/form-data: {} } } }
`);

const CONFIGURATION = `# My shop
version: 1
merchant: { id: shop, name: Shop, publicBaseUrl: http://127.0.0.1:8402 }
backend: { baseUrl: http://127.0.0.1:3000 } # mine
storage: { sqlite: { path: ":memory:" } }
payments:
  x402:
    network: eip155:84532
    asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
    assetName: USDC
    currency: TUSD
    assetVersion: "2"
    assetDecimals: 6
    payTo: "0x1111111111111111111111111111111111111111"
    rpcUrl: https://sepolia.base.org
    facilitator: { mode: remote, url: https://www.x402.org/facilitator }
resources:
  # The first one
  greeting: { name: Greeting, backend: { method: GET, path: /greeting }, pricing: { type: free } }
`;

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
  readonly questions: readonly string[];
}

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  /** What a person types, question for question. */
  readonly typed?: readonly string[];
}

/** Without a price everything is given away. */
async function run(args: Partial<ImportArguments>, { typed, ...terminal }: Terminal = {}): Promise<Ran> {
  const out: string[] = [];
  const errors: string[] = [];
  const questions: string[] = [];
  const answers = [...(typed ?? [])];
  const ask = async (question: string): Promise<string> => {
    questions.push(question);
    const answer = answers.shift();
    assert.ok(answer !== undefined, question);
    return answer;
  };
  const code = await runImport(
    { source: DOCUMENT, free: args.price === undefined, ...args },
    {
      stdout: { write: (text) => out.push(text) },
      stderr: { ...terminal, write: (text) => errors.push(text) },
      ask: typed === undefined ? undefined : ask,
    },
  );
  assert.deepEqual(answers, []);
  return { code, out: out.join(''), errors: errors.join(''), questions };
}

describe('acg import', () => {
  it('takes the headers that the configuration sends', async () => {
    const source = file(`
openapi: 3.0.3
info: { title: Tenants, version: "1" }
paths:
  /pages: { get: { operationId: pages, parameters: [ { name: X-Tenant, in: header, required: true, schema: { type: string } } ] } }
`);
    const into = file(CONFIGURATION.replace(':3000 }', ':3000, headers: { x-tenant: acme } }'));
    assert.match((await run({ source, into })).errors, /^1 of 1 operations/);
    const without = await run({ source, into: file(CONFIGURATION.replace('127.0.0.1:3000', '127.0.0.1:3001')) });
    assert.deepEqual([without.code, /put X-Tenant under backend\.headers/.test(without.errors)], [1, true]);
  });

  it('prints a section that a configuration takes, and tells what it left out', async () => {
    const { code, out, errors } = await run({});
    assert.equal(code, 0);
    const { resources } = parse(out);
    assert.deepEqual(Object.keys(resources), ['report', 'cities']);
    assert.deepEqual(resources.report.pricing, { type: 'fixed', amount: '0.01', currency: 'USDC' });
    assert.deepEqual(resources.report.backend, {
      ...{ method: 'GET', path: '/v1/reports/{city}' },
      inputBindings: { query: ['days'], styles: { days: 'comma' } },
    });
    assert.match(
      errors,
      /^id +method +path +price +channels\nreport +GET +\/v1\/reports\/\{city\} +0\.01 USDC +http$/m,
    );
    assert.match(errors, /^cities +GET +\/v1\/cities +free +http$/m);
    assert.match(errors, /^2 of 3 operations became resources$/m);
    assert.match(errors, /^POST \/upload +needs a body, which is multipart\/form-data/m);
    assert.match(
      errors,
      /^report: X-Trace +is a header: put X-Trace under backend\.headers of the configuration to send it$/m,
    );
  });

  it('reports as JSON where that is asked for', async () => {
    const { errors } = await run({ json: true });
    const report = JSON.parse(errors);
    assert.deepEqual(report.resources, ['report', 'cities']);
    assert.deepEqual([report.skipped.length, report.narrowed.length, report.notChosen], [1, 1, 0]);
  });

  it('shows 200 resources at most', async () => {
    const paths = Object.fromEntries(Array.from({ length: 203 }, (_, at) => [`/${at}`, { get: {} }]));
    const { errors } = await run({ source: file(JSON.stringify({ openapi: '3.1.0', paths }), 'json') });
    assert.match(errors, /^get_199 +GET +\/199 +free +http\n… and 3 more \(--json lists them all\)$/m);
  });

  it('reports in the width of a terminal', async () => {
    const { errors } = await run({}, { isTTY: true, columns: 60 });
    for (const line of errors.split('\n')) assert.ok(line.length <= 60, line);
    // What to do stands at the end of a reason.
    assert.match(
      errors.replaceAll(/\s+/g, ' '),
      /needs a body, which is multipart\/form-data: .* add one of them under content/,
    );
  });

  it('takes a choice, a price and the ways in', async () => {
    const { out, errors } = await run({ tags: ['cities'], price: '0.5', currency: 'EUR', expose: ['http', 'mcp'] });
    assert.deepEqual(parse(out).resources, {
      cities: {
        name: 'cities',
        backend: { method: 'GET', path: '/v1/cities' },
        pricing: { type: 'fixed', amount: '0.5', currency: 'EUR' },
        expose: ['http', 'mcp'],
      },
    });
    assert.match(errors, /^1 of 1 operations became resources; 2 were not chosen$/m);
  });

  it('exits with 1 when nothing became a resource, and writes nothing', async () => {
    const out = join(folder, 'none.yaml');
    const { code } = await run({ operations: ['upload'], out });
    assert.equal(code, 1);
    assert.throws(() => statSync(out));
  });

  for (const [title, args, message] of [
    ['a price that is none', { price: '1e3' }, /^--price: the amount is not a decimal number/],
    ['an unknown way in', { expose: ['mpc'] }, /^--expose mpc: there are http, mcp, a2a, origin$/],
    ['a base path without a slash', { basePath: 'v1' }, /^--base-path must begin with \//],
    ['a base path with a parameter', { basePath: '/{v}' }, /^--base-path must begin with \//],
    ['an unknown tag', { tags: ['report'] }, /no tag "report"; did you mean reports\?/],
    ['a price of what is free', { price: '1', free: true }, /^--price and --free exclude each other$/],
    ['two places to write to', { out: 'a', into: 'b' }, /^--out and --into exclude each other$/],
    ['a configuration that is not there', { into: join(folder, 'gone.yaml') }, /gone\.yaml cannot be read \(ENOENT\)/],
    ['a configuration that is none', { into: file('- a\n') }, /is no configuration: it is no mapping/],
    ['a configuration that is no JSON', { into: file('{', 'json') }, /is no configuration: it is no JSON object/],
  ] as const)
    it(`refuses ${title} in one line`, () =>
      assert.rejects(run(args), (error: Error) => message.test(error.message) && !error.message.includes('\n')));
});

describe('acg import --out', () => {
  for (const ending of ['yaml', 'json'])
    it(`writes ${ending}, and replaces a file only if forced`, async () => {
      const out = join(folder, `new.${ending}`);
      assert.match(
        (await run({ out })).out,
        /^id +method +path +price +channels\nreport +GET[^\n]*\ncities +GET[^\n]*\n\n$/,
      );
      assert.deepEqual(Object.keys(parse(read(out)).resources), ['report', 'cities']);
      assert.equal(read(out).startsWith('{'), ending === 'json');
      await assert.rejects(run({ out, tags: ['cities'] }), /exists; --force replaces it, --into adds to it/);
      await run({ out, tags: ['cities'], force: true });
      assert.deepEqual(Object.keys(parse(read(out)).resources), ['cities']);
    });

  it('refuses more YAML than a configuration may have, before it writes', async () => {
    const paths = Object.fromEntries(
      Array.from({ length: 700 }, (_, at) => [`/${at}`, { get: { description: 'word '.repeat(400) } }]),
    );
    const source = file(JSON.stringify({ openapi: '3.1.0', paths }), 'json');
    const out = join(folder, 'large.yaml');
    await assert.rejects(run({ source, out }), /a configuration in YAML has at most 1048576: write JSON/);
    assert.throws(() => statSync(out));
    await run({ source, out: join(folder, 'large.json') });
    assert.match((await run({ source })).errors, /use --out resources\.json/);
  });
});

describe('acg import --into', () => {
  it('adds to a configuration, which is then in force with its comments and its currency', async () => {
    const into = file(CONFIGURATION);
    await run({ into });
    const text = read(into);
    for (const kept of ['# My shop', '# mine', '# The first one']) assert.ok(text.includes(kept), kept);
    const { resources } = parseConfig(text, {});
    assert.deepEqual(
      resources.map(({ id, pricing }) => [
        id,
        pricing.type === 'free' ? 'free' : `${pricing.amount} ${pricing.currency}`,
      ]),
      [
        ['greeting', 'free'],
        ['report', '0.01 TUSD'],
        ['cities', 'free'],
      ],
    );
  });

  it('sells where the file sells, unless another way is named', async () => {
    const sold = async (more: string, args: Partial<ImportArguments> = {}) => {
      const into = file(CONFIGURATION.replace('{ type: free } }', `{ type: free }${more} }`));
      await run({ into, ...args });
      return parse(read(into)).resources.cities.expose;
    };
    assert.deepEqual(await sold(', expose: [mcp]'), ['mcp']);
    const other = 'other: { backend: { method: GET, path: /o }, pricing: free, expose: [a2a, http] }';
    assert.deepEqual(await sold(`, expose: [http, mcp] }\n  ${other.slice(0, -2)}`), ['http', 'mcp', 'a2a']);
    assert.equal(await sold(''), undefined);
    assert.deepEqual(await sold(', expose: [mcp]', { expose: ['http'] }), ['http']);
  });

  it('proposes the payment after the answer where the file has sealing keys, and writes nothing of it', async () => {
    const source = file(`
openapi: 3.1.0
info: { title: Market, version: "1" }
paths:
  /reports: { get: { operationId: report }, post: { operationId: order }, put: { operationId: replace } }
  /help: { get: { operationId: help, x-price: "0" } }
`);
    const key = Buffer.alloc(32, 7).toString('base64');
    const sealing = `storage: { sealing: { keys: [{ id: first, key: "${key}" }] }, sqlite`;
    for (const ending of ['yaml', 'json']) {
      const sealed = CONFIGURATION.replace('storage: { sqlite', sealing);
      const into = file(ending === 'json' ? JSON.stringify(parse(sealed)) : sealed, ending);
      const { out } = await run({ source, into, price: '0.01' });
      assert.match(
        out,
        /^May also be paid after the answer: report, replace\. Write settle: after under the pricing /m,
      );
      assert.doesNotMatch(read(into), /settle/);
      const { resources } = parse(read(into));
      for (const id of ['report', 'replace']) resources[id].pricing.settle = 'after';
      const after = parseConfig(JSON.stringify({ ...parse(read(into)), resources }), {}).resources;
      assert.deepEqual(
        after.filter(({ pricing }) => pricing.type === 'fixed' && pricing.settle === 'after').map(({ id }) => id),
        ['report', 'replace'],
      );
      assert.doesNotMatch((await run({ source, into, free: true, force: true })).out, /paid after/);
    }
    assert.doesNotMatch((await run({ source, into: file(CONFIGURATION), price: '0.01' })).out, /paid after/);
    assert.doesNotMatch((await run({ source, out: join(folder, 'alone.yaml'), price: '0.01' })).out, /paid after/);
  });

  it('asks a person what the operations without x-price cost', async () => {
    const into = file(CONFIGURATION);
    const typed = ['cheap', '0.05', 'n'];
    const { questions } = await run({ into, free: false }, { typed });
    assert.match(questions[0] ?? '', /^1 operation has no x-price\. Price of each in TUSD, or free: $/);
    assert.match(questions[1] ?? '', /^the amount is not a decimal number/);
    const { resources } = parse(read(into));
    assert.deepEqual(resources.cities.pricing, { type: 'fixed', amount: '0.05', currency: 'TUSD' });
    assert.equal(resources.report.pricing.amount, '0.01');
    const given = file(CONFIGURATION);
    await run({ into: given, free: false }, { typed: ['free', ''] });
    assert.deepEqual(parse(read(given)).resources.cities.pricing, { type: 'free' });
  });

  it('gives nothing away unless that is said', async () => {
    const into = file(CONFIGURATION);
    for (const place of [{ into }, { out: join(folder, 'unsaid.yaml') }])
      await assert.rejects(
        run({ ...place, free: false }),
        /^UsageError: 1 operation has no x-price: name its price with --price, or give it away with --free$/,
      );
    assert.equal(read(into), CONFIGURATION);
    // Each has its own price here, and what is printed is read before it is used.
    await run({ into, free: false, operations: ['report'] });
    await run({ free: false });
  });

  for (const ending of ['yaml', 'json'])
    it(`removes the resources of the file for a person who wants it (${ending})`, async () => {
      const text = ending === 'json' ? JSON.stringify(parse(CONFIGURATION)) : CONFIGURATION;
      const into = file(text, ending);
      const { questions } = await run({ into }, { typed: ['y'] });
      assert.deepEqual(questions, ['Remove greeting (the resources that the file has)? [y/N] ']);
      assert.deepEqual(Object.keys(parse(read(into)).resources), ['report', 'cities']);
      // One that is replaced is not asked for.
      await run({ into, force: true }, { typed: [] });
      const kept = file(text, ending);
      await run({ into: kept }, { typed: [''] });
      assert.deepEqual(Object.keys(parse(read(kept)).resources), ['greeting', 'report', 'cities']);
    });

  it('adds to a configuration in JSON', async () => {
    const into = file(JSON.stringify(parse(CONFIGURATION)), 'json');
    await run({ into });
    assert.deepEqual(
      parseConfig(read(into), {}).resources.map(({ id }) => id),
      ['greeting', 'report', 'cities'],
    );
  });

  it('adds to a configuration without resources, and keeps its mode', async () => {
    const into = file(CONFIGURATION.replace(/resources:.*/s, 'resources:\n'));
    const { mode } = statSync(into);
    await run({ into });
    assert.equal(statSync(into).mode, mode);
    assert.equal(parseConfig(read(into), {}).resources.length, 2);
  });

  it('replaces a resource only if forced', async () => {
    const into = file(
      `${CONFIGURATION}  cities: { name: Old, backend: { method: GET, path: /old }, pricing: { type: free } }\n`,
    );
    const before = read(into);
    await assert.rejects(run({ into }), /has cities already; --force replaces them/);
    assert.equal(read(into), before);
    await run({ into, force: true });
    const { resources } = parseConfig(read(into), {});
    assert.equal(resources.find(({ id }) => id === 'cities')?.backend.path, '/v1/cities');
  });
});
