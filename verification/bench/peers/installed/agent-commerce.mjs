/**
 * The closest other gateway as a contestant: its library serves one free resource over HTTP, with
 * its log and its receipts in a SQLite file, as its composition root does.
 */
import { join } from 'node:path';
import { createGateway, createSqliteReceiptStore, parseConfig } from '@devlab.group/agent-commerce';
import pino from 'pino';

const { PORT, BACKEND_URL, FOLDER, INPUT_SCHEMA } = process.env;

const config = parseConfig(
  {
    version: 1,
    merchant: { id: 'bench', name: 'Bench', publicBaseUrl: `http://127.0.0.1:${PORT}` },
    server: { host: '127.0.0.1', port: Number(PORT) },
    storage: { receipts: { driver: 'sqlite', path: join(FOLDER, 'receipts.db') } },
    protocols: { http: { enabled: true }, mcp: { enabled: false, mountPath: '/mcp' } },
    payments: {},
    resources: {
      report: {
        name: 'Report',
        description: 'Prices and volumes of one city on one day',
        input: JSON.parse(INPUT_SCHEMA),
        backend: { type: 'http', method: 'POST', url: `${BACKEND_URL}/report` },
        pricing: { type: 'free' },
        expose: ['http'],
      },
    },
  },
  process.env,
);
const store = createSqliteReceiptStore({ path: join(FOLDER, 'receipts.db') });
await store.init();
const gateway = await createGateway({
  config,
  store,
  paymentProviders: [],
  protocolAdapters: [],
  logger: pino(),
});
await gateway.listen();
process.once('SIGTERM', () => process.exit(0));
