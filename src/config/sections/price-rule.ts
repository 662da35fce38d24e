/** `pricing.by`: prices that follow the input, checked against its schema (contract 4.9). */

import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import {
  compareAmounts,
  lowestOf,
  type Measure,
  type PriceRule,
  pointerNames,
} from '../../payments/pricing/by-input.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import { readTemplate } from '../../resources/url-template.ts';
import type { ResourceDocument } from '../document/document.ts';

type PricedDocument = Extract<ResourceDocument['pricing'], { type: 'fixed' }>;
type RuleDocument = NonNullable<PricedDocument['by']>;

/** The measures of the types that a unit or a tier can be of. */
const MEASURES: ReadonlyMap<Json | undefined, Measure> = new Map<Json | undefined, Measure>([
  ['number', 'number'],
  ['integer', 'number'],
  ['string', 'text'],
  ['array', 'list'],
]);

/** The parts of a resource that a rule depends on. */
export interface RuleSurroundings {
  /** Undefined: the resource has none. `refused`: it has a problem of its own. */
  readonly inputSchema: JsonObject | 'refused' | undefined;
  /** Of the backend's base URL. */
  readonly pathPrefix: string;
  /** Whether every asset that is charged holds the amount exactly; adds the problem otherwise. */
  charges(amount: string, path: string): boolean;
}

/** Derives the rule of the price that is `at` a path; undefined after a problem. */
export function derivePriceRule(
  { amount, by }: { readonly amount: string | undefined; readonly by: RuleDocument },
  at: string,
  { inputSchema, pathPrefix, charges }: RuleSurroundings,
  problems: ProblemList,
): PriceRule | undefined {
  const { quote } = by;
  const pointer = (by.unit ?? by.tier ?? by.choice)?.pointer;
  const property = pointer === undefined || inputSchema === 'refused' ? {} : propertyAt(pointer, inputSchema);
  const rule = ruleOf(by, amount ?? '', pathPrefix, MEASURES.get(property.schema?.['type']));
  const own = `${at}.by.${rule.kind}`;
  if (property.fault !== undefined) problems.add(`${own}.pointer`, property.fault);
  else if (property.schema !== undefined) checkType(rule, property.schema, own, problems);
  if (quote !== undefined) checkPath(quote.path, `${own}.path`, problems);
  if (rule.kind === 'unit' && amount === undefined)
    problems.add(`${at}.amount`, 'is missing: the price of one unit, in quotes, such as "0.01"');
  const charged = amountsOf(rule, own).map(([text, path]) => charges(text, path));
  if (amount !== undefined) charged.push(charges(amount, `${at}.amount`));
  if (charged.every(Boolean)) checkOrder(rule, amount, at, problems);
  return inputSchema !== 'refused' && problems.sound(at) ? rule : undefined;
}

/** `amount`: of one unit; `of`: undefined after a problem. */
function ruleOf(
  { unit, tier, choice, quote }: RuleDocument,
  amount: string,
  pathPrefix: string,
  of: Measure = 'number',
): PriceRule {
  if (unit !== undefined) return { kind: 'unit', ...unit, amount, of };
  if (tier !== undefined) return { kind: 'tier', ...tier, of };
  if (choice !== undefined) return { kind: 'choice', ...choice };
  if (quote !== undefined) return { kind: 'quote', ...quote, path: pathPrefix + quote.path };
  throw new Error('the schema accepted a price by nothing');
}

/** The amounts of a rule with their paths, but for that of one unit. */
function amountsOf(rule: PriceRule, own: string): readonly (readonly [amount: string, path: string])[] {
  if (rule.kind === 'tier') return rule.steps.map(({ amount }, step) => [amount, `${own}.steps[${step}].amount`]);
  if (rule.kind === 'choice')
    return Object.entries(rule.amounts).map(([value, amount]) => [amount, memberPath(`${own}.amounts`, value)]);
  return [
    [rule.min, `${own}.min`],
    [rule.max, `${own}.max`],
  ];
}

interface Property {
  readonly schema?: JsonObject;
  readonly fault?: string;
}

/** The schema of a required property: a rule must find its value in each input that is accepted. */
function propertyAt(pointer: string, inputSchema: JsonObject | undefined): Property {
  let schema = inputSchema ?? {};
  for (const name of pointerNames(pointer)) {
    const { type, properties, required } = schema;
    const inner = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (type !== 'object' || !isObject(inner))
      return { fault: `names ${name}, which is under no properties of an object of inputSchema` };
    if (!Array.isArray(required) || !required.includes(name))
      return { fault: `names ${name}, which inputSchema does not require: list it under required` };
    schema = inner;
  }
  return { schema };
}

function checkType(rule: PriceRule, { type, enum: values }: JsonObject, own: string, problems: ProblemList): void {
  if (rule.kind !== 'choice') {
    if (!MEASURES.has(type))
      problems.add(`${own}.pointer`, `must lead to a property of one type: ${[...MEASURES.keys()].join(', ')}`);
    return;
  }
  const known =
    type === 'boolean' ? ['true', 'false'] : type === 'string' && Array.isArray(values) ? values : undefined;
  if (known === undefined) {
    problems.add(`${own}.pointer`, 'must lead to a property of type boolean, or of type string with enum');
    return;
  }
  const at = `${own}.amounts`;
  const missing = known.filter((value) => !Object.hasOwn(rule.amounts, String(value)));
  if (missing.length > 0)
    problems.add(at, `must have an amount for each value of its property, also ${missing.join(', ')}`);
  for (const value of Object.keys(rule.amounts))
    if (!known.includes(value)) problems.add(memberPath(at, value), 'is no value of its property; remove it');
}

function checkPath(path: string, at: string, problems: ProblemList): void {
  const reading = readTemplate(path);
  if (!reading.ok) problems.add(at, reading.message);
  else if (reading.template.parameters.length > 0) problems.add(at, 'must have no {…}: the input is sent as JSON');
}

/** `amount`: as configured. Reads amounts that were accepted alone. */
function checkOrder(rule: PriceRule, amount: string | undefined, at: string, problems: ProblemList): void {
  const own = `${at}.by.${rule.kind}`;
  if (rule.kind === 'tier')
    for (const [step, { upTo }] of rule.steps.entries())
      if (upTo <= (rule.steps[step - 1]?.upTo ?? -1))
        problems.add(`${own}.steps[${step}].upTo`, 'must be more than that of the step before');
  if ((rule.kind === 'unit' || rule.kind === 'quote') && compareAmounts(rule.min, rule.max) > 0)
    problems.add(`${own}.max`, 'must be at least min');
  if (rule.kind !== 'unit' && amount !== undefined && problems.sound(own))
    if (compareAmounts(amount, lowestOf(rule)) !== 0)
      problems.add(`${at}.amount`, `must be the lowest price of by.${rule.kind}, or be left out`);
}
