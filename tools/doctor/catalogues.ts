/**
 * The checks of catalogues: which listing would refuse which resource of the running gateway. The
 * rules are those of the listings' own packages. A 402 is asked for with GET, and never paid.
 */

import {
  checkL2ForOpenAPI,
  checkL4ForOpenAPI,
  getOpenAPI,
  getWarningsForL2,
  getWarningsForL4,
  getWarningsForOpenAPI,
  isOpenApiParseFailure,
  VALIDATION_CODES as OF_402,
  AUDIT_CODES as OF_DOCUMENT,
  validatePaymentRequiredDetailed,
} from '@agentcash/discovery';
import {
  type DiscoveryExtension,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import { validate as describedFaults } from 'mppx/discovery';
import { type Check, type Finding, passed, skipped, warned } from '../../src/cli/doctor/check.ts';
import { exampleRequest } from '../../src/cli/doctor/sold-paths.ts';
import { localAddress } from '../../src/cli/gateway-client.ts';
import { bodyText, httpGet } from '../../src/cli/http-get.ts';
import type { GatewayConfig } from '../../src/config/document/config.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { invokeUrl } from '../../src/payments/x402/wire/challenge.ts';
import { memberPath } from '../../src/problems/problem.ts';
import type { Catalogue } from '../../src/resources/catalogue.ts';
import { PUBLISHED } from '../../src/resources/published.ts';
import type { ResourceConfig } from '../../src/resources/settings.ts';
import { pathShape, templateParameters } from '../../src/resources/url-template.ts';

/** Most resources whose 402 is asked for, the first of the configuration. */
const MOST_ASKED = 100;
/** Longest silence of the gateway, milliseconds. */
const SILENT_MS = 3_000;
/** Longest document, bytes: a thousand resources with a page of schema each. */
const MAX_BYTES = 16_777_216;

/** A fault that a listing finds in a resource. */
interface Objection {
  readonly text: string;
  readonly remedy: string;
  /** Absent: it refuses the resource. */
  readonly lists?: true;
}

/** The answers of the gateway to the requests of catalogues. */
interface Answers {
  /** By resource in the order of the configuration; undefined: its price was not asked for. */
  readonly offers: ReadonlyMap<ResourceConfig, { readonly required: JsonObject } | Objection | undefined>;
  readonly openApi: JsonObject | undefined;
  readonly hasLlms: boolean;
}

/** Each listing is a check, with a finding for each resource that it objects to. */
export function checkCatalogues(config: GatewayConfig, catalogue: Catalogue): readonly Check[] {
  const sold = config.resources.filter(
    ({ pricing, exposedVia: via }) => pricing.type !== 'free' && (via.includes('http') || via.includes('origin')),
  );
  const first = sold.slice(0, MOST_ASKED);
  let asked: Promise<Answers> | undefined;
  const check = (name: string, judge: (answers: Answers) => Promise<readonly Finding[]>): Check => ({
    name,
    needs: ['running gateway'],
    async run() {
      if (sold.length === 0) return skipped('no resource with a price is sold over http or in place');
      asked ??= ask(config, catalogue, first);
      const findings = await judge(await asked);
      if (first.length === sold.length) return findings;
      return [...findings, skipped(`resources behind the first ${MOST_ASKED} with a price are not looked at`)];
    },
  });
  return [
    check('bazaar', async (answers) => ofBazaar(config, answers)),
    check('agentcash, x402scan', (answers) => ofAgentcash(config, answers)),
    check('mpp directories', async (answers) => ofMpp(config, answers)),
  ];
}

async function ask(config: GatewayConfig, catalogue: Catalogue, sold: readonly ResourceConfig[]): Promise<Answers> {
  const { url, host } = localAddress(config);
  const headers = { accept: 'application/json', ...(host === undefined ? {} : { host }) };
  const get = async (path: string) => {
    const answer = await httpGet(url + path, { headers, silentMs: SILENT_MS });
    return { ...answer, text: await bodyText(url, answer, MAX_BYTES) };
  };
  const offerOf = async (resource: ResourceConfig) => {
    const path = addressOf(resource, config, catalogue);
    if (path === undefined) return undefined;
    const { statusCode, headers: fields } = await get(path);
    if (statusCode !== 402)
      return { text: `GET ${path} is answered ${statusCode}, not 402`, remedy: 'see running gateway, and GET /ready' };
    const required = jsonOf(Buffer.from(String(fields['payment-required'] ?? ''), 'base64').toString());
    return required === undefined
      ? { text: 'its 402 has no room for the header PAYMENT-REQUIRED', remedy: shorten(resource) }
      : { required };
  };
  const [openApi, llms, ...offers] = await Promise.all([
    get(PUBLISHED.openapi),
    get(PUBLISHED.llms),
    ...sold.map(async (resource) => [resource, await offerOf(resource)] as const),
  ]);
  return {
    offers: new Map(offers),
    openApi: openApi.statusCode === 200 ? jsonOf(openApi.text) : undefined,
    hasLlms: llms.statusCode === 200,
  };
}

/** Undefined: only another method, or an unknown input, asks for its price. */
function addressOf(resource: ResourceConfig, { backend }: GatewayConfig, catalogue: Catalogue): string | undefined {
  if (resource.exposedVia.includes('http')) return invokeUrl('', resource.id);
  if (resource.backend.method !== 'GET') return undefined;
  return exampleRequest(resource, catalogue)?.path.slice(backend.pathPrefix.length);
}

function jsonOf(text: string): JsonObject | undefined {
  try {
    const read = JSON.parse(text) as Json;
    return isObject(read) ? read : undefined;
  } catch {
    return undefined;
  }
}

/** Bazaars of facilitators, such as Coinbase's, read the parts of a 402 that a payment echoes. */
function ofBazaar({ x402 }: GatewayConfig, { offers }: Answers): readonly Finding[] {
  const told = judged(offers, (offer, resource) => {
    const { bazaar: form } = isObject(offer['extensions']) ? offer['extensions'] : {};
    if (!isObject(form)) return [{ text: 'its 402 does not say how it is called', remedy: exampleFor(resource) }];
    const results = [
      validateDiscoveryExtensionSpec(form),
      validateDiscoveryExtension(form as unknown as DiscoveryExtension),
    ];
    const remedy = `correct ${memberPath('resources', resource.id)}.bazaar`;
    return results.flatMap(({ errors = [] }) => errors.map((text) => ({ text, remedy })));
  });
  if (x402?.facilitator.mode !== 'local') return told;
  const remedy = 'set payments.x402.facilitator to a remote one that keeps a Bazaar';
  return [
    ...told.filter(({ status }) => status !== 'PASS'),
    warned('would list nothing: it lists what its facilitator settles, and this gateway settles itself', remedy),
  ];
}

/** The rules of agentcash and x402scan: the document, its routes, and the 402 of each. */
async function ofAgentcash(config: GatewayConfig, { offers, openApi }: Answers): Promise<readonly Finding[]> {
  if (openApi === undefined) return [WITHOUT_DOCUMENT];
  // The package reads from a URL alone, and sends no Host that `server.allowedHosts` asks for.
  const url = `data:application/json;base64,${Buffer.from(JSON.stringify(openApi)).toString('base64')}`;
  const source = (await getOpenAPI('', {}, undefined, url)).unwrapOr(null);
  if (source === null || isOpenApiParseFailure(source))
    return getWarningsForOpenAPI(source).map(({ message, hint }) =>
      warned(`would list nothing: ${clause(message).replace(url, PUBLISHED.openapi)}`, clause(hint ?? LOOK)),
    );
  const all = checkL2ForOpenAPI(source);
  const general = [
    ...getWarningsForOpenAPI(source),
    ...getWarningsForL2(all).filter(({ path }) => path === undefined),
    ...getWarningsForL4(checkL4ForOpenAPI(source)),
  ].filter(({ severity }) => severity !== 'info');
  const prefix = new URL(config.merchant.publicBaseUrl).pathname.replace(/\/$/, '');
  const told = judged(offers, (offer, resource) => {
    const own = operationsOf(resource, config).map(({ method, path }) => `${method} ${pathShape(prefix + path)}`);
    const routes = all.routes.filter(({ method, path }) => own.includes(`${method} ${pathShape(path)}`));
    if (routes.length === 0) return [NOT_DESCRIBED];
    const faults = [...validatePaymentRequiredDetailed(offer).issues, ...getWarningsForL2({ ...all, routes })];
    return faults
      .filter(({ severity }) => severity !== 'info')
      .map(({ code, severity, message, hint = LOOK }) =>
        objection(message, severity, REMEDIES[code]?.(resource) ?? hint),
      );
  });
  return [...told, ...general.map(({ message, hint = LOOK }) => warned(clause(message), clause(hint)))];
}

/** The rules of `mppx validate` for documents; its rules for a 402 pass over those of x402. */
function ofMpp(config: GatewayConfig, { offers, openApi, hasLlms }: Answers): readonly Finding[] {
  if (openApi === undefined) return [WITHOUT_DOCUMENT];
  const paths = Object.entries(isObject(openApi['paths']) ? openApi['paths'] : {});
  const objectionsTo = (_offer: JsonObject, resource: ResourceConfig): readonly Objection[] => {
    const operations = operationsOf(resource, config);
    const own = paths.filter(([name, item]) =>
      operations.some(
        ({ method, path }) => pathShape(path) === pathShape(name) && isObject(item) && method.toLowerCase() in item,
      ),
    );
    if (own.length === 0) return [NOT_DESCRIBED];
    const faults = describedFaults({ ...openApi, paths: Object.fromEntries(own) });
    return [
      ...faults.map(({ message, path, severity }) => objection(`${path}: ${message}`, severity, LOOK)),
      // Its requests fill a path with examples and defaults alone.
      ...(resource.bazaar === undefined && hasBarePath(resource)
        ? [{ text: 'it has no values for the path of its address', remedy: exampleFor(resource) }]
        : []),
    ];
  };
  const told = judged(offers, objectionsTo, 'would list as x402, without an MPP challenge,');
  return hasLlms
    ? told
    : [...told, warned(`suggests a text for models: there is no ${PUBLISHED.llms}`, 'add llms to publish')];
}

/** Whether the path of its address has a parameter without a default. */
function hasBarePath({ address = '', inputSchema = {} }: ResourceConfig): boolean {
  const properties = isObject(inputSchema['properties']) ? inputSchema['properties'] : {};
  return templateParameters(address).some((name) => {
    const schema = properties[name];
    return !isObject(schema) || schema['default'] === undefined;
  });
}

const LOOK = 'look at what it names';
const ADD_OPENAPI = 'add openapi to publish';
const WITHOUT_DOCUMENT = warned(`would list nothing: there is no ${PUBLISHED.openapi}`, ADD_OPENAPI);
const NOT_DESCRIBED: Objection = { text: `${PUBLISHED.openapi} does not have it`, remedy: ADD_OPENAPI };

/** The settings behind objections, by their codes; the others have hints of the package. */
const REMEDIES: Readonly<Record<string, (resource: ResourceConfig) => string>> = {
  [OF_402.SCHEMA_INPUT_MISSING]: exampleFor,
  [OF_402.SCHEMA_OUTPUT_MISSING]: (resource) =>
    resource.bazaar === undefined || (resource.bazaar.output ?? resource.outputSchema) !== undefined
      ? exampleFor(resource)
      : `set ${memberPath('resources', resource.id)}.outputSchema`,
  [OF_DOCUMENT.L2_CURRENCY_INVALID]: inCurrency,
  // A price in another currency is no price to the package.
  [OF_DOCUMENT.L2_PRICE_MISSING_ON_PAID]: inCurrency,
};

function exampleFor(resource: ResourceConfig): string {
  const { id, bazaar } = resource;
  return bazaar === undefined ? `set ${memberPath('resources', id)}.bazaar.example` : shorten(resource);
}

function shorten({ id }: ResourceConfig): string {
  const at = memberPath('resources', id);
  return `shorten ${at}.bazaar, its schemas or its description, or raise server.maxHeadBytes`;
}

function inCurrency({ pricing }: ResourceConfig): string {
  const name = pricing.type === 'free' ? '' : pricing.currency;
  return `price it in the canonical USDC of a public network, which is shown as USD: ${name} is no currency of three letters`;
}

/** The operations of a resource in the OpenAPI document. */
function operationsOf({ id, address, exposedVia, backend }: ResourceConfig, { merchant }: GatewayConfig) {
  return [
    ...(exposedVia.includes('http') ? [{ method: 'POST', path: invokeUrl('', id) }] : []),
    ...(address === undefined ? [] : [{ method: backend.method, path: address.slice(merchant.publicBaseUrl.length) }]),
  ];
}

/** A finding for each resource with objections, and how many are listed. */
function judged(
  offers: Answers['offers'],
  objectionsTo: (offer: JsonObject, resource: ResourceConfig) => readonly Objection[],
  verdict = 'would list',
): readonly Finding[] {
  let listed = 0;
  const told = [...offers].flatMap(([resource, offer]): readonly Finding[] => {
    const at = memberPath('resources', resource.id);
    if (offer === undefined)
      return [skipped(`${at} is sold in place alone: its 402 is asked for by GET and with bazaar.example only`)];
    const objections = 'text' in offer ? [offer] : objectionsTo(offer.required, resource);
    const refuses = objections.some(({ lists }) => lists !== true);
    if (!refuses) listed += 1;
    if (objections.length === 0) return [];
    const texts = objections.map(({ text }) => text).join(', ');
    const remedies = [...new Set(objections.map(({ remedy }) => remedy))].join('; ');
    return [warned(refuses ? `would refuse ${at}: ${texts}` : `would list ${at}, but: ${texts}`, remedies)];
  });
  return listed === 0 ? told : [...told, passed(`${verdict} ${listed} of ${offers.size}`)];
}

/** A listing refuses for errors alone. */
function objection(text: string, severity: string, remedy: string): Objection {
  const fault = { text: clause(text), remedy: clause(remedy) };
  return severity === 'error' ? fault : { ...fault, lists: true };
}

/** A sentence of a package, as a part of one. */
function clause(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
