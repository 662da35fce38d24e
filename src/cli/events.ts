/** `acg events`: the audit trail of a running gateway, as a list or as it grows. */

import { once } from 'node:events';
import type { Command } from 'commander';
import { type CommerceEvent, EVENT_TYPES } from '../events/event.ts';
import { comparePositions } from '../events/position.ts';
import { followEvents, newestPosition } from './follow-events.ts';
import { type AccessArgs, addAccessOptions, openGatewayClient } from './gateway-client.ts';
import { oneOf, wholeNumber } from './option-values.ts';
import { addFormatOptions, type FormatArgs, members, printList, printStream, type Shape } from './output.ts';
import { defineCommand } from './program.ts';
import { readList } from './read-list.ts';

/** As many as the API gives without a limit. */
const USUAL_LIMIT = 50;
/** As many as a store keeps unless it is told otherwise, ten times over. */
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

/** Ends with Ctrl-C, or with the pipe that it prints to. */
async function follow(args: EventsArgs): Promise<void> {
  const ends = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ends.abort());
  const client = openGatewayClient(args);
  const { limit = 0 } = args;
  const position = await newestPosition(client);
  const past = limit === 0 ? [] : (await readList<CommerceEvent>(client, pastOf(args, limit))).entries;
  const print = printStream(SHAPE, args);
  // What came between the two readings comes with the stream.
  for (const event of past.filter(({ id }) => comparePositions(id, position) <= 0).reverse()) print(event);
  await followEvents<CommerceEvent>(client, position, {
    async take(event) {
      if (isWanted(event, args)) print(event);
      // The gateway cuts a stream that is not read, and it goes on behind what was printed.
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
