/**
 * One dummy for each section of "How to add" in ARCHITECTURE.md: a middleware that sets a header, a
 * rail that believes every proof, an adapter that speaks lines of text, a store that is SQLite in
 * memory by another name, an error code and a constraint.
 */

import { type Addition, all, before, behind, importing, json } from './patched-copy.ts';

const MIDDLEWARE: Addition = {
  title: 'A middleware.',
  files: {
    'src/pipeline/middleware/stamp.ts': `
import type { RequestHandler } from 'express';

/** Sets a header on every answer. */
export function stamp(): RequestHandler {
  return function stampAnswer(_req, res, next) {
    res.setHeader('x-stamp', 'added');
    next();
  };
}
`,
  },
  edits: {
    'src/pipeline/middleware/timed.ts': behind(`  'validate',\n`, `  'stamp',\n`),
    'src/app/gateway.ts': all(
      importing(`import { stamp } from '../pipeline/middleware/stamp.ts';`),
      before(`    step('challenge',`, `    step('stamp', stamp()),\n`),
    ),
  },
};

const RAIL: Addition = {
  title: 'A rail',
  files: {
    'src/payments/x402/trusting/trusting-rail.ts': `
import type { PaymentRail } from '../wire/types.ts';

/** Takes every proof that passed the local checks for settled. */
export function createTrustingRail(transaction: string): PaymentRail {
  return {
    facilitator: 'remote',
    seesChain: () => false,
    verify: async () => ({ kind: 'valid' }),
    settle: async () => ({ kind: 'settled', evidence: 'claim', transaction }),
    reconcile: async () => ({ kind: 'settled', evidence: 'claim', transaction }),
    check: async () => undefined,
  };
}
`,
  },
  edits: {
    'src/payments/x402/create-rail.ts': all(
      importing(`import { createTrustingRail } from './trusting/trusting-rail.ts';`),
      before(
        `  if (facilitator.mode === 'remote') {`,
        `  if (facilitator.mode === 'trusting')\n` +
          `    return {\n` +
          `      rail: createTrustingRail(facilitator.transaction),\n` +
          `      renew: () => undefined,\n` +
          `      close: async () => undefined,\n` +
          `    };\n`,
      ),
    ),
    'src/payments/x402/wire/settings.ts': behind(
      `export type FacilitatorConfig =\n`,
      `  | { readonly mode: 'trusting'; readonly transaction: string }\n`,
    ),
    'src/config/sections/x402.ts': all(
      before(`    facilitator.mode === 'local' ||\n`, `    facilitator.mode === 'trusting' ||\n`),
      before(`  if (document.mode === 'local') return`, `  if (document.mode === 'trusting') return document;\n`),
    ),
    'schemas/config.schema.json': json(({ $defs }) => {
      const facilitator = $defs?.['x402']?.['properties']?.['facilitator'];
      facilitator?.['properties']?.['mode']?.['enum']?.push('trusting');
      Object.assign(facilitator?.['properties'] ?? {}, {
        transaction: { description: 'a hash', markdownDescription: 'a hash', type: 'string' },
      });
      facilitator?.['allOf']?.push({
        if: { properties: { mode: { const: 'trusting' } } },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { required: ['transaction'] },
        else: { properties: { transaction: false } },
      });
    }),
  },
};

const ADAPTER: Addition = {
  title: 'An adapter.',
  files: {
    'src/adapters/lines/adapter.ts': `
import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import { receiveCall, type ResponseWriter } from '../../pipeline/call.ts';
import { callIdOf, requestIdOf } from '../../server/http/access-record.ts';
import { readJsonBody } from '../../server/http/request.ts';
import { clientGone } from '../../server/http/respond.ts';

/** \`POST /lines/{id}\` with the input: every answer is one line of text. */
export function linesAdapter(): RequestHandler {
  return async function serveLine(req, res, next) {
    const startedAt = performance.now();
    const { value, bytes } = await readJsonBody(req, res);
    if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new GatewayError('INPUT_INVALID');
    receiveCall(res, {
      stage: 'received',
      requestId: requestIdOf(res),
      callId: callIdOf(res),
      channel: 'lines',
      resourceId: String(req.params['id']),
      input: value as never,
      rawInput: bytes,
      proof: { kind: 'none' },
      mandate: { kind: 'none' },
      idempotencyKey: undefined,
      trace: { traceparent: undefined, tracestate: undefined },
      responseWriter: lineWriter(res),
      startedAt,
      left: clientGone(res),
    });
    next();
  };
}

function lineWriter(res: Response): ResponseWriter {
  return {
    maxAnswerBytes: 1_024,
    paymentRequired: () => void res.status(402).send('payment required\\n'),
    failed: ({ code }) => void res.status(400).send(\`\${code}\\n\`),
    async relay(answer, { sending }) {
      await sending?.();
      res.status(answer.status);
      for await (const chunk of answer.body) res.write(chunk);
      res.end('\\n');
      return { kind: 'finished' };
    },
  };
}
`,
  },
  edits: {
    'src/app/mount-routes.ts': all(
      importing(`import { linesAdapter } from '../adapters/lines/adapter.ts';`),
      before(
        `  if (protocols.http.enabled)`,
        `  if (protocols.lines.enabled) mount('lines', ['/lines/:id'], linesAdapter());\n`,
      ),
    ),
    'src/events/event.ts': behind(`export type Protocol = 'http' | `, `'lines' | `),
    'src/payments/ledger/table.ts': behind(`const CHANNELS: ReadonlySet<unknown> = new Set([`, `'lines', `),
    'src/resources/discovery.ts': all(
      behind(`const PROTOCOLS: readonly Protocol[] = ['http', `, `'lines', `),
      behind(
        `const PROTOCOL_ADAPTERS: Readonly<Record<Protocol, Descriptor>> = {\n`,
        `  lines: {\n    name: 'lines',\n    kind: 'protocol',\n    implementationVersion: '0.1.0',\n` +
          `    supportedSpec: 'lines/1',\n    capabilities: [],\n    status: 'experimental',\n  },\n`,
      ),
    ),
    'src/resources/settings.ts': behind(`readonly protocols: Readonly<Record<'http'`, ` | 'lines'`),
    'src/config/derive.ts': behind(`const names = ['http', `, `'lines', `),
    'schemas/config.schema.json': json(({ properties, $defs }) => {
      Object.assign(properties?.['protocols']?.['properties'] ?? {}, {
        lines: {
          description: 'lines',
          type: 'object',
          properties: { enabled: { description: 'b', markdownDescription: 'b', type: 'boolean', default: false } },
          default: {},
        },
      });
      $defs?.['resource']?.['properties']?.['expose']?.['items']?.['enum']?.push('lines');
    }),
    'schemas/resource.schema.json': (source) => source.replaceAll(`"enum": ["http", `, `"enum": ["http", "lines", `),
    'schemas/discovery.schema.json': json(({ properties }) => {
      Object.assign(properties?.['protocols']?.['properties'] ?? {}, { lines: { type: 'object' } });
    }),
  },
};

const STORE: Addition = {
  title: 'A store.',
  files: {
    'src/store/memory/open.ts': `
import type { StoreLimits } from '../port/settings.ts';
import type { Store } from '../documents/store.ts';
import { openSqliteStore } from '../sqlite/open.ts';

/** A store that ends with the process. */
export function openMemoryStore(limits: StoreLimits): Store {
  return { ...openSqliteStore({ path: ':memory:', limits }), name: 'memory' };
}
`,
  },
  edits: {
    'src/store/open.ts': all(
      importing(`import { openMemoryStore } from './memory/open.ts';`),
      before(`  if (engine.kind === 'sqlite')`, `  if (engine.kind === 'memory') return openMemoryStore(limits);\n`),
    ),
    'src/store/port/settings.ts': behind(`  readonly engine: `, `{ readonly kind: 'memory' } | `),
    'src/store/documents/store.ts': behind(`  readonly name: `, `'memory' | `),
    'src/resources/discovery.ts': all(
      behind(`const STORES: Readonly<Record<`, `'memory' | `),
      before(
        `  redis: {\n    name: 'redis',\n    kind: 'storage',`,
        `  memory: {\n    name: 'memory',\n    kind: 'storage',\n    implementationVersion: '0.1.0',\n` +
          `    supportedSpec: 'memory/1',\n    capabilities: [],\n    status: 'experimental',\n  },\n`,
      ),
    ),
    'src/resources/settings.ts': behind(`readonly engine: { readonly kind: `, `'memory' | `),
    'src/config/sections/storage.ts': all(
      behind(`  const { redis, sqlite, `, `memory, `),
      behind(
        `  const engine: StorageConfig['engine'] | undefined =\n    `,
        `memory ? ({ kind: 'memory' } as const) : `,
      ),
    ),
    'schemas/config.schema.json': json(({ properties }) => {
      const storage = properties?.['storage'];
      Object.assign(storage?.['properties'] ?? {}, {
        memory: { description: 'true', markdownDescription: 'ends with the process', type: 'boolean' },
      });
      storage?.['oneOf']?.push({ required: ['memory'] });
    }),
    'spec/store/contract.spec.ts': all(
      importing(`import { openMemoryStore } from '../../src/store/memory/open.ts';`),
      before(`storeContract('sqlite memory',`, `storeContract('memory', async () => openMemoryStore(LIMITS));\n`),
    ),
  },
};

const ERROR_CODE: Addition = {
  title: 'An error code.',
  edits: {
    'src/errors.ts': behind(
      `export const ERRORS = {\n`,
      `  TEAPOT: { status: 418, retryable: false, message: 'This resource only makes tea.' },\n`,
    ),
    'schemas/error.schema.json': json(({ properties }) => void properties?.['code']?.['enum']?.push('TEAPOT')),
    'spec/errors.spec.ts': behind(`const STATUS: Readonly<Record<string, number>> = {\n`, `  TEAPOT: 418,\n`),
  },
};

const CONSTRAINT: Addition = {
  title: 'A constraint of mandates.',
  edits: {
    'src/mandates/ap2/payment-mandate.ts': behind(
      `const READERS: Readonly<Record<string, (constraint: JsonObject) => PaymentRule>> = {\n`,
      `  'payment.even_amount': () => demand(({ amount }) => amount % 2 === 0),\n`,
    ),
  },
};

export const ADDITIONS: readonly Addition[] = [MIDDLEWARE, RAIL, ADAPTER, STORE, ERROR_CODE, CONSTRAINT];
