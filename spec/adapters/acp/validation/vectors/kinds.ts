import type { Json, JsonObject } from '../../../../../src/json/types.ts';

/** Valid and invalid values of one member, which show each of its rules from both sides. */
export interface Kind {
  /** The smallest valid value. */
  readonly least: Json;
  /** A valid value with every optional member. */
  readonly full: Json;
  readonly valid: readonly Json[];
  /** Each breaks one rule. */
  readonly invalid: readonly Json[];
}

export const text: Kind = { least: '', full: 'x', valid: ['', 'x'], invalid: [null, 7, ['x']] };
export const flag: Kind = { least: false, full: true, valid: [true, false], invalid: [null, 'true', 0] };
/** No limits of sign or size. */
export const integer: Kind = { least: 0, full: 5, valid: [0, -5, 1e21], invalid: [null, '5', 1.5] };
export const number: Kind = { least: 0, full: 1.5, valid: [0, -1.5], invalid: [null, '1.5'] };
export const dateTime: Kind = among('2026-04-17T10:00:00Z', {
  valid: ['2026-04-17T10:00:00.25+02:00', '2026-04-17t10:00:00z'],
  invalid: [null, 7, '2026-04-17', '2026-13-17T10:00:00Z', '2026-04-17T10:00:00'],
});
export const uri: Kind = among('https://shop.example/a?b#c', {
  valid: ['urn:isbn:1'],
  invalid: [null, 7, '', '/a', 'shop.example'],
});
export const email: Kind = among('a@shop.example', { valid: [], invalid: [null, 7, '', 'shop.example', 'a@shop'] });
/** A pattern only: no calendar. */
export const date: Kind = among('2026-04-17', {
  valid: ['9999-99-99'],
  invalid: [null, 7, '2026-4-17', ' 2026-04-17', '2026-04-17Z'],
});
export const currencyCode: Kind = among('usd', { valid: [], invalid: [null, 7, 'USD', 'us', 'usdc'] });
export const scalar: Kind = among('x', { valid: [1.5, true, false], invalid: [null, {}, []] });
export const anyObject: Kind = {
  least: {},
  full: { zz_unknown: [null] },
  valid: [{}, { zz_unknown: [null] }],
  invalid: [null, 'x', []],
};

export function oneOf(first: string, ...others: readonly string[]): Kind {
  return among(first, {
    valid: others,
    invalid: [null, 7, 'zz_unknown', first.toUpperCase()].filter((v) => v !== first),
  });
}

/** An upper limit is in characters, of which the second kind has two UTF-16 units. */
export function textOf(range: { readonly from?: number; readonly to: number }): Kind {
  const { from = 0, to } = range;
  const short = from === 0 ? [] : ['x'.repeat(from - 1)];
  return among('x'.repeat(from), {
    valid: ['x'.repeat(to), '🎉'.repeat(to)],
    invalid: [null, 7, 'x'.repeat(to + 1), ...short],
  });
}

export function integerFrom(least: number): Kind {
  return { least, full: least + 2, valid: [least, least + 1, 1e21], invalid: [null, '5', least + 0.5, least - 1] };
}

export function numberBetween(least: number, most: number): Kind {
  return { least, full: most, valid: [least, least + 0.5, most], invalid: [null, '5', least - 0.5, most + 0.5] };
}

export function listOf(kind: Kind, rules: { readonly from?: 1; readonly unique?: true } = {}): Kind {
  const { from, unique } = rules;
  return {
    least: from === 1 ? [kind.least] : [],
    full: unique ? [kind.full] : [kind.full, kind.full],
    valid: [...(from === 1 ? [] : [[]]), ...kind.valid.map((value) => [value])],
    invalid: [
      null,
      'x',
      {},
      ...kind.invalid.map((value) => [value]),
      ...kind.invalid.slice(0, 1).map((value) => [kind.least, value]),
      ...(from === 1 ? [[]] : []),
      ...(unique ? [[kind.least, kind.least]] : []),
    ],
  };
}

export function mapOf(kind: Kind): Kind {
  return {
    least: {},
    full: { a: kind.full, b: kind.full },
    valid: [{}, ...kind.valid.map((value) => ({ a: value }))],
    invalid: [null, 'x', [], ...kind.invalid.map((value) => ({ a: value }))],
  };
}

/** Members whose names end with `*` are required. */
export type Members = Readonly<Record<string, Kind>>;

/**
 * Nothing but these members. `beside`: what else the object needs to be valid, where that does not
 * depend on one member alone.
 */
export function closed(members: Members, beside: JsonObject = {}): Kind {
  const { least, ...object } = objectOf(members, beside);
  return { ...object, least, invalid: [...object.invalid, { ...least, zz_unknown: 1 }] };
}

/** Unknown members may be among them. */
export function open(members: Members, beside: JsonObject = {}): Kind {
  const { least, ...object } = objectOf(members, beside);
  return { ...object, least, valid: [...object.valid, { ...least, zz_unknown: null }] };
}

function objectOf(members: Members, beside: JsonObject): Omit<Kind, 'least'> & { readonly least: JsonObject } {
  const rules = Object.entries(members).map(([name, kind]) => ({
    name: name.replace('*', ''),
    required: name.endsWith('*'),
    kind,
  }));
  const required = rules.filter((rule) => rule.required);
  const least = { ...Object.fromEntries(required.map(({ name, kind }) => [name, kind.least])), ...beside };
  const full = { ...Object.fromEntries(rules.map(({ name, kind }) => [name, kind.full])), ...beside };
  const put = (name: string, values: readonly Json[]) => values.map((value) => ({ ...least, [name]: value }));
  return {
    least,
    full,
    valid: [least, full, ...rules.flatMap(({ name, kind }) => put(name, kind.valid))],
    invalid: [
      null,
      'x',
      [],
      ...required.map(({ name }) => without(least, name)),
      ...rules.flatMap(({ name, kind }) => put(name, kind.invalid)),
    ],
  };
}

function without(object: JsonObject, name: string): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([member]) => member !== name));
}

/** One of several forms, chosen by a member. */
export function either(first: Kind, ...others: readonly Kind[]): Kind {
  const forms = [first, ...others];
  return {
    least: first.least,
    full: first.full,
    valid: forms.flatMap(({ valid }) => valid),
    invalid: forms.flatMap(({ invalid }) => invalid),
  };
}

function among(value: string, { valid, invalid }: Pick<Kind, 'valid' | 'invalid'>): Kind {
  return { least: value, full: value, valid: [value, ...valid], invalid };
}
