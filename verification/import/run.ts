/** Imports a document, sells every operation through a gateway, and calls each of them. */

import { type ConfigObject, NO_CHAIN } from '../../spec/support/config.ts';
import { openGateway, type TestGateway } from '../../spec/support/gateway.ts';
import { sampleResources } from '../../spec/support/resources.ts';
import type { WrittenResource } from '../../src/config/document/document.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/types.ts';
import { FORM_TYPE } from '../../src/resources/backend-request.ts';
import { templateParameters } from '../../src/resources/url-template.ts';
import { type Import, importOpenApi } from '../../tools/import/import.ts';
import { type Amount, inputFor } from './inputs.ts';
import { type Merchant, startMerchant } from './merchant.ts';

export interface Outcome {
  /** Operations of the document. */
  readonly operations: number;
  readonly imported: number;
  readonly skipped: readonly { readonly operation: string; readonly reason: string }[];
  /** Resources that were called: all, or a part of them. */
  readonly called: number;
  /** Those of them that did not answer 2xx, or whose values arrived otherwise. */
  readonly failures: readonly Failure[];
}

export interface Failure {
  readonly resource: string;
  readonly why: string;
}

type Resources = Readonly<Record<string, WrittenResource>>;

/** Branches of anyOf and oneOf that are tried before a schema counts as one without an input. */
const CHOICES = 8;

export function importDocument(document: JsonObject, ignoreSecurity: boolean): Import {
  return importOpenApi(
    { root: 'openapi.json', files: new Map([['openapi.json', document]]) },
    {
      ...{ price: undefined, currency: 'USDC', ignoreSecurity, basePath: undefined, expose: [] },
      choice: { tags: [], operations: [] },
    },
  );
}

/** `most`: how many resources are called, at equal distances over the document. */
export async function runDocument(
  document: JsonObject,
  { ignoreSecurity, most }: { readonly ignoreSecurity: boolean; readonly most: number },
): Promise<Outcome> {
  const { resources, skipped } = importDocument(document, ignoreSecurity);
  const all = Object.entries(resources);
  const step = Math.max(1, all.length / most);
  const called = all.filter((_entry, index) => Math.floor(index / step) !== Math.floor((index - 1) / step));
  return {
    ...{ operations: all.length + skipped.length, imported: all.length, skipped, called: called.length },
    failures: await failuresOf(document, Object.fromEntries(called)),
  };
}

/** Sells resources of a document and calls each with the least input and with the most. */
export async function failuresOf(document: JsonObject, resources: Resources): Promise<readonly Failure[]> {
  const form = Object.values(resources).some(({ backend }) => backend.contentType === FORM_TYPE);
  const called = Object.values(resources).map(({ backend }) => backend);
  const merchant = await startMerchant(document, { form, called });
  const gateway = await openGateway({
    ...{ backendUrl: merchant.url, chain: NO_CHAIN, facilitator: { mode: 'local' } },
    overrides: { payments: undefined, resources: only(resources) },
  });
  const failures: Failure[] = [];
  try {
    for (const [id, resource] of Object.entries(resources))
      for (const amount of ['least', 'most'] as const) {
        const why = await failure({ gateway, merchant }, id, resource, amount);
        if (why === undefined) continue;
        failures.push({ resource: `${id} (${resource.backend.method} ${resource.backend.path}, ${amount})`, why });
        break;
      }
  } finally {
    await gateway.close();
    await merchant.close();
  }
  return failures;
}

/** Without the sample resources of the local world. */
function only(resources: Resources): ConfigObject {
  return { ...Object.fromEntries(Object.keys(sampleResources('')).map((id) => [id, undefined])), ...resources };
}

/** Why no input of this amount is answered as it should; undefined when one is. */
async function failure(
  { gateway, merchant }: { readonly gateway: TestGateway; readonly merchant: Merchant },
  id: string,
  resource: WrittenResource,
  amount: Amount,
): Promise<string | undefined> {
  let why = '';
  for (let choice = 0; choice < CHOICES; choice += 1) {
    const input = plainInPath(resource.backend.path, inputFor(resource.inputSchema ?? {}, amount, choice));
    const response = await gateway.invoke(id, input);
    const answer = await response.text();
    if (response.ok) {
      const lost = lostValue(input, resource, JSON.parse(answer));
      if (lost === undefined) return undefined;
      why ||= `${lost}; input ${JSON.stringify(input).slice(0, 300)}`;
    } else
      why ||= `${response.status === 502 ? `the merchant: ${merchant.lastRefusal()}` : answer.slice(0, 400)}; input ${JSON.stringify(input).slice(0, 300)}`;
  }
  return why;
}

/** A value of the input that the merchant read otherwise; undefined where all are the same. */
function lostValue(input: JsonObject, { backend }: WrittenResource, read: JsonObject): string | undefined {
  const { query = {}, params = {}, body = null } = read;
  const bindings = backend.inputBindings;
  const inPath = [...backend.path.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name);
  for (const [name, value] of Object.entries(input)) {
    const places: readonly Json[] = inPath.includes(name)
      ? [params]
      : bindings?.query?.includes(name) === true
        ? [query]
        : bindings?.body === name
          ? [{ [name]: body }]
          : [query, body];
    if (!places.some((place) => isObject(place) && Object.hasOwn(place, name) && isRead(value, place[name])))
      if (!isEmpty(value)) return `${name} was read as ${JSON.stringify(places).slice(0, 300)}`;
  }
  return undefined;
}

/** An empty list or object has no pair in a query or a form. */
function isEmpty(value: Json): boolean {
  return typeof value === 'object' && value !== null && Object.values(value).every(isEmpty);
}

/** Whether a value arrived: texts of scalars are compared, defaults may have been added. */
function isRead(sent: Json, read: Json | undefined): boolean {
  if (isEmpty(sent)) return true;
  if (Array.isArray(sent))
    return (
      Array.isArray(read) &&
      read.length === sent.length &&
      sent.every((item, index) => isRead(item as Json, read[index] as Json))
    );
  if (isObject(sent)) return isObject(read) && Object.entries(sent).every(([name, item]) => isRead(item, read[name]));
  return String(sent) === String(read);
}

/** Without the separators that a path value may have only where its schema lists them. */
function plainInPath(path: string, input: JsonObject): JsonObject {
  const plain = templateParameters(path).flatMap((name) => {
    const value = input[name];
    return typeof value === 'string' ? [[name, value.replaceAll(/[/\\;?#%]/g, '_')] as const] : [];
  });
  return { ...input, ...Object.fromEntries(plain) };
}
