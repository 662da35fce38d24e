import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { kubectl } from '../deploy/kubectl.ts';
import { connectFirst } from '../support/mcp-clients.ts';
import { freePorts } from '../support/ports.ts';
import { type Block, blocksOf, DOCUMENTS } from './blocks.ts';
import { layCheckout, type Place, type Printed, runSession } from './session.ts';
import { programOf } from './typescript.ts';
import { filled, type LocalWorld, openLocalWorld, type Ports, writeSecrets } from './world.ts';

const DEADLINE_MS = 240_000;
/** Signs where the Python package eth_account is not installed. */
const STAND_IN = join(import.meta.dirname, 'python');
const MODULES = join(import.meta.dirname, '../../node_modules');

/** What the commands of a document print, in this order; the document says so in words. */
const PRINTED: Readonly<Record<string, readonly string[]>> = {
  'README.md': [
    'config.yaml is written',
    '"city":"Berlin"',
    '"city":"Berlin"',
    '"type":"resource.delivered"',
    '"receipts":[',
    'acg_calls_total{',
  ],
  'deploy/README.md': ['agent-commerce-gateway', 'kind: Deployment', 'registry.invalid'],
  'deploy/examples/acp/README.md': [
    'acp at /acp (checkout for 1 client)',
    '"adapters":[{"name":"acp","status":', // the merchant may start last
    '"supported_versions":["2026-04-17"]',
    '"amount":3890', // socks, scarf and shipping
    '"status":"completed"',
    'idempotent-replayed: true',
    '"status":"completed"',
    '422 Unprocessable Entity',
    '"code":"idempotency_conflict"',
    '504 Gateway Timeout',
    '200 OK',
    '"status":"completed"',
    '[{"id":"ord_1"',
    '{"id":"ord_2"',
    '"readback":true', // the events, newest first
    '"reason":"timeout"',
    '"delivered":true',
    'idempotent-replayed: true',
    '"id":"ord_1"',
  ],
  'deploy/examples/mandates/README.md': [
    'ap2 mandates for 1 of 1 resources (issuers: 1)',
    '"authorizationProviders":[{"name":"ap2","status":"pass"}]',
    '"code":"AUTHORIZATION_REQUIRED"',
    'Decoded, not verified.',
    'HTTP/1.1 200 OK',
    'agent-authorization-receipt: ',
    '{"report":"/reports/Berlin"}',
    '"reason":"replayed"',
    '"reason":"input_mismatch"',
    '"reason":"open_mandate_spent"',
  ],
  'docs/agents.md': ['"state":"TASK_STATE_FAILED"', '"status":"ready_for_payment"'],
  'docs/configuration.md': ['valid: 1 resources, 1 of them paid; x402 on eip155:84532 (testnet)'],
  'docs/operators.md': [
    '"status": "PASS"',
    '"delivered": false',
    '"payment.settled"',
    '"events":[',
    ': connected',
    '"receipts":[',
  ],
  'docs/runbook.md': [
    '"ready":',
    'acg_component_status{',
    '"delivered":false',
    'acg_paid_undelivered_total{cause="merchant"} ',
    '"receipts":[]', // none is unresolved
    'acg_backend_reachable 1',
    '"kinds":[',
    '"timestamp":"0x',
    'acg_relayer_transfers_left ',
    '"result":"0x', // the balance of the relayer
    '"name":"routing"',
    'receipts missing (dry run, nothing was written)',
    'receipts written',
  ],
};

const COMPILER_OPTIONS = {
  ...{ target: 'es2025', lib: ['es2025'], module: 'nodenext', types: ['node'], noEmit: true, strict: true },
  skipLibCheck: true,
};

/** They open the database of the world, or tell how many processes have it open. */
const WITH_DATABASE = /\bacg (?:doctor|reconcile)\b/;

describe('the documents', { concurrency: 3, timeout: DEADLINE_MS }, () => {
  const ends = new AsyncDisposableStack();
  let world: LocalWorld;
  before(async () => {
    world = await openLocalWorld(ends);
  });
  after(() => ends.disposeAsync());
  let withDatabase: Promise<unknown> = Promise.resolve();

  for (const document of DOCUMENTS) {
    const blocks = runBlocks(document);
    const shell = blocks.filter(({ language }) => ['sh', 'yaml'].includes(language));
    if (shell.length > 0)
      it(`the commands of ${document} do what it states`, async () => {
        const printed: Printed[] = [];
        for (const session of sessionsOf(document, shell)) {
          const place = await placeOf(session);
          const run = () => runSession(session, place);
          const isAlone = session.some(({ text }) => WITH_DATABASE.test(text));
          const ending = isAlone ? withDatabase.then(run) : run();
          if (isAlone) withDatabase = ending.catch(() => undefined);
          const end = await ending;
          const last = end.printed.at(-1);
          assert.equal(end.code, 0, `${document}:${last?.block.line}\n${last?.out}\n${last?.errors}`);
          printed.push(...end.printed);
          if (document.startsWith('deploy/examples/')) assert.equal(end.leftRunning, false, 'the last command ends it');
        }
        assertInOrder(printed, PRINTED[document] ?? []);
        for (const block of blocks.filter(({ language }) => language === 'text')) assertPrinted(block, printed);
      });
  }

  const programs = Map.groupBy(
    DOCUMENTS.flatMap((document) => runBlocks(document)).filter(({ language }) => language === 'ts'),
    ({ document }) => document,
  );

  it('their TypeScript has no error of types, and buys', async () => {
    const folder = await temporaryDirectory(ends, 'acg-programs-');
    symlinkSync(MODULES, join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
    const files = [...programs].map(([document, blocks], index) => {
      const program = filled(programOf(blocks), world, world.ports, '');
      writeFileSync(join(folder, `${index}.ts`), program);
      return { document, file: `${index}.ts`, answers: program.match(/await told\(\{ \w/g)?.length ?? 0 };
    });
    const checked = await ran('tsc', ['--project', '.'], folder);
    assert.equal(checked.code, 0, checked.out);
    for (const { document, file, answers } of files) {
      const { code, out } = await ran(process.execPath, [file], folder, {
        AGENT_KEY: world.agentKey,
        LOCAL_CHAIN: '1',
      });
      assert.equal(code, 0, `${document}\n${out}`);
      assert.ok(out.split('"city":"Berlin"').length > answers, `${document}: an answer is missing:\n${out}`);
    }
  });

  it('their MCP hosts find the tools that they name', async () => {
    const hosts = DOCUMENTS.flatMap((document) => runBlocks(document)).filter(({ language }) => language === 'json');
    assert.ok(hosts.length > 0);
    for (const { document, line, text } of hosts) {
      const [url = assert.fail(`${document}:${line}`)] =
        /http[^"]+/.exec(JSON.stringify(JSON.parse(filled(text, world, world.ports, '')))) ?? [];
      const client = await connectFirst(url);
      try {
        const { content, isError } = await client.callTool({ name: 'cities', arguments: {} });
        assert.ok(isError !== true && JSON.stringify(content).includes('Berlin'), `${document}:${line}`);
      } finally {
        await client.close();
      }
    }
  });

  it('their Python buys', async (t) => {
    const [block, ...others] = DOCUMENTS.flatMap((document) => runBlocks(document)).filter(
      ({ language }) => language === 'py',
    );
    assert.ok(block !== undefined && others.length === 0);
    const folder = await temporaryDirectory(ends, 'acg-python-');
    const python = (code: string, env?: NodeJS.ProcessEnv) => ran('python3', ['-c', code], folder, env);
    const has = async (name: string): Promise<boolean> => (await python(`import ${name}`)).code === 0;
    if (!(await has('requests'))) {
      t.skip('python3 with the package requests is not installed');
      return;
    }
    const env = {
      AGENT_KEY: world.agentKey,
      TOKEN_ADDRESS: world.token,
      ...((await has('eth_account')) ? {} : { PYTHONPATH: STAND_IN }),
    };
    const { code, out } = await python(filled(block.text, world, world.ports, ''), env);
    assert.equal(code, 0, out);
    assert.match(out, /^200 \{"city":"Berlin"/);
  });

  /** Where a session runs. One that starts a gateway has ports of its own, others the world's. */
  async function placeOf(session: readonly Block[]): Promise<Place> {
    const folder = await temporaryDirectory(ends, 'acg-checkout-');
    const secrets = join(folder, 'run-secrets');
    writeSecrets(secrets);
    const commands = session.map(({ language, text }) => (language === 'sh' ? text : '')).join();
    const [agents = 0, management = 0, merchant = 0] = await freePorts(3);
    // The service of a reader is that of the world, unless the commands start one.
    const starts = /\b3000\b/.test(commands) && !/\bacg init\b/.test(commands);
    const ports: Ports = /\b(?:serve|acg dev)\b/.test(commands)
      ? { agents, management, merchant: starts ? merchant : world.ports.merchant }
      : world.ports;
    const env = {
      ...process.env,
      // An operator has the configuration of the gateway that runs.
      ...(/\bacg doctor\b/.test(commands) ? { AGENT_COMMERCE_CONFIG: world.configPath } : {}),
      PATH: `${dirname(kubectl())}:${process.env['PATH']}`,
      // No endpoints are taken from it, so it need not wait before it ends.
      GATEWAY_DRAIN_SECONDS: '0',
      TMPDIR: folder,
    };
    const place: Place = { folder, env, ports, fill: (text) => filled(text, world, ports, secrets) };
    layCheckout(place);
    return place;
  }
});

/** The blocks that are run here, and not by a spec that their tag names. */
function runBlocks(document: string): readonly Block[] {
  return blocksOf(document).filter(({ kind, detail }) => kind === 'run' && !detail?.startsWith('spec/'));
}

interface Ran {
  readonly code: number | null;
  /** Standard output and errors. */
  readonly out: string;
}

/** Runs a program to its end; one that is not there ends with a code that no program has. */
async function ran(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<Ran> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const missing = new Promise<Ran>((resolve) => child.once('error', () => resolve({ code: null, out: '' })));
  const out: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => out.push(text));
  const closed = new Promise<Ran>((resolve) => child.once('close', (code) => resolve({ code, out: out.join('') })));
  return Promise.race([missing, closed]);
}

/** The quick starts of README.md are for different readers; any other document is one walk. */
function sessionsOf(document: string, blocks: readonly Block[]): readonly (readonly Block[])[] {
  return document === 'README.md' ? [...Map.groupBy(blocks, ({ section }) => section).values()] : [blocks];
}

function assertInOrder(printed: readonly Printed[], wanted: readonly string[]): void {
  const all = printed.map(({ out, errors }) => `${out}${errors}`).join('');
  let from = 0;
  for (const text of wanted) {
    const at = all.indexOf(text, from);
    assert.ok(at >= 0, `${text} is missing or not in order:\n${all.slice(from)}`);
    from = at + 1;
  }
}

/** A block of text is what the commands before it print. */
function assertPrinted({ line, text }: Block, printed: readonly Printed[]): void {
  const before = printed.findLast(({ block }) => block.line < line);
  assert.ok(before?.out.includes(text), `line ${line}: the commands before print\n${before?.out}`);
}
