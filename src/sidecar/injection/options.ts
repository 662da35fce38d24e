/** The options that an injector's operator sets for all pods; no pod can change them. */

import { parseConfigText } from '../../config/document/parse.ts';
import { nearest } from '../../problems/nearest.ts';
import { memberPath, ProblemList } from '../../problems/problem.ts';

export interface InjectionOptions {
  readonly image: string;
  readonly imagePullPolicy: string;
  /** Of the pod's namespace, with the key `gateway.yaml`. */
  readonly configMap: string;
  /** Of the pod's namespace; `KEY_FILE` tells the gateway the file of each of `secretKeys`. */
  readonly secret: string;
  readonly secretKeys: readonly string[];
  readonly ports: { readonly agents: number; readonly management: number };
  /** The drain that the grace period leaves room for, seconds, unless a pod names another one. */
  readonly drainSeconds: number;
  readonly resources: {
    readonly requests: { readonly cpu: string; readonly memory: string };
    readonly limits: { readonly memory: string };
  };
}

/** Every option has this value where the file does not name it. */
export const USUAL_OPTIONS: InjectionOptions = {
  image: 'agent-commerce-gateway:1.0.0',
  imagePullPolicy: 'IfNotPresent',
  configMap: 'agent-commerce-gateway-config',
  secret: 'agent-commerce-gateway-secret',
  secretKeys: ['ADMIN_TOKEN', 'REDIS_URL'],
  ports: { agents: 8402, management: 8403 },
  drainSeconds: 75,
  resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '192Mi' } },
};

interface Rule {
  readonly right: string;
  readonly holds: (value: unknown) => boolean;
}

const QUANTITY = /^[1-9]\d*(?:\.\d+)?(?:m|[kMGTPE]i?)?$/;
const OBJECT_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
const IMAGE = /^[a-zA-Z0-9][\w.:/@-]{0,511}$/;
const SECRET_KEY = /^[A-Z][A-Z0-9_]{0,62}$/;
const POLICIES = ['Always', 'IfNotPresent', 'Never'];

const text =
  (pattern: RegExp) =>
  (value: unknown): boolean =>
    typeof value === 'string' && pattern.test(value);
const integer =
  (least: number, most: number) =>
  (value: unknown): boolean =>
    Number.isInteger(value) && Number(value) >= least && Number(value) <= most;

const NAME: Rule = { right: 'the name of an object: lower case letters, digits, - and .', holds: text(OBJECT_NAME) };
const PORT: Rule = { right: 'a port from 1 to 65535', holds: integer(1, 65_535) };
const AMOUNT: Rule = { right: 'a quantity such as 50m or 96Mi', holds: text(QUANTITY) };

/** Rules for the members of the file, in the shape of the options. */
type Rules = { readonly [member: string]: Rule | Rules };
const RULES: Rules = {
  image: { right: 'an image reference such as registry.example/gateway@sha256:…', holds: text(IMAGE) },
  imagePullPolicy: {
    right: POLICIES.join(', '),
    holds: (value) => typeof value === 'string' && POLICIES.includes(value),
  },
  configMap: NAME,
  secret: NAME,
  secretKeys: {
    right: 'a list of names such as ADMIN_TOKEN, each once',
    holds: (value) => Array.isArray(value) && value.every(text(SECRET_KEY)) && new Set(value).size === value.length,
  },
  ports: { agents: PORT, management: PORT },
  drainSeconds: { right: 'a whole number of seconds from 1 to 99999', holds: integer(1, 99_999) },
  resources: { requests: { cpu: AMOUNT, memory: AMOUNT }, limits: { memory: AMOUNT } },
};

/**
 * Reads the injector's own file (YAML or JSON). Options that it lacks are as in USUAL_OPTIONS.
 * @throws ConfigError with every problem
 */
export function readOptions(text: string): InjectionOptions {
  const problems = new ProblemList();
  const merged = merge(parseConfigText(text) ?? {}, USUAL_OPTIONS, RULES, '', problems);
  problems.throwIfAny();
  const options = merged as unknown as InjectionOptions;
  if (options.ports.agents === options.ports.management) problems.add('ports', 'agents and management must differ');
  problems.throwIfAny();
  return options;
}

type Members = Readonly<Record<string, unknown>>;

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isRule(rule: Rule | Rules): rule is Rule {
  return typeof rule['holds'] === 'function';
}

/** The usual members with the given ones in their place, each checked. */
function merge(given: unknown, usual: object, rules: Rules, path: string, problems: ProblemList): Members {
  if (!isMembers(given)) {
    problems.add(path || 'document', `must be a mapping of ${Object.keys(rules).join(', ')}`);
    return { ...usual };
  }
  for (const name of Object.keys(given).filter((member) => !Object.hasOwn(rules, member))) {
    const near = nearest(name, Object.keys(rules));
    const meant = near === undefined ? `known are ${Object.keys(rules).join(', ')}` : `did you mean ${near}?`;
    problems.add(memberPath(path, name), `is no option; ${meant}`);
  }
  const values: Record<string, unknown> = { ...usual };
  for (const [name, rule] of Object.entries(rules)) {
    const value = given[name];
    if (value === undefined) continue;
    const at = memberPath(path, name);
    if (!isRule(rule)) values[name] = merge(value, values[name] as object, rule, at, problems);
    else if (rule.holds(value)) values[name] = value;
    else problems.add(at, `must be ${rule.right}`);
  }
  return values;
}
