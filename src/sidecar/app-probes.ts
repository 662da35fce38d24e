/**
 * The merchant's own probes on the management listener. The kubelet dials the address of the pod,
 * where a merchant on 127.0.0.1 does not answer; so its probes are pointed here, and each is
 * repeated from inside the pod as the kubelet would have asked it.
 */

import { isIPv6 } from 'node:net';
import { type Request, type Response, Router } from 'express';
import { allowOnly } from '../server/http/request.ts';
import { clientGone, sendText } from '../server/http/respond.ts';
import { APP_PROBES, type AppProbe, type AppProbeSettings } from './app-probe-settings.ts';
import { kubeletClient, NOT_REPEATED } from './backend-pre-stop.ts';

/**
 * Longest exchange, milliseconds. The kubelet's own timeout is shorter and ends its connection, and
 * the exchange with it.
 */
const EXCHANGE_MS = 60_000;
/** The kubelet reads no more of a body, bytes. */
const MAX_BODY_BYTES = 10_240;
/** Go's client, which the kubelet uses, gives up after so many redirects. */
const MAX_REDIRECTS = 10;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Statuses whose answers have no body. */
const BODYLESS: ReadonlySet<number> = new Set([204, 205, 304]);
/** The library's names for a connection that the other side ended. */
const CUT_CODES: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH']);
const KUBELET = /^kube-probe\/[\w.+-]{1,64}$/;

/** The kubelet that asks: the address that it dialled, and its user agent. */
interface Asker {
  readonly podAddress: string;
  readonly userAgent: string;
}

/** The answer to the kubelet. */
interface Told {
  readonly status: number;
  readonly words: string;
}

/** The answer of the merchant. */
interface Answer {
  readonly status: number;
  readonly location: string | undefined;
}

/**
 * `/app-probe/{liveness,readiness,startup}`, of which only those exist that the merchant has. Its
 * status is passed on, its body never. Requests of one kind that come while one is under way share
 * its answer, so that callers cannot multiply them. `isSold`: whether a target of the merchant is
 * sold; no probe asks for such a target, because it would be delivered unpaid.
 */
export function appProbes(probes: AppProbeSettings, isSold: (target: string) => boolean): Router {
  const router = Router({ strict: true, caseSensitive: true });
  for (const kind of APP_PROBES) {
    const probe = probes[kind];
    if (probe === undefined) continue;
    const path = `/app-probe/${kind}`;
    const ask = shared((asker: Asker, signal) => repeat(probe, asker, isSold, signal));
    // Express would serve a HEAD with the handler of GET, and the merchant would get a GET.
    router.head(path, allowOnly('GET'));
    router.get(path, async function appProbe(req, res) {
      const { status, words } = await ask(askerOf(req), clientGone(res));
      send(res, status, words);
    });
    router.all(path, allowOnly('GET'));
  }
  return router;
}

/** Bypasses the log of failures: a merchant that starts or ends fails many probes. */
function send(res: Response, status: number, words: string): void {
  res.setHeader('cache-control', 'no-store');
  if (BODYLESS.has(status)) {
    if (!res.destroyed) res.writeHead(status).end();
    return;
  }
  sendText(res, status, { 'content-type': 'text/plain; charset=utf-8' }, `${words}\n`);
}

function askerOf({ socket, headers }: Request): Asker {
  const { 'user-agent': userAgent = '' } = headers;
  return {
    podAddress: (socket.localAddress ?? '127.0.0.1').replace(/^::ffff:/, ''),
    userAgent: KUBELET.test(userAgent) ? userAgent : 'kube-probe',
  };
}

/** Runs one at a time; callers that come meanwhile share the run. It ends when all have left. */
function shared<Asked, Result>(
  run: (asked: Asked, signal: AbortSignal) => Promise<Result>,
): (asked: Asked, gone: ReturnType<typeof clientGone>) => Promise<Result> {
  interface Running {
    readonly result: Promise<Result>;
    readonly leaving: AbortController;
    waiting: number;
  }
  let running: Running | undefined;
  const start = (asked: Asked): Running => {
    const leaving = new AbortController();
    const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(EXCHANGE_MS)]);
    const started = { leaving, waiting: 0, result: run(asked, signal) };
    void started.result.finally(() => forget(started));
    return started;
  };
  const forget = (ended: Running): void => {
    if (running === ended) running = undefined;
  };
  return (asked, gone) => {
    running ??= start(asked);
    const joined = running;
    joined.waiting += 1;
    gone.addEventListener('abort', () => {
      joined.waiting -= 1;
      if (joined.waiting > 0) return;
      // The next one asks anew: nothing may be learnt from an exchange that is being given up.
      forget(joined);
      joined.leaving.abort();
    });
    return joined.result;
  };
}

/**
 * Asks as the kubelet does, which follows redirects that stay on the host that it asked, and takes
 * any other for an answer. Here a redirect must also stay on the port: the pod has other listeners
 * on the same host, among them the gateway's own.
 */
async function repeat(
  probe: AppProbe,
  asker: Asker,
  isSold: (target: string) => boolean,
  signal: AbortSignal,
): Promise<Told> {
  const host = `${isIPv6(asker.podAddress) ? `[${asker.podAddress}]` : asker.podAddress}:${probe.port}`;
  const headers = repeatedHeaders(probe, host, asker.userAgent);
  let { target } = probe;
  if (isSold(target)) return { status: 404, words: 'what is sold is no probe' };
  for (let followed = 0; followed <= MAX_REDIRECTS; followed += 1) {
    const answer = await exchange({ ...probe, target }, headers, signal).catch(codeOf);
    if (typeof answer === 'string')
      return signal.aborted
        ? { status: 504, words: 'the merchant did not answer in time' }
        : { status: 502, words: `the merchant could not be asked${answer}` };
    const next = REDIRECTS.has(answer.status) ? sameServer(answer.location, probe, target, host) : undefined;
    if (next === undefined || isSold(next))
      return { status: answer.status, words: `the merchant answered ${answer.status}` };
    target = next;
  }
  return { status: 502, words: `the merchant redirected the probe ${MAX_REDIRECTS} times` };
}

/** The target of a redirect to the server that was asked; undefined when it leads anywhere else. */
function sameServer(
  location: string | undefined,
  { scheme, port }: AppProbe,
  target: string,
  host: string,
): string | undefined {
  const base = `${scheme}://${host}`;
  const next = location === undefined ? null : URL.parse(location, base + target);
  if (next === null || next.username !== '' || next.password !== '') return undefined;
  const here = [base, `${scheme}://127.0.0.1:${port}`].map((url) => new URL(url).origin);
  return here.includes(next.origin) ? next.pathname + next.search : undefined;
}

/** Names and values in turn, with the kubelet's own where a probe has none. */
function repeatedHeaders({ headers }: AppProbe, host: string, userAgent: string): string[] {
  const own = (wanted: string): string | undefined => headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
  const rest = headers.filter(([name, value]) => {
    const lower = name.toLowerCase();
    return lower !== 'host' && !NOT_REPEATED.has(lower) && (lower !== 'accept' || value !== '');
  });
  return [
    ...['Host', own('host') || host],
    ...(own('user-agent') === undefined ? ['User-Agent', userAgent] : []),
    ...(own('accept') === undefined ? ['Accept', '*/*'] : []),
    ...rest.flat(),
  ];
}

/** One GET over its own connection; resolves when the body is over, or enough of it is read. */
async function exchange({ scheme, port, target }: AppProbe, headers: string[], signal: AbortSignal): Promise<Answer> {
  const client = kubeletClient(`${scheme}://127.0.0.1:${port}`);
  try {
    const answer = await client.request({ method: 'GET', path: target, headers, reset: true, signal });
    const { statusCode: status, headers: fields, body } = answer;
    if (status < 200 || status > 599) throw new Error('no status of HTTP');
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes >= MAX_BODY_BYTES) break;
    }
    return { status, location: [fields.location].flat()[0] };
  } finally {
    void client.destroy();
  }
}

/** The system's code of the error, in brackets; empty if there is none. */
function codeOf(cause: unknown): string {
  if (!(cause instanceof Error && 'code' in cause && typeof cause.code === 'string')) return '';
  return ` (${CUT_CODES.has(cause.code) ? 'ECONNRESET' : cause.code})`;
}
