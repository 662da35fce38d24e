import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PaymentInfoSchema } from '@agentcash/discovery';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { validate as discoveryFaults } from 'mppx/discovery';
import resourceSchema from '../../schemas/resource.schema.json' with { type: 'json' };
import { parseConfig } from '../../src/config/load.ts';
import { termsOf } from '../../src/config/sections/resources.ts';
import type { Measure } from '../../src/payments/pricing/by-input.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { introductionOf, llmsDocument, openApiDocument } from '../../src/resources/published.ts';
import type { StaticDocument } from '../../src/resources/static-document.ts';
import { BY_INPUT, type Changes, changed, load, MAINNET, problems, SEPOLIA } from '../config/document/document.ts';
import { asking } from '../config/sections/ap2.ts';

const BOUNDS = { min: '0.01', max: '1' };
const STEPS = [
  { upTo: 10, amount: '0.05' },
  { upTo: 100, amount: '0.01' },
];
const BY_QUALITY = { pointer: '/quality', amounts: { low: '10', high: '9.5' } };

interface Row {
  readonly by: Readonly<Record<string, object>>;
  /** What is derived beside that. */
  readonly derived?: object;
  readonly sentence: string;
  readonly range: readonly [min: string, max: string];
}

const FIXED = { type: 'fixed', currency: 'USDC' };
const RANGE = ['0.01', '1'] as const;
const unit = (pointer: string, of: Measure, noun: string): Row => ({
  ...{ by: { unit: { pointer, ...BOUNDS } }, derived: { amount: '0.01', of } },
  ...{ sentence: `Costs 0.01 USDC for each${noun} of ${pointer}, at least 0.01, at most 1.`, range: RANGE },
});
const ROWS: Readonly<Record<string, Row>> = {
  unit: unit('/list', 'list', ' item'),
  'unit of a text': unit('/text', 'text', ' character'),
  'unit of a number inside': unit('/inner/n', 'number', ''),
  tier: {
    ...{ by: { tier: { pointer: '/n', steps: STEPS } }, derived: { of: 'number' } },
    ...{ sentence: 'Costs by /n: 0.05 USDC up to 10, 0.01 USDC up to 100.', range: ['0.01', '0.05'] },
  },
  'tier of a text': {
    ...{ by: { tier: { pointer: '/text', steps: STEPS.slice(0, 1) } }, derived: { of: 'text' } },
    ...{ sentence: 'Costs by /text: 0.05 USDC up to 10 characters.', range: ['0.05', '0.05'] },
  },
  choice: {
    by: { choice: BY_QUALITY },
    ...{ sentence: 'Costs by /quality: 10 USDC for low, 9.5 USDC for high.', range: ['9.5', '10'] },
  },
  'choice of a boolean': {
    by: { choice: { pointer: '/flag', amounts: { true: '0.1', false: '0.09' } } },
    ...{ sentence: 'Costs by /flag: 0.1 USDC for true, 0.09 USDC for false.', range: ['0.09', '0.1'] },
  },
  quote: {
    by: { quote: { path: '/quotes/of-reports', ...BOUNDS } },
    derived: { method: 'POST', path: '/internal/quotes/of-reports' },
    ...{ sentence: 'Costs 0.01 to 1 USDC, quoted for each input.', range: RANGE },
  },
};

function pricedBy(by: object): Changes {
  const amount = 'unit' in by ? { amount: '0.01' } : {};
  return {
    ...{ ...MAINNET, ...BY_INPUT, 'backend.baseUrl': 'http://127.0.0.1:3000/internal' },
    'resources.report.pricing': { ...FIXED, ...amount, by },
  };
}

const textOf = ({ bytes }: StaticDocument): string => Buffer.from(bytes).toString();

const obeys = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false }).compile(resourceSchema);

for (const [what, { by, derived, sentence, range }] of Object.entries(ROWS))
  describe(`a price by ${what}`, () => {
    const [kind = '', configured] = Object.entries(by)[0] ?? [];
    const members = { ...configured, ...derived };
    const [min, max] = range;
    const config = load(pricedBy(by));
    const catalogue = compileCatalogue(config);

    it('is derived with the lowest as its amount', () => {
      const { pricing } = config.resources[0] ?? assert.fail();
      assert.ok(pricing.type === 'fixed');
      assert.deepEqual(pricing.by, { kind, ...members });
      assert.deepEqual([pricing.amount, pricing.units], [min, BigInt(Math.round(Number(min) * 1e6))]);
    });

    it('is listed with its rule, without a path of the backend', () => {
      const [resource] = JSON.parse(textOf(catalogue.listing)).resources;
      const listed = { [kind]: kind === 'quote' ? BOUNDS : members };
      assert.deepEqual(resource.pricing, { ...FIXED, amount: min, by: listed });
      assert.ok(obeys(resource), JSON.stringify(obeys.errors));
    });

    it('is said in one sentence', () => {
      const llms = textOf(llmsDocument(introductionOf(config, catalogue.listed)));
      assert.ok(llms.includes(`Report. ${sentence}\n`), llms);
      assert.ok(!llms.includes('of-reports'));
    });

    it('has its bounds in OpenAPI, as the validators of catalogues read them', async () => {
      const text = textOf(openApiDocument(config, catalogue.listed));
      const { valid, errors } = await new Validator().validate(JSON.parse(text));
      assert.ok(valid, JSON.stringify(errors));
      assert.deepEqual(discoveryFaults(JSON.parse(text)), []);
      const { post } = JSON.parse(text).paths['/api/resources/report/invoke'];
      const info = PaymentInfoSchema.parse(post['x-payment-info']);
      assert.deepEqual(info, { price: { mode: 'dynamic', currency: 'USD', min, max }, protocols: [{ x402: {} }] });
      assert.ok(post.description.endsWith(sentence) && !text.includes('of-reports'));
    });
  });

describe('a configured price by input', () => {
  it('may have the lowest as its amount', () => {
    const { resources } = load({ ...pricedBy({ choice: BY_QUALITY }), 'resources.report.pricing.amount': '9.50' });
    assert.partialDeepStrictEqual(resources[0]?.pricing, { amount: '9.5', units: 9_500_000n });
  });

  it('may name true and false as YAML writes them', () => {
    const document = JSON.stringify(changed(pricedBy({ choice: { pointer: '/flag', amounts: { a: '1', b: '2' } } })));
    const { resources } = parseConfig(document.replace('"a":', 'true: ').replace('"b":', 'false: '), {});
    assert.partialDeepStrictEqual(resources[0]?.pricing, { by: { amounts: { true: '1', false: '2' } } });
  });

  it('is held exactly by every asset that it is charged in', () => {
    const withDecimals = (assetDecimals: number): Changes => {
      const other = { ...SEPOLIA, network: 'eip155:43113', asset: `0x${'22'.repeat(20)}`, assetDecimals };
      const by = { tier: { pointer: '/n', steps: [...STEPS, { upTo: 101, amount: '0.0001' }] } };
      return { ...BY_INPUT, 'payments.x402': [SEPOLIA, other], 'resources.report.pricing': { ...FIXED, by } };
    };
    const others = [{ amount: '0.0001', units: 10n ** 14n, entry: 1 }];
    assert.partialDeepStrictEqual(load(withDecimals(18)).resources[0]?.pricing, { units: 100n, others });
    const [problem, ...more] = problems(withDecimals(3));
    assert.deepEqual([problem?.path, more], ['resources.report.pricing.by.tier.steps[2].amount', []]);
    assert.match(problem?.message ?? '', /more decimals than the asset \(3 of payments\.x402\[1\]\)/);
  });

  it('is another term than the same lowest price by another rule', () => {
    const terms = [{ unit: { pointer: '/n', ...BOUNDS } }, { quote: { path: '/price', ...BOUNDS } }].map((by) => {
      const [resource] = load(pricedBy(by)).resources;
      return termsOf(resource ?? assert.fail());
    });
    assert.notEqual(terms[0], terms[1]);
  });

  it('must be one that AP2 can count up to its highest', () => {
    const max = '9007199255';
    const by = { unit: { pointer: '/n', min: '0.01', max } };
    const [problem, ...others] = problems(asking({ ...BY_INPUT, 'resources.report.pricing.by': by }));
    assert.deepEqual([problem?.path, others], ['resources.report.pricing.by', []]);
    assert.match(problem?.message ?? '', /less than 2\^53/);
  });
});
