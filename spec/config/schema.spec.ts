import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { type SchemaNode, type Step, schemaAt } from '../../src/config/document/member.ts';
import { validateDocument } from '../../src/config/validate.ts';
import { ConfigError, memberPath, ProblemList } from '../../src/problems/problem.ts';

const CONDITIONS: ReadonlySet<string> = new Set(['if', 'then', 'else', 'oneOf', 'anyOf', 'allOf', 'not']);

interface Bounds extends SchemaNode {
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
}

describe('the published schema of the configuration', () => {
  it('is JSON Schema 2020-12: the gateway takes it as it is', () => {
    const ajv = new Ajv2020();
    assert.ok(ajv.validateSchema(schema) === true, ajv.errorsText());
  });

  it('declares no type of a member in a condition: what a member is does not depend on others', () => {
    const conditional = (node: unknown, inside: boolean, path: string): readonly string[] => {
      if (node === null || typeof node !== 'object') return [];
      const typed = inside && 'type' in node && typeof node.type === 'string' ? [path] : [];
      const below = Object.entries(node).flatMap(([name, inner]) =>
        conditional(inner, inside || CONDITIONS.has(name), `${path}/${name}`),
      );
      return [...typed, ...below];
    };
    assert.deepEqual(conditional(schema, false, ''), []);
  });
});

describe('what the schema says of a member', () => {
  it('is found through sections, lists, names and references', () => {
    assert.equal(schemaAt(['server', 'port'])?.type, 'integer');
    assert.equal(schemaAt(['storage', 'sealing', 'keys', 0, 'id'])?.type, 'string');
    assert.equal(schemaAt(['resources', 'any', 'backend', 'timeoutMs'])?.maximum, 120_000);
    assert.equal(schemaAt(['payments', 'x402', 'facilitator', 'url'])?.description, 'the URL of the facilitator');
  });

  it('is nothing for a key that is not known, and no type where an operator writes what he likes', () => {
    assert.equal(schemaAt(['server', 'prot']), undefined);
    assert.equal(schemaAt(['server', 0]), undefined);
    assert.equal(schemaAt(['server', 'toString']), undefined);
    assert.deepEqual(schemaAt(['resources', 'any', 'inputSchema', 'properties', 'city']), {});
  });
});

/** The keys of the schema, items of lists and members of mappings of any name included. */
function keysBelow(steps: readonly Step[]): readonly (readonly Step[])[] {
  const { properties = {}, items, additionalProperties: open } = schemaAt(steps) ?? {};
  const named = Object.entries(properties).flatMap(([name, node]) => ((node as unknown) === false ? [] : [name]));
  const members = [...named, ...(items === undefined ? [] : [0]), ...(typeof open === 'object' ? ['any'] : [])];
  return members.flatMap((member) => [[...steps, member], ...keysBelow([...steps, member])]);
}

/** What is said of a value at a key of a document that has nothing else. */
function saidOf(steps: readonly Step[], value: unknown): string | undefined {
  const document = steps.toReversed().reduce<unknown>((inner, step) => {
    return typeof step === 'number' ? [inner] : { [step]: inner };
  }, value);
  const problems = new ProblemList();
  validateDocument(document, problems);
  const path = steps.reduce<string>(memberPath, '');
  try {
    problems.throwIfAny();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.find((problem) => problem.path === path)?.message;
    throw error;
  }
  return undefined;
}

const texts = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `/${index}`);

/** Values at the bounds of a key, and beyond them. */
function valuesOf({ minimum, maximum, minLength, maxLength, minItems, maxItems, ...node }: Bounds) {
  const at = <Bound>(bound: Bound | undefined, ...values: readonly ((bound: Bound) => unknown)[]) =>
    bound === undefined ? [] : values.map((value) => value(bound));
  const text = (count: number): string => 'x'.repeat(count);
  return {
    right: [
      ...[...at(minimum, Number), ...at(maximum, Number), ...(node.enum ?? [])],
      ...(node.pattern === undefined ? [...at(minLength, text), ...at(maxLength, text)] : []),
    ],
    wrong: [
      ...at(
        minimum,
        (least) => least - 1,
        (least) => least + 0.5,
      ),
      ...[
        ...at(maximum, (most) => most + 1),
        ...at(node.enum, () => 'none of these'),
        ...at(node.pattern, () => '\u0000'),
      ],
      ...[...at(minLength, (least) => text(least - 1)), ...at(maxLength, (most) => text(most + 1))],
      ...[...at(minItems, (least) => texts(least - 1)), ...at(maxItems, (most) => texts(most + 1))],
      ...at(node.uniqueItems, () => (node.items?.type === 'integer' ? [400, 400] : ['/a', '/a'])),
    ],
  };
}

describe('a key of the configuration', () => {
  const keys = keysBelow([]).map((steps) => ({ steps, ...valuesOf((schemaAt(steps) ?? {}) as Bounds) }));
  for (const { steps, right, wrong } of keys.filter((key) => key.wrong.length > 0))
    it(`${steps.reduce<string>(memberPath, '')} has its bounds, and is told what they are`, () => {
      for (const value of right) assert.equal(saidOf(steps, value), undefined, JSON.stringify(value));
      for (const value of wrong) assert.match(saidOf(steps, value) ?? '', /^must be ./, JSON.stringify(value));
    });

  it('is one of the schema: any other is refused in every mapping', () => {
    const closed = keys.filter(({ steps }) => schemaAt(steps)?.additionalProperties === false);
    for (const { steps } of closed) assert.match(saidOf([...steps, 'unknownKey'], 1) ?? '', /^is not a known key/);
    assert.ok(closed.length > 40);
  });
});
