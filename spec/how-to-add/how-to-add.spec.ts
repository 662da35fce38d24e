import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { type PaymentRequired, x402Client } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { stringify } from 'yaml';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { freePorts } from '../support/ports.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { ADDITIONS } from './additions.ts';
import { type PatchedCopy, patchedCopy } from './patched-copy.ts';

const ARCHITECTURE = readFileSync(path.join(import.meta.dirname, '../../ARCHITECTURE.md'), 'utf8');
const TRANSACTION = `0x${'ab'.repeat(32)}`;

/** The paragraph of "How to add" that begins with these bold words. */
function sectionOf(title: string): string {
  const [, section] = ARCHITECTURE.replaceAll('\n', ' ').split(`**${title}**`);
  assert.ok(section, `ARCHITECTURE.md has **${title}**`);
  return section.split(/ {2}(?:\*\*|## )/)[0] ?? '';
}

for (const { title, files = {}, edits } of ADDITIONS)
  describe(`how to add, ${title}`, () => {
    const section = sectionOf(title);
    for (const file of Object.keys(edits)) it(`the text names ${file}`, () => assert.ok(names(section, file), section));
    for (const file of Object.keys(files))
      it(`the text says where ${file} goes`, () => {
        const folder = path.dirname(file);
        assert.ok(section.includes(folder) || section.includes(path.dirname(folder)), section);
      });
  });

/** Whether a text names a file, by its path or by its name where its folder is named. */
function names(section: string, file: string): boolean {
  return (
    section.includes(`\`${file}\``) ||
    (section.includes(path.dirname(file)) && section.includes(`\`${path.basename(file)}\``))
  );
}

describe('a gateway with everything of "How to add"', () => {
  let copy: PatchedCopy;
  let merchant: SampleBackend;
  let gateway: GatewayProcess;
  before(async () => {
    copy = patchedCopy(ADDITIONS);
    merchant = await startSampleBackend();
    const [agents, management] = await freePorts(2);
    const configPath = path.join(copy.directory, 'gateway.yaml');
    writeFileSync(
      configPath,
      stringify(configuration(merchant.url, agents, management), { aliasDuplicateObjects: false }),
    );
    const baseUrl = `http://127.0.0.1:${agents}`;
    gateway = await startGateway({ configPath, baseUrl, entry: path.join(copy.directory, 'src/main.ts') });
  });
  after(async () => {
    await gateway?.stop();
    await merchant?.stop();
    copy?.remove();
  });

  it('compiles', () => copy.compile());

  const invoke = (headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${gateway.baseUrl}/api/resources/report/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ city: 'Berlin' }),
    });
  const line = async (id: string) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${gateway.baseUrl}/lines/${id}`, {
      method: 'POST',
      headers,
      body: '{"city":"Berlin"}',
    });
    return [answer.status, await answer.text()];
  };

  it('sends each call through the middleware', async () => {
    assert.equal((await invoke()).headers.get('x-stamp'), 'added');
  });

  it('settles a payment over the rail', async () => {
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())));
    client.setSpendControls(false);
    const challenge = (await (await invoke()).json()) as { readonly payment: { readonly envelope: PaymentRequired } };
    const payload = await client.createPaymentPayload(challenge.payment.envelope);
    const answer = await invoke({ 'payment-signature': encodePaymentSignatureHeader(payload) });
    assert.equal(answer.status, 200, await answer.text());
    const [receipt] = await receipts();
    assert.equal(receipt?.payment?.externalReference, TRANSACTION);
  });

  it('serves the adapter, through the same pipeline', async () => {
    assert.deepEqual(await line('report'), [402, 'payment required\n']);
    assert.deepEqual(await line('missing'), [400, 'RESOURCE_NOT_FOUND\n']);
    const [status, text] = await line('free_report');
    assert.deepEqual([status, String(text).endsWith('\n')], [200, true]);
  });

  it('publishes the adapter and the store', async () => {
    const discovery = await (await fetch(`${gateway.baseUrl}/.well-known/agent-commerce`)).json();
    const { adapters, store } = discovery as {
      readonly adapters: { readonly name: string }[];
      readonly store: { readonly name: string };
    };
    assert.deepEqual([adapters.map(({ name }) => name), store.name], [['http', 'lines'], 'memory']);
  });

  it('keeps the promises of the added store', () => runSpec('spec/store/contract.spec.ts', '^memory'));
  it('has the added error code in its closed list', () => runSpec('spec/errors.spec.ts'));

  it('reads the added constraint', async () => {
    const module = path.join(copy.directory, 'src/mandates/ap2/payment-mandate.ts');
    const constraints = (await import(module)) as typeof import('../../src/mandates/ap2/payment-mandate.ts');
    assert.ok(constraints.PAYMENT_CONSTRAINTS.includes('payment.even_amount'));
    const [added] = constraints.readPaymentConstraints({ constraints: [{ type: 'payment.even_amount' }] });
    assert.equal(added?.rule.kind, 'demand');
  });

  interface Receipt {
    readonly payment?: { readonly externalReference: string };
  }
  async function receipts(): Promise<readonly Receipt[]> {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    const answer = await fetch(`${gateway.baseUrl}/api/receipts`, { headers });
    return ((await answer.json()) as { readonly receipts: readonly Receipt[] }).receipts;
  }

  /** Runs one spec of the copy; its output is the failure. */
  async function runSpec(file: string, pattern?: string): Promise<void> {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const only = ['--test', ...(pattern === undefined ? [] : [`--test-name-pattern=${pattern}`]), file];
    await promisify(execFile)(process.execPath, only, { cwd: copy.directory, env }).catch(
      ({ stdout }: { readonly stdout: string }) => assert.fail(stdout),
    );
  }
});

function configuration(backend: string, agents = 0, management = 0): object {
  const report = {
    name: 'Report',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    backend: { method: 'GET', path: '/reports/{city}' },
    expose: ['http', 'lines'],
  };
  return {
    version: 1,
    merchant: { id: 'added', name: 'Added', publicBaseUrl: `http://127.0.0.1:${agents}` },
    server: { host: '127.0.0.1', port: agents, adminToken: OPERATOR_TOKEN },
    management: { host: '127.0.0.1', port: management },
    backend: { baseUrl: backend },
    storage: { memory: true },
    protocols: { lines: { enabled: true } },
    payments: {
      x402: {
        network: 'eip155:84532',
        asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        assetName: 'USDC',
        assetVersion: '2',
        assetDecimals: 6,
        payTo: '0x00000000000000000000000000000000000000a1',
        facilitator: { mode: 'trusting', transaction: TRANSACTION },
      },
    },
    resources: {
      report: { ...report, pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' }, payments: ['x402'] },
      free_report: { ...report, pricing: { type: 'free' } },
    },
  };
}
