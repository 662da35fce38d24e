import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PaymentInfoSchema } from '@agentcash/discovery';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { validate as discoveryFaults } from 'mppx/discovery';
import resourceSchema from '../../schemas/resource.schema.json' with { type: 'json' };
import { parseConfig } from '../../src/config/load.ts';
import { termsOf } from '../../src/config/sections/resources.ts';
import type { Measure, PriceRule } from '../../src/payments/pricing/by-input.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { introductionOf, llmsDocument, openApiDocument } from '../../src/resources/published.ts';
import type { StaticDocument } from '../../src/resources/static-document.ts';
import { BY_INPUT, type Changes, changed, load, MAINNET, problems } from '../config/document/document.ts';
import { asking } from '../config/sections/ap2.ts';

const BOUNDS = { min: '0.01', max: '1' };
const STEPS = [
  { upTo: 10, amount: '0.01' },
  { upTo: 100, amount: '0.05' },
];
const BY_QUALITY = { pointer: '/quality', amounts: { low: '0.5', high: '0.02' } };

interface Row {
  /** As derived and listed, but for the path of a quote. */
  readonly rule: PriceRule;
  /** As configured, where that differs. */
  readonly by?: object;
  readonly sentence: string;
  readonly range: readonly [min: string, max: string];
}

const RANGE = ['0.01', '1'] as const;
const unit = (pointer: string, of: Measure, noun: string): Row => ({
  rule: { kind: 'unit', pointer, ...BOUNDS, amount: '0.01', of },
  by: { unit: { pointer, ...BOUNDS } },
  sentence: `Costs 0.01 USDC for each${noun} of ${pointer}, at least 0.01, at most 1.`,
  range: RANGE,
});
const tier = (pointer: string, of: Measure, steps: typeof STEPS, sentence: string): Row => ({
  ...{ rule: { kind: 'tier', pointer, of, steps }, by: { tier: { pointer, steps } } },
  ...{ sentence, range: ['0.01', steps.at(-1)?.amount ?? ''] },
});
const ROWS: Readonly<Record<string, Row>> = {
  unit: unit('/list', 'list', ' item'),
  'unit of a text': unit('/text', 'text', ' character'),
  'unit of a number inside': unit('/inner/n', 'number', ''),
  tier: tier('/n', 'number', STEPS, 'Costs by /n: 0.01 USDC up to 10, 0.05 USDC up to 100.'),
  'tier of a text': tier('/text', 'text', STEPS.slice(0, 1), 'Costs by /text: 0.01 USDC up to 10 characters.'),
  choice: {
    rule: { kind: 'choice', ...BY_QUALITY },
    ...{ sentence: 'Costs by /quality: 0.5 USDC for low, 0.02 USDC for high.', range: ['0.02', '0.5'] },
  },
  'choice of a boolean': {
    rule: { kind: 'choice', pointer: '/flag', amounts: { true: '2', false: '1.5' } },
    ...{ sentence: 'Costs by /flag: 2 USDC for true, 1.5 USDC for false.', range: ['1.5', '2'] },
  },
  quote: {
    rule: { kind: 'quote', method: 'POST', path: '/internal/quotes/of-reports', ...BOUNDS },
    by: { quote: { path: '/quotes/of-reports', ...BOUNDS } },
    ...{ sentence: 'Costs 0.01 to 1 USDC, quoted for each input.', range: RANGE },
  },
};

function pricedBy(by: object): Changes {
  const amount = 'unit' in by ? { amount: '0.01' } : {};
  return {
    ...{ ...MAINNET, ...BY_INPUT, 'backend.baseUrl': 'http://127.0.0.1:3000/internal' },
    'resources.report.pricing': { type: 'fixed', ...amount, currency: 'USDC', by },
  };
}

const textOf = ({ bytes }: StaticDocument): string => Buffer.from(bytes).toString();

const obeys = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false }).compile(resourceSchema);

for (const [what, { rule, by, sentence, range }] of Object.entries(ROWS))
  describe(`a price by ${what}`, () => {
    const { kind, ...members } = rule;
    const [min, max] = range;
    const config = load(pricedBy(by ?? { [kind]: members }));
    const catalogue = compileCatalogue(config);

    it('is derived with the lowest as its amount', () => {
      const { pricing } = config.resources[0] ?? assert.fail();
      assert.ok(pricing.type === 'fixed');
      assert.deepEqual(pricing.by, rule);
      assert.deepEqual([pricing.amount, pricing.units], [min, BigInt(Math.round(Number(min) * 1e6))]);
    });

    it('is listed with its rule, without a path of the backend', () => {
      const { resources } = JSON.parse(textOf(catalogue.listing)) as { resources: { pricing: object }[] };
      const [resource] = resources;
      const listed = { [kind]: kind === 'quote' ? BOUNDS : members };
      assert.deepEqual(resource?.pricing, { type: 'fixed', amount: min, currency: 'USDC', by: listed });
      assert.ok(obeys(resource), JSON.stringify(obeys.errors));
    });

    it('is said in one sentence', () => {
      const llms = textOf(llmsDocument(introductionOf(config, catalogue.listed)));
      assert.ok(llms.includes(`Report. ${sentence}\n`), llms);
      assert.ok(!llms.includes('of-reports'));
    });

    it('has its bounds in OpenAPI, as the validators of catalogues read them', async () => {
      const text = textOf(openApiDocument(config, catalogue.listed));
      const document = JSON.parse(text) as {
        paths: Record<string, { post: { 'x-payment-info': unknown; description: string } }>;
      };
      const { valid, errors } = await new Validator().validate(JSON.parse(text));
      assert.ok(valid, JSON.stringify(errors));
      assert.deepEqual(discoveryFaults(JSON.parse(text)), []);
      const { post } = document.paths['/api/resources/report/invoke'] ?? assert.fail();
      const info = PaymentInfoSchema.parse(post['x-payment-info']);
      assert.deepEqual(info, { price: { mode: 'dynamic', currency: 'USD', min, max }, protocols: [{ x402: {} }] });
      assert.ok(post.description.endsWith(sentence) && !text.includes('of-reports'));
    });
  });

describe('a configured price by input', () => {
  it('may have the lowest as its amount', () => {
    const { pricing } = load({ ...pricedBy({ choice: BY_QUALITY }), 'resources.report.pricing.amount': '0.020' })
      .resources[0] ?? { pricing: undefined };
    assert.partialDeepStrictEqual(pricing, { amount: '0.02', units: 20_000n });
  });

  it('may name true and false as YAML writes them', () => {
    const document = JSON.stringify(changed(pricedBy({ choice: { pointer: '/flag', amounts: { a: '1', b: '2' } } })));
    const { resources } = parseConfig(document.replace('"a":', 'true: ').replace('"b":', 'false: '), {});
    assert.partialDeepStrictEqual(resources[0]?.pricing, { by: { amounts: { true: '1', false: '2' } } });
  });

  it('is held exactly by every asset that it is charged in', () => {
    const withDecimals = (assetDecimals: number): Changes => {
      const { payments } = changed({}) as { payments: { x402: object } };
      const other = { ...payments.x402, network: 'eip155:43113', asset: `0x${'22'.repeat(20)}`, assetDecimals };
      const by = { tier: { pointer: '/n', steps: [...STEPS, { upTo: 101, amount: '0.0001' }] } };
      return {
        ...pricedBy(by),
        ...{ 'backend.baseUrl': 'http://127.0.0.1:3000', payments: { x402: [payments.x402, other] } },
      };
    };
    const { pricing } = load(withDecimals(18)).resources[0] ?? assert.fail();
    assert.partialDeepStrictEqual(pricing, {
      units: 100n,
      others: [{ amount: '0.0001', units: 10n ** 14n, entry: 1 }],
    });
    const [problem, ...others] = problems(withDecimals(3));
    assert.deepEqual([problem?.path, others], ['resources.report.pricing.by.tier.steps[2].amount', []]);
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
