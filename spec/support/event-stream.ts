/** A client of the event stream that parses frames and can be cut. */

import { once } from 'node:events';
import http from 'node:http';
import { inTime } from '../../src/time/time.ts';

/** A stream of events as a client sees it. */
export interface StreamClient {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** Everything that came so far. */
  text(): string;
  /** Ids of the events that came so far, in order. One whose frame is not complete has not come. */
  ids(): readonly string[];
  /**
   * Resolves once `so` holds of what came. @throws Error when the stream ended before, or when
   * nothing came for a minute
   */
  until(so: (client: StreamClient) => boolean, what: string): Promise<void>;
  /** Resolves when the stream has ended, for whatever reason. */
  readonly ended: Promise<void>;
  /** Destroys the connection. */
  leave(): void;
}

/**
 * Heartbeats come every 15 s: a stream that is silent for longer has stalled, however busy the
 * machine is.
 */
const PATIENCE_MS = 60_000;
const ID_LINE = /^id: (.*)$/m;

/** Opens a stream; an answer that is none is read the same way. `lastEventId`: where to go on. */
export async function readStream(
  url: string,
  { token, lastEventId }: { readonly token?: string; readonly lastEventId?: string } = {},
): Promise<StreamClient> {
  const request = http.get(`${url}/api/events/stream`, {
    agent: false,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  request.on('error', () => undefined);
  response.on('error', () => undefined);
  const chunks: string[] = [];
  let rest = '';
  const ids: string[] = [];
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    chunks.push(chunk);
    const frames = (rest + chunk).split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      const id = ID_LINE.exec(frame)?.[1];
      if (id !== undefined) ids.push(id);
    }
  });
  let over = false;
  const ended = new Promise<void>((resolve) => {
    response.once('close', () => {
      over = true;
      resolve();
    });
  });
  const text = () => chunks.join('');
  const client: StreamClient = {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text,
    ids: () => ids,
    async until(so, what) {
      while (!so(client)) {
        if (over) throw new Error(`the stream ended before ${what}\n${text().slice(-500)}`);
        const next = Promise.race([once(response, 'data'), ended]).catch(() => undefined);
        await inTime(next, PATIENCE_MS, () => {
          throw new Error(`no ${what}\n${text().slice(-500)}`);
        });
      }
    },
    ended,
    leave: () => void request.destroy(),
  };
  return client;
}
