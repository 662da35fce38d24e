/** Writes resources as a section of a configuration: alone, or into one that exists. */

import { existsSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { type Document, isMap, parseDocument, stringify } from 'yaml';
import { UsageError } from '../../src/cli/program.ts';
import type { WrittenResource } from '../../src/config/document/document.ts';
import { MAX_CONFIG_BYTES, MAX_YAML_BYTES, readBoundedFile } from '../../src/config/document/parse.ts';
import { isObject, type JsonObject } from '../../src/json/json.ts';

type Resources = Readonly<Record<string, WrittenResource>>;

/** What a configuration that exists says already. */
export interface Existing {
  readonly ids: readonly string[];
  /** What its prices are in; undefined without payments. */
  readonly currency: string | undefined;
  /** Names of the headers that it sends to the backend. */
  readonly headers: readonly string[];
  /** Where its resources are sold, each channel once; empty without a resource. */
  readonly channels: readonly string[];
  /** Whether it has sealing keys, so that answers can wait for their payment. */
  readonly seals: boolean;
}

/** The section `resources` as YAML. Aliases are no part of a configuration. */
export function yamlSection(resources: Resources): string {
  return stringify({ resources }, YAML);
}

const YAML = { aliasDuplicateObjects: false, lineWidth: 120, version: '1.2' } as const;

/** @throws UsageError when the file is no configuration that can be read */
export function existing(path: string): Existing {
  const content = isJson(path) ? jsonConfiguration(path) : contentOf(yamlConfiguration(path));
  const payments = isObject(content['payments']) ? content['payments'] : {};
  const [entry] = [payments['x402']].flat();
  const { currency, assetName } = isObject(entry) ? entry : {};
  const named = currency ?? assetName;
  const { headers } = isObject(content['backend']) ? content['backend'] : {};
  const resources = isObject(content['resources']) ? content['resources'] : {};
  const { sealing } = isObject(content['storage']) ? content['storage'] : {};
  const keys = isObject(sealing) ? sealing['keys'] : undefined;
  return {
    ids: Object.keys(resources),
    channels: [...new Set(Object.values(resources).flatMap((one) => channelsOf(isObject(one) ? one : {})))],
    currency: typeof named === 'string' ? named : undefined,
    headers: Object.keys(isObject(headers) ? headers : {}),
    seals: Array.isArray(keys) && keys.length > 0,
  };
}

/** Where a resource is sold; one that does not say so, over HTTP. */
export function channelsOf({ expose }: { readonly expose?: unknown }): readonly string[] {
  return Array.isArray(expose) ? expose.map(String) : ['http'];
}

/** A new file, JSON when its name says so. @throws UsageError when it exists and is not forced */
export function writeNew(path: string, resources: Resources, force: boolean): void {
  if (!force && existsSync(path)) throw new UsageError(`${path} exists; --force replaces it, --into adds to it`);
  write(path, isJson(path) ? `${JSON.stringify({ resources }, null, 2)}\n` : yamlSection(resources));
}

/**
 * Adds resources to a configuration, whose comments stay.
 * @param removed ids of its resources that go
 * @throws UsageError when it has one of the ids and is not forced
 */
export function writeInto(path: string, resources: Resources, force: boolean, removed: readonly string[] = []): void {
  const { ids } = existing(path);
  const twice = Object.keys(resources).filter((id) => ids.includes(id) && !removed.includes(id));
  if (!force && twice.length > 0)
    throw new UsageError(
      `${path} has ${twice.slice(0, 5).join(', ')}${twice.length > 5 ? ' …' : ''} already; --force replaces them`,
    );
  if (isJson(path)) {
    const content = jsonConfiguration(path);
    const before = Object.entries(isObject(content['resources']) ? content['resources'] : {});
    const kept = Object.fromEntries(before.filter(([id]) => !removed.includes(id)));
    write(path, `${JSON.stringify({ ...content, resources: { ...kept, ...resources } }, null, 2)}\n`);
    return;
  }
  const document = yamlConfiguration(path);
  if (!isMap(document.get('resources'))) document.set('resources', document.createNode({}));
  for (const id of removed) document.deleteIn(['resources', id]);
  for (const [id, resource] of Object.entries(resources))
    document.setIn(['resources', id], document.createNode(resource, { aliasDuplicateObjects: false }));
  write(path, document.toString(YAML));
}

function jsonConfiguration(path: string): JsonObject {
  try {
    const content = JSON.parse(textOf(path));
    if (isObject(content)) return content;
  } catch (error) {
    if (error instanceof UsageError) throw error;
  }
  throw new UsageError(`${path} is no configuration: it is no JSON object`);
}

function yamlConfiguration(path: string): Document {
  const document = parseDocument(textOf(path), { version: '1.2', schema: 'core', logLevel: 'error' });
  if (document.errors.length > 0 || !isMap(document.contents))
    throw new UsageError(`${path} is no configuration: it is no mapping in well-formed YAML`);
  return document;
}

function contentOf(document: Document): JsonObject {
  return document.toJS({ maxAliasCount: 0 });
}

function textOf(path: string): string {
  return readBoundedFile(path, MAX_CONFIG_BYTES, (message) => new UsageError(`${path} ${message}`));
}

function isJson(path: string): boolean {
  return path.endsWith('.json');
}

/** All or nothing, with the mode that the file had. */
function write(path: string, text: string): void {
  const bytes = Buffer.byteLength(text);
  const most = isJson(path) ? MAX_CONFIG_BYTES : MAX_YAML_BYTES;
  if (bytes > most)
    throw new UsageError(
      `${path} would have ${bytes} bytes, and a configuration in ${isJson(path) ? 'JSON' : 'YAML'} has at most ${most}: ${isJson(path) ? 'choose fewer operations' : 'write JSON (a name that ends in .json), or choose fewer operations'}`,
    );
  const mode = existsSync(path) ? statSync(path).mode & 0o777 : 0o644;
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, text, { mode });
  renameSync(temporary, path);
}
