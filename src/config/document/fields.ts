/** Rules about single values that a JSON Schema cannot express: URLs, origins, addresses, texts. */

import { checksumAddress } from '../../crypto/keccak.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import { textFault } from '../../resources/schemas/schema-check.ts';
import { FORBIDDEN_HOST, hostKind, publicUrlFault, readHttpUrl } from './endpoints.ts';

/** Why a text is refused, or undefined. `document` for the few rules that depend on a neighbour. */
type TextRule = (text: string, document: unknown) => string | undefined;

const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;

/** `*` stands for every member. */
const RULES: readonly (readonly [path: readonly string[], rule: TextRule])[] = [
  [['merchant', 'name'], textFault],
  [['merchant', 'publicBaseUrl'], (text) => urlFault(text, true)],
  [['merchant', 'formerBaseUrls', '*'], (text) => urlFault(text, true)],
  [['server', 'allowedOrigins', '*'], originFault],
  [['backend', 'baseUrl'], backendFault],
  [['protocols', 'acp', 'backend', 'baseUrl'], backendFault],
  [['protocols', 'a2a', 'description'], textFault],
  [['protocols', 'a2a', 'provider', 'organization'], textFault],
  [['protocols', 'a2a', 'provider', 'url'], publicUrlFault],
  [['protocols', 'a2a', 'documentationUrl'], publicUrlFault],
  [['protocols', 'a2a', 'iconUrl'], publicUrlFault],
  [['protocols', 'acp', 'discovery', 'documentationUrl'], publicUrlFault],
  [['payments', 'x402', 'asset'], addressFault],
  [['payments', 'x402', 'payTo'], addressFault],
  [['payments', 'x402', 'rpcUrl'], (text) => (text === '' ? undefined : urlFault(text, false))],
  [['payments', 'x402', 'rpcUrls', '*'], (text) => urlFault(text, false)],
  [['payments', 'x402', 'facilitator', 'url'], (text) => urlFault(text, true)],
  [['payments', 'x402', 'facilitator', 'fallbacks', '*', 'url'], (text) => urlFault(text, true)],
  [['resources', '*', 'name'], textFault],
  [['resources', '*', 'description'], textFault],
];

/** Applies every rule to what the schema accepted, so that one run names more problems. */
export function checkFields(document: unknown, problems: ProblemList): void {
  for (const [steps, rule] of RULES)
    for (const [path, text] of textsAt(document, steps, ''))
      if (problems.sound(path)) {
        const message = rule(text, document);
        if (message !== undefined) problems.add(path, message);
      }
}

function textsAt(
  value: unknown,
  [step, ...rest]: readonly string[],
  path: string,
): readonly (readonly [string, string])[] {
  if (step === undefined) return typeof value === 'string' ? [[path, value]] : [];
  if (value === null || typeof value !== 'object') return [];
  const list = Array.isArray(value);
  return Object.entries(value)
    .filter(([name]) => step === '*' || step === name)
    .flatMap(([name, member]: [string, unknown]) =>
      textsAt(member, rest, memberPath(path, list ? Number(name) : name)),
    );
}

function urlFault(text: string, plain: boolean): string | undefined {
  const reading = readHttpUrl(text, plain);
  if (!reading.ok) return reading.message;
  return hostKind(reading.url) === 'forbidden' ? FORBIDDEN_HOST : undefined;
}

/** This pod only, unless allowed otherwise: the gateway must not be an opening to the network. */
function backendFault(text: string, document: unknown): string | undefined {
  const fault = urlFault(text, true);
  if (fault !== undefined || hostKind(new URL(text)) === 'loopback') return fault;
  const { backend } = document as { readonly backend?: { readonly allowNonLoopback?: unknown } | null };
  if (backend?.allowNonLoopback === true) return undefined;
  return 'must be on loopback (127.0.0.1, [::1], localhost), or set backend.allowNonLoopback: true';
}

function originFault(text: string): string | undefined {
  const origin = text.toLowerCase();
  if (/^https?:\/\//.test(origin) && URL.canParse(origin) && new URL(origin).origin === origin) return undefined;
  return "must be an exact origin such as https://console.example: no path, no trailing slash, no default port, no '*'";
}

/** Mixed case must be the EIP-55 checksum, which catches a mistyped payee. */
function addressFault(text: string): string | undefined {
  if (text === ZERO_ADDRESS) return 'must not be the zero address: the money would be lost';
  if (text === text.toLowerCase() || text === checksumAddress(text)) return undefined;
  return 'must have a valid checksum (EIP-55), or be all lower case; a digit or a letter case is wrong';
}
