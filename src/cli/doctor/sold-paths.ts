/** The check of sold paths: whether the backend has what the configuration sells. */

import type { GatewayConfig } from '../../config/document/config.ts';
import { isObject } from '../../json/json.ts';
import { memberPath } from '../../problems/problem.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import { exampleInput } from '../../resources/listing.ts';
import type { ResourceConfig } from '../../resources/settings.ts';
import { httpGet } from '../http-get.ts';
import { type Check, type Finding, passed, skipped, warned } from './check.ts';

/** Most requests of one check. */
const MOST_ASKED = 100;
/** Longest time for all of them, milliseconds: less than a check may take. */
const TIME_MS = 5_000;
/** Longest silence before an answer, milliseconds. */
const SILENT_MS = 2_000;
const FIRST_ERROR = 400;

/** Requests operations with GET once, with example inputs; other methods may change something. */
export function checkSoldPaths(
  { backend, resources }: Pick<GatewayConfig, 'backend' | 'resources'>,
  catalogue: Catalogue,
): readonly Check[] {
  const safe = resources.filter(({ backend: { method } }) => method === 'GET').slice(0, MOST_ASKED);
  if (safe.length === 0) return [];
  return [{ name: 'sold paths', needs: ['backend'], run: () => soldPaths(backend.origin, safe, catalogue) }];
}

async function soldPaths(
  origin: string,
  resources: readonly ResourceConfig[],
  catalogue: Catalogue,
): Promise<readonly Finding[]> {
  const signal = AbortSignal.timeout(TIME_MS);
  const found = await Promise.all(
    resources.map(async (resource): Promise<Finding | undefined> => {
      const at = memberPath('resources', resource.id);
      const request = exampleRequest(resource, catalogue);
      if (request === undefined)
        return skipped(`${at} has no example input to ask for; add examples to its inputSchema`);
      const asked = `GET ${request.path}`;
      try {
        const answer = await httpGet(origin + request.path, { headers: request.headers, signal, silentMs: SILENT_MS });
        answer.body.destroy();
        const { statusCode: status } = answer;
        if (status < FIRST_ERROR || resource.backend.relayStatuses.sold.includes(status)) return undefined;
        return warned(`${asked} of your service answers ${status}`, `correct ${at}, or its example input`);
      } catch {
        return warned(`${asked} of your service does not answer`, `look at the service, or correct ${at}`);
      }
    }),
  );
  const told = found.filter((finding) => finding !== undefined);
  return told.length > 0 ? told : [passed(`${resources.length} of your service answer`)];
}

/** A request of a valid input; undefined where the configuration has none. */
export function exampleRequest({ id, bazaar, inputSchema = {} }: ResourceConfig, { byId }: Catalogue) {
  const { properties } = inputSchema;
  const valued = Object.entries(isObject(properties) ? properties : {}).map(([name, schema]) => [
    name,
    isObject(schema) && Array.isArray(schema['enum']) ? { examples: schema['enum'], ...schema } : schema,
  ]);
  const compiled = byId.get(id);
  const input = bazaar?.example ?? exampleInput({ ...inputSchema, properties: Object.fromEntries(valued) }, compiled);
  const prepared = input === undefined ? undefined : compiled?.prepare(input, undefined);
  return prepared?.ok === true ? prepared.request : undefined;
}
