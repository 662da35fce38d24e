/** The check of second names: whether the backend serves a sold path under a name that passes. */

import { hash } from 'node:crypto';
import { openRoutes, operationsOf, type RouteSettings, samplePath } from '../../app/open-routes.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import { templatePath } from '../../resources/url-template.ts';
import { bodyText, httpGet } from '../http-get.ts';
import { type Check, type Finding, failed, passed, skipped } from './check.ts';
import { exampleRequest } from './sold-paths.ts';

/** Most requests of one check. */
const MOST_ASKED = 500;
/** Longest time for all of them, milliseconds: less than a check may take. */
const TIME_MS = 5_000;
/** Longest silence within an answer, milliseconds. */
const SILENT_MS = 1_000;
/** Longest body that is compared, bytes. */
const MOST_BYTES = 1_048_576;
/** A segment that no server has. */
const UNKNOWN = 'acg-doctor-looks-for-nothing';

/** Prefixes and suffixes that frameworks give to a path, and parameters that name one. */
const BEFORE = ['/index.php', '/en', '/api', '/v1'];
const BEHIND = ['.json', '.html', '/', '/index.html', '/__data.json', '/_payload.json', ';v=1'];
const FRONTS = ['/', '/index.php'];
const NAMING = ['path', 'url', 'r', 'rest_route'];
const FIXED_QUERIES = ['/index.php?', '/_next/image?w=640&q=75&url=', '/_image?href='];

type Fields = Readonly<Record<string, string>>;

/**
 * Requests names that pass, with GET, as every stranger may. A sold path is requested only where
 * such a name is answered, to compare the answers. Without passthrough there is nothing to look at.
 */
export function checkSecondNames(config: RouteSettings, catalogue: Catalogue): readonly Check[] {
  if (config.backend.passthrough === undefined) return [];
  return [{ name: 'second names', needs: ['backend'], run: () => secondNames(config, catalogue) }];
}

async function secondNames(config: RouteSettings, catalogue: Catalogue): Promise<readonly Finding[]> {
  const { origin, pathPrefix, passthrough } = config.backend;
  const entries = [...(passthrough?.allow ?? []), ...(passthrough?.include ?? [])];
  const routeOf = openRoutes(config, catalogue);
  const { ask, missed } = openAsking(origin);
  const found: Finding[] = [];
  const tried = new Set<string>();
  for (const { method, template, guarded, resource, setting } of operationsOf(config, catalogue)) {
    if (!guarded || method !== 'GET' || resource === undefined) continue;
    const request = exampleRequest(resource, catalogue);
    const target = request?.path ?? samplePath(template);
    if (!target.startsWith(`${pathPrefix}/`)) continue;
    const names = namesOf(target.slice(pathPrefix.length), entries);
    const passing = names.filter((url) => routeOf?.({ method, url }).kind === 'pass');
    if (request === undefined && passing.length > 0)
      found.push(skipped(`${setting} has no example input to compare answers of; add bazaar.example`));
    for (const name of request === undefined ? [] : passing) {
      tried.add(name);
      const answer = await ask(pathPrefix + name);
      // A site that answers every path alike says nothing of this one.
      if (answer === undefined || answer === (await ask(elsewhere(target, template)))) continue;
      const sold = await ask(target, request?.headers);
      if (sold === undefined) missed.add(target);
      if (answer === sold) found.push(leak(setting, name));
    }
  }
  const [first] = missed;
  if (first !== undefined)
    found.push(skipped(`${missed.size} answers could not be compared, such as that of ${first}`));
  return found.length > 0 ? found : [passed(`${tried.size} known second names pass, none to what is sold`)];
}

function leak(setting: string, name: string): Finding {
  return failed(
    `${setting} is also served at ${name}, which passes without payment or mandate`,
    'remove what lets it pass from backend.passthrough.allow or include, add it to exclude, or sell it',
  );
}

/** Known second names of a target, and the entries of the configuration as such names. */
function namesOf(target: string, entries: readonly string[]): readonly string[] {
  const path = templatePath(target);
  const query = target.slice(path.length);
  const last = path.split('/').at(-1) || 'x';
  // `/r/{city}` may be another name of `/reports/{city}`.
  const listed = entries.map((entry) => entry.replaceAll(/\{[^{}]*\}/g, last).replace(/\/$/, ''));
  const inPath = [
    ...[...listed, ...BEFORE].map((before) => before + path),
    ...BEHIND.map((behind) => path + behind),
    ...[...listed, path.toUpperCase(), `/page-data${path}/page-data.json`],
  ];
  const fronts = [...FRONTS, ...listed].flatMap((front) => NAMING.map((name) => `${front}?${name}=`));
  const inQuery = [...fronts, ...FIXED_QUERIES].map((front) => front + encodeURIComponent(path));
  return [
    ...new Set([...inPath.map((name) => name + query), ...inQuery.map((name) => name + query.replace('?', '&'))]),
  ];
}

/** The same target with another word for its last fixed segment. */
function elsewhere(target: string, template: string): string {
  const segments = templatePath(template).split('/');
  const at = segments.findLastIndex((segment) => segment !== '' && !segment.includes('{'));
  return templatePath(target).split('/').with(Math.max(at, 1), UNKNOWN).join('/');
}

/** Asks each target once. Answers are digests of bodies with a 2xx; undefined: none came. */
function openAsking(origin: string) {
  const signal = AbortSignal.timeout(TIME_MS);
  const answers = new Map<string, Promise<string | undefined>>();
  /** Targets whose answer came not at all, not in time, or is too long. */
  const missed = new Set<string>();
  async function answerOf(target: string, headers: Fields): Promise<string | undefined> {
    try {
      if (answers.size >= MOST_ASKED) throw new Error('no request is left');
      const response = await httpGet(origin + target, { headers, signal, silentMs: SILENT_MS });
      const { statusCode } = response;
      if (statusCode >= 200 && statusCode < 300) return hash('sha256', await bodyText(origin, response, MOST_BYTES));
      response.body.destroy();
    } catch {
      missed.add(target);
    }
    return undefined;
  }
  function ask(target: string, headers: Fields = {}): Promise<string | undefined> {
    const key = JSON.stringify([target, headers]);
    const answer = answers.get(key) ?? answerOf(target, headers);
    answers.set(key, answer);
    return answer;
  }
  return { ask, missed };
}
