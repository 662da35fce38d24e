/** What is called: an address in place, an invoke URL, or a resource of a gateway by its name. */

import { readFileSync } from 'node:fs';
import { UsageError } from '../../src/cli/program.ts';
import { a2aChannel } from './a2a.ts';
import { type Channel, jsonOf } from './channel.ts';
import { httpChannel } from './http.ts';

const INVOKE = /^(.*)\/api\/resources\/([^/]+)\/invoke$/;
/** They have no body. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** The part of the command line that says what is called. */
export interface TargetOptions {
  readonly resource?: string;
  readonly data?: string;
  readonly method?: string;
  readonly header?: readonly string[];
  readonly mandate?: string;
  readonly mcp?: true;
  readonly a2a?: true;
}

/** @throws UsageError for what does not fit together; errors of files that are named */
export async function openChannel(url: string, input: string | undefined, options: TargetOptions): Promise<Channel> {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
    throw new UsageError(`the URL must begin with http:// or https://, not ${url}`);
  if (input !== undefined && options.data !== undefined) throw new UsageError('give the input or --data, not both');
  if (options.mcp && options.a2a) throw new UsageError('give --mcp or --a2a, not both');
  const body = options.data === undefined ? input : readData(options.data);
  return options.mcp || options.a2a ? byName(parsed, body, options) : overHttp(parsed, body, options);
}

function overHttp(url: URL, body: Uint8Array | string | undefined, options: TargetOptions): Channel {
  const { resource } = options;
  if (resource !== undefined) url.pathname = `${base(url)}/api/resources/${encodeURIComponent(resource)}/invoke`;
  const isInvoke = INVOKE.test(url.pathname);
  const method = (options.method ?? (body !== undefined || isInvoke ? 'POST' : 'GET')).toUpperCase();
  if (typeof body === 'string') asJson(body);
  if (BODILESS.has(method) && body !== undefined)
    throw new UsageError(`a ${method} has no body: put the input into the URL, or give another --method`);
  const sent = body ?? (isInvoke ? '{}' : undefined);
  return httpChannel({
    url: url.href,
    method,
    headers: { ...(sent === undefined ? {} : { 'content-type': 'application/json' }), ...headersOf(options) },
    body: typeof sent === 'string' ? Buffer.from(sent) : sent,
  });
}

async function byName(url: URL, body: Uint8Array | string | undefined, options: TargetOptions): Promise<Channel> {
  const [, prefix, named] = INVOKE.exec(url.pathname) ?? [];
  const resource = options.resource ?? (named === undefined ? undefined : decodeURIComponent(named));
  if (resource === undefined) throw new UsageError('--mcp and --a2a need --resource: the name of the tool or skill');
  if (options.method !== undefined) throw new UsageError('--method is for HTTP; leave it out');
  const isGateway = prefix !== undefined || url.pathname === '/';
  if (isGateway) url.pathname = `${prefix ?? ''}/${options.mcp ? 'mcp' : 'a2a'}`;
  const input = asJson(body === undefined ? '{}' : Buffer.from(body).toString());
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw new UsageError('the input must be a JSON object');
  const call = { url: url.href, resource, input: { ...input }, headers: headersOf(options) };
  if (options.a2a) return a2aChannel(call);
  const { mcpChannel } = await import('./mcp.ts');
  return mcpChannel(call);
}

function base({ pathname }: URL): string {
  return pathname.replace(/\/+$/, '');
}

function readData(name: string): Uint8Array {
  return readFileSync(name === '-' ? process.stdin.fd : name);
}

/** @throws UsageError with the text: quotes are easily lost in a shell */
function asJson(text: string): unknown {
  const value = jsonOf(text);
  if (value !== undefined) return value;
  throw new UsageError(`the input must be JSON, not ${text}`);
}

/** Headers of every request. @throws UsageError */
function headersOf({ header = [], mandate }: TargetOptions): Readonly<Record<string, string>> {
  const headers = header.map((line) => {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new UsageError('--header must be "Name: value"');
    return [name.toLowerCase(), value] as const;
  });
  if (mandate !== undefined) headers.push(['agent-authorization', readFileSync(mandate, 'utf8').trim()]);
  return Object.fromEntries(headers);
}
