/** `acg events`: the audit trail of a running gateway, as a list or as it grows. */

import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { type CommerceEvent, EVENT_TYPES } from '../events/event.ts';
import { BEGINNING, comparePositions } from '../events/page.ts';
import { isObject, type Json } from '../json/json.ts';
import {
  type AccessArgs,
  addAccessOptions,
  type GatewayClient,
  openGatewayClient,
  readList,
} from './gateway-client.ts';
import { faultOf } from './http-get.ts';
import { addFormatOptions, type FormatArgs, members, printList, printStream, type Shape } from './output.ts';
import { defineCommand, oneOf, UnavailableError, wholeNumber } from './program.ts';

/** As many as the API gives without a limit. */
const USUAL_LIMIT = 50;
/** Ten times the events that a store keeps by default. */
const MOST_EVENTS = 100_000;

interface EventsArgs extends AccessArgs, FormatArgs {
  readonly follow?: boolean;
  readonly type?: string;
  readonly resource?: string;
  readonly requestId?: string;
  readonly callId?: string;
  readonly limit?: number;
}

export function eventsCommand(): Command {
  const about = `Lists the events of a running gateway, newest first; with --follow it prints those to come until Ctrl-C, over outages
of the gateway too.`;
  const command = defineCommand('events', about, 'acg events --follow --type payment.settled')
    .option('--follow', 'go on with those to come, oldest first')
    .option('--type <type>', 'only of this type, as payment.settled', (type) => oneOf(type, 'type', EVENT_TYPES))
    .option('--resource <id>', 'only of this resource')
    .option('--request-id <id>', 'only of this request')
    .option('--call-id <id>', 'only of this call, as log and receipts name it')
    .option('--limit <n>', `how many of the past at most; else ${USUAL_LIMIT}, with --follow none`, (text) =>
      wholeNumber(text, 'limit', 1, MOST_EVENTS),
    );
  return addFormatOptions(addAccessOptions(command)).action((args) =>
    args.follow === true ? follow(args) : list(args),
  );
}

async function list(args: EventsArgs): Promise<void> {
  const { limit = USUAL_LIMIT } = args;
  const { entries, nextCursor } = await readList<CommerceEvent>(openGatewayClient(args), pastOf(args, limit));
  const document = { events: entries, ...(nextCursor === undefined ? {} : { nextCursor }) };
  printList({ rows: entries, document, none: 'no events' }, SHAPE, args);
  if (nextCursor !== undefined)
    process.stderr.write(`${entries.length} events, and there are older ones: --limit ${2 * limit} shows more\n`);
}

/** Follows the events until Ctrl-C, or until its output pipe closes. */
async function follow(args: EventsArgs): Promise<void> {
  const ends = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ends.abort());
  const client = openGatewayClient(args);
  const { limit = 0 } = args;
  const position = await newestPosition(client);
  const past = limit === 0 ? [] : (await readList<CommerceEvent>(client, pastOf(args, limit))).entries;
  const print = printStream(SHAPE, args);
  // Events that came between the two readings come with the stream.
  for (const event of past.filter(({ id }) => comparePositions(id, position) <= 0).reverse()) print(event);
  await followEvents<CommerceEvent>(client, position, {
    async take(event) {
      if (isWanted(event, args)) print(event);
      // If the gateway cuts the unread stream, the next one begins behind the printed events.
      if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain', { signal: ends.signal });
    },
    note: (text) => process.stderr.write(`${text}\n`),
    signal: ends.signal,
  });
}

function pastOf({ type, resource, requestId, callId }: EventsArgs, limit: number) {
  const query = {
    ...(type === undefined ? {} : { type }),
    ...(resource === undefined ? {} : { resourceId: resource }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(callId === undefined ? {} : { callId }),
  };
  return { path: '/api/events', query, limit } as const;
}

/** The stream has no filters. */
function isWanted(event: CommerceEvent, { type, resource, requestId, callId }: EventsArgs): boolean {
  return (
    (type === undefined || event.type === type) &&
    (resource === undefined || event.resourceId === resource) &&
    (requestId === undefined || event.requestId === requestId) &&
    (callId === undefined || event.callId === callId)
  );
}

/** `member=value` of each fact of an event. */
function factsOf({ data = {} }: CommerceEvent): string {
  return Object.entries(data)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}

const SHAPE: Shape<CommerceEvent> = {
  table: [
    { title: 'AT', value: ({ at }) => at, width: 24 },
    {
      title: 'TYPE',
      value: ({ type }) => type,
      style: ({ status }) => (status === 'error' ? 'red' : undefined),
      width: 22,
    },
    { title: 'RESOURCE', value: ({ resourceId }) => resourceId, width: 20 },
    { title: 'BY', value: ({ adapter }) => adapter, width: 4 },
    { title: 'REQUEST', value: ({ requestId }) => requestId, width: 36 },
    { title: 'FACTS', value: factsOf },
  ],
  csv: {
    ...members('id', 'at', 'type', 'status', 'resourceId', 'requestId', 'callId', 'adapter', 'durationMs'),
    data: ({ data }) => (data === undefined ? undefined : JSON.stringify(data)),
  },
};

/** Wait before a new connection until the stream sets another one, milliseconds. */
const RETRY_MS = 2_000;

/** An event as a gateway sends it; of a gateway of another release only the id is certain. */
interface FollowedEvent {
  readonly id: string;
}

interface Following<Event> {
  /** Takes an event; the next one is read when this resolves. */
  readonly take: (event: Event) => Promise<void>;
  /** Told once when the stream breaks, when it goes on, and when events are missing. */
  readonly note: (text: string) => void;
  /** Ends the following. */
  readonly signal: AbortSignal;
}

/** The id of the newest event, behind which following begins. Throws what the client throws. */
async function newestPosition(client: GatewayClient): Promise<string> {
  const { entries } = await readList<FollowedEvent>(client, { path: '/api/events', query: {}, limit: 1 });
  return entries[0]?.id ?? BEGINNING;
}

/**
 * Takes every event behind `position`, until the signal. Each connection resumes behind the last
 * event that was taken.
 * @throws UnavailableError when the first connection fails; Error when a token is refused
 */
async function followEvents<Event extends FollowedEvent>(
  client: GatewayClient,
  position: string,
  { take, note, signal }: Following<Event>,
): Promise<void> {
  let last = position;
  let retryMs = RETRY_MS;
  let standing: 'new' | 'open' | 'broken' = 'new';
  while (!signal.aborted) {
    let why = 'the stream ended';
    try {
      const stream = await client.stream(last, signal);
      if (standing === 'broken') note('connected again');
      standing = 'open';
      for await (const frame of framesOf(stream)) {
        if (frame.kind === 'retry') ({ retryMs } = frame);
        else if (frame.kind === 'comment') {
          if (frame.text === 'gap')
            note(`gap: the gateway no longer has all events after ${last}; some are missing here`);
          if (frame.text === 'draining') why = 'the gateway ends';
        } else {
          const event = eventOf<Event>(frame.data);
          if (event === undefined) continue;
          last = event.id;
          await take(event);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (standing === 'new' || (standing === 'broken' && !(error instanceof UnavailableError))) throw error;
      why = faultOf(error);
    }
    if (standing === 'open') note(`${why}; connecting again`);
    standing = 'broken';
    await delay(retryMs, undefined, { signal }).catch(() => undefined);
  }
}

function eventOf<Event extends FollowedEvent>(data: string): Event | undefined {
  try {
    const event = JSON.parse(data) as Json;
    return isObject(event) && typeof event['id'] === 'string' ? (event as unknown as Event) : undefined;
  } catch {
    return undefined;
  }
}

/** Longest line in the stream of a gateway, characters. */
const MAX_FRAME = 1_048_576;

/** A part of a stream. `retryMs`: how long to wait before the next connection. */
type StreamFrame =
  | { readonly kind: 'event'; readonly id: string; readonly data: string }
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'retry'; readonly retryMs: number };

/** The frames in their order, each as soon as it is complete. @throws Error for an endless line */
export async function* framesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<StreamFrame> {
  const decoder = new TextDecoder();
  let rest = '';
  let id = '';
  let data: string[] = [];
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    if (rest.length > MAX_FRAME) throw new Error('its stream has a line without an end');
    for (const line of lines) {
      const { name, value } = fieldOf(line);
      if (line === '' && data.length > 0) {
        yield { kind: 'event', id, data: data.join('\n') };
        data = [];
      } else if (line.startsWith(':')) yield { kind: 'comment', text: value };
      else if (name === 'id') id = value;
      else if (name === 'data') data.push(value);
      else if (name === 'retry' && /^\d{1,6}$/.test(value)) yield { kind: 'retry', retryMs: Number(value) };
    }
  }
}

/** The name of a comment is empty. */
function fieldOf(line: string): { readonly name: string; readonly value: string } {
  const at = line.indexOf(':');
  if (at === -1) return { name: line, value: '' };
  return { name: line.slice(0, at), value: line.slice(at + 1).replace(/^ /, '') };
}
