/** Looks at a merchant's service: its OpenAPI document, or how it answers one request. */

import { bodyText, httpGet } from '../../src/cli/http-get.ts';
import type { WrittenResource } from '../../src/config/document/document.ts';
import { DOLLAR } from '../../src/config/sections/short-form.ts';
import { importOpenApi } from '../import/import.ts';
import { readDocuments } from '../import/source.ts';

/** Longest silence of a service, milliseconds. */
const SILENT_MS = 2_000;
const MOST_PAGE_BYTES = 262_144;
/** Most operations of a first configuration. */
const MOST_SOLD = 20;
/** Where frameworks serve the document, and the page of FastAPI and Swagger UI that names it. */
const DOCUMENTS = ['/openapi.json', '/api-json'];
const PAGES = ['/docs'];

/** What a service says of itself. */
interface FoundDocument {
  readonly url: string;
  /** Its operations with GET, the first of them. */
  readonly resources: Readonly<Record<string, WrittenResource>>;
  /** Operations that the document has besides. */
  readonly more: number;
}

/** Undefined where it serves no document that can be sold from. `price`: undefined for free. */
export async function findDocument(backend: string, price: string | undefined): Promise<FoundDocument | undefined> {
  for (const path of DOCUMENTS) {
    const found = await soldFrom(backend + path, price);
    if (found !== undefined) return found;
  }
  for (const page of PAGES) {
    const named = /url:\s*["']([^"']+)["']/.exec((await textAt(backend + page)) ?? '')?.[1];
    const url = named === undefined ? null : URL.parse(named, backend + page);
    const found = url === null ? undefined : await soldFrom(url.href, price);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The status of one GET; undefined where nothing answers. */
export async function statusOf(backend: string, target: string): Promise<number | undefined> {
  try {
    const response = await httpGet(backend + target, { silentMs: SILENT_MS });
    response.body.destroy();
    return response.statusCode;
  } catch {
    return undefined;
  }
}

async function soldFrom(url: string, price: string | undefined): Promise<FoundDocument | undefined> {
  try {
    const { resources, skipped } = importOpenApi(await readDocuments(url), {
      ...{ price, currency: DOLLAR, basePath: undefined, ignoreSecurity: false, headers: undefined },
      ...{ expose: ['http', 'mcp', 'a2a', 'origin'], choice: { tags: [], operations: [] } },
    });
    const all = Object.entries(resources);
    const sold = all.filter(([, { backend }]) => backend.method === 'GET').slice(0, MOST_SOLD);
    if (sold.length === 0) return undefined;
    return { url, resources: Object.fromEntries(sold), more: all.length + skipped.length - sold.length };
  } catch {
    // There is none, or none that can be read.
    return undefined;
  }
}

async function textAt(url: string): Promise<string | undefined> {
  try {
    const response = await httpGet(url, { silentMs: SILENT_MS });
    if (response.statusCode === 200) return await bodyText(url, response, MOST_PAGE_BYTES);
    response.body.destroy();
  } catch {
    // A service that is away has no document.
  }
  return undefined;
}
