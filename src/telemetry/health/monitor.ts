/** Looks at the components in the background, for `/ready` and the discovery document. */

import { Router } from 'express';
import type { IssuerTrust } from '../../mandates/ap2/issuers.ts';
import type { PaymentRail } from '../../payments/x402/wire/types.ts';
import { allowOnly } from '../../server/http/request.ts';
import { sendJson } from '../../server/http/respond.ts';
import type { Store } from '../../store/documents/store.ts';
import { inTime } from '../../time/time.ts';

/** Between two rounds of looks, milliseconds. */
const ROUND_MS = 2_000;
/** Longest wait for one look, milliseconds. */
const LOOK_DEADLINE_MS = 1_000;
/** The name of the check at `/routing`. */
const ROUTING = 'routing';
const BACKEND = { name: 'backend' } as const;
/** The result of a look that misses its deadline. */
const LATE = { found: 'unreachable', cause: 'no answer in time' } as const;

/** A component that is looked at in the background. `cause`: why it is not ok. */
interface Watched {
  readonly name: string;
  readonly kind: 'store' | 'payment-provider' | 'authorization-provider';
  readonly look: () => Promise<{ readonly found: Observation; readonly cause?: string }>;
}

/** The body of `/ready` (specification 4). */
export interface Readiness {
  readonly ready: boolean;
  readonly store: ReadinessCheck;
  /** Never `fail`: kept answers, and calls without the backend, are still served. */
  readonly backend: ReadinessCheck;
  readonly adapters: readonly ReadinessCheck[];
  readonly paymentProviders: readonly ReadinessCheck[];
  readonly authorizationProviders: readonly ReadinessCheck[];
}

/** An adapter's health as the discovery document shows it; `checkedAt` ISO 8601. */
interface AdapterHealth {
  readonly status: ReadinessCheck['status'];
  readonly checkedAt: string;
}

/** Answers probes from memory, however slow the components are. */
export interface Monitor {
  /** Waits for the first round, at most 1 s; after it resolves at once. */
  readiness(): Promise<Readiness>;
  /**
   * Whether requests may be routed here: the store is there, no drain has begun, and no fence holds
   * the calls. Providers that only some calls need do not count: a facilitator that is away would
   * take every replica, and all free calls, out of service. Waits for the first look at the store,
   * at most 1 s.
   */
  routing(): Promise<ReadinessCheck>;
  /** Enabled adapters as the discovery document shows them. */
  adapterHealth(): Readonly<Record<string, AdapterHealth>>;
  /** Ends the looks. `onChange` is not called any more, also not for a look that still runs. */
  close(): void;
}

export function startMonitor(options: {
  readonly store: Watched;
  readonly paymentProviders: readonly Watched[];
  readonly authorizationProviders: readonly Watched[];
  readonly adapters: readonly string[];
  readonly gate: { readonly draining: () => boolean };
  /** Whether calls wait for a backend that restarts alone. */
  readonly fenced?: () => boolean;
  /** Whether the backend can be called past the gateway. */
  readonly bypassed?: () => boolean;
  readonly backendReachable?: () => boolean;
  /** Whether the gateway showed a bug: the first adapter then fails until a restart. */
  readonly faulty?: () => boolean;
  readonly onChange: (name: string, state: CheckState, cause: string | undefined) => void;
}): Monitor {
  const others = [...options.paymentProviders, ...options.authorizationProviders];
  const watched = [options.store, ...others];
  const states = new Map<Watched, CheckState>(watched.map((component) => [component, UNSEEN]));
  let started = false;
  let closed = false;
  let checkedAt = new Date().toISOString();

  // One look per component at a time: a look that is still running fails every round.
  const looking = new Set<Watched>();
  const look = (component: Watched): ReturnType<Watched['look']> => {
    if (looking.has(component)) return Promise.resolve(LATE);
    looking.add(component);
    const seen = component.look().finally(() => looking.delete(component));
    return inTime(seen, LOOK_DEADLINE_MS, () => LATE).catch((thrown: unknown) => {
      return { found: 'unreachable' as const, cause: String(thrown) };
    });
  };
  const lookAt = async (component: Watched): Promise<void> => {
    const { found, cause } = await look(component);
    if (closed) return;
    const before = states.get(component) ?? UNSEEN;
    const after = observe(before, found, performance.now());
    states.set(component, after);
    if (after.status !== before.status || before === UNSEEN) options.onChange(component.name, after, cause);
  };
  const round = async (first: Promise<void> = lookAt(options.store)): Promise<void> => {
    await Promise.all([first, ...others.map(lookAt)]);
    started = true;
    checkedAt = new Date().toISOString();
  };
  const firstLook = lookAt(options.store);
  const firstRound = round(firstLook);
  const timer = setInterval(() => void round(), ROUND_MS);
  timer.unref();

  const render = (component: Watched): ReadinessCheck =>
    renderCheck(component.name, component.kind, states.get(component) ?? UNSEEN);
  const adapterCheck = (name: string): ReadinessCheck => {
    if (options.gate.draining()) return { name, status: 'fail', detail: 'draining' };
    if (!started) return { name, status: 'fail', detail: 'starting' };
    // Only one adapter fails: the reason is the process, not a protocol.
    return options.faulty?.() === true && name === options.adapters[0]
      ? { name, status: 'fail', detail: 'adapter-degraded' }
      : { name, status: 'pass' };
  };
  const backendCheck = (): ReadinessCheck => {
    if (options.backendReachable?.() === false) return { ...BACKEND, status: 'warn', detail: 'backend-unreachable' };
    if (options.bypassed?.() === true) return { ...BACKEND, status: 'warn', detail: 'backend-exposed' };
    return { ...BACKEND, status: 'pass' };
  };
  return {
    async routing() {
      await firstLook;
      const { status, detail } = render(options.store);
      if (options.gate.draining()) return { name: ROUTING, status: 'fail', detail: 'draining' };
      if (status === 'fail' && detail !== undefined) return { name: ROUTING, status, detail };
      return options.fenced?.() === true
        ? { name: ROUTING, status: 'fail', detail: 'adapter-unreachable' }
        : { name: ROUTING, status: 'pass' };
    },
    async readiness() {
      if (!started) await firstRound;
      const store = render(options.store);
      const adapters = options.adapters.map(adapterCheck);
      const paymentProviders = options.paymentProviders.map(render);
      const authorizationProviders = options.authorizationProviders.map(render);
      const checks = [store, ...adapters, ...paymentProviders, ...authorizationProviders];
      const ready = checks.every((check) => check.status !== 'fail');
      return { ready, store, backend: backendCheck(), adapters, paymentProviders, authorizationProviders };
    },
    adapterHealth: () =>
      Object.fromEntries(options.adapters.map((name) => [name, { status: adapterCheck(name).status, checkedAt }])),
    close() {
      closed = true;
      clearInterval(timer);
    },
  };
}

/** The store, the rail if a resource has a price, the trusted issuers, and the enabled adapters. */
export function watched(parts: {
  readonly config: { readonly protocols: Readonly<Record<string, { readonly enabled: boolean }>> };
  readonly store: Store;
  readonly rail: PaymentRail | undefined;
  /** Undefined: no mandates are accepted. */
  readonly trust?: Pick<IssuerTrust, 'check'> | undefined;
}): {
  readonly store: Watched;
  readonly paymentProviders: readonly Watched[];
  readonly authorizationProviders: readonly Watched[];
  readonly adapters: readonly string[];
} {
  const { config, store, rail, trust } = parts;
  const storeCheck: Watched = {
    name: store.name,
    kind: 'store',
    async look() {
      const health = await store.check();
      return health.status === 'ok' ? { found: 'ok' } : { found: health.status, cause: health.cause };
    },
  };
  const railCheck = (x402: PaymentRail): Watched => ({
    name: 'x402',
    kind: 'payment-provider',
    async look() {
      return (await x402.check()) ?? { found: 'ok' };
    },
  });
  const trustCheck = ({ check }: Pick<IssuerTrust, 'check'>): Watched => ({
    name: 'ap2',
    kind: 'authorization-provider',
    look: check,
  });
  return {
    store: storeCheck,
    paymentProviders: rail === undefined ? [] : [railCheck(rail)],
    authorizationProviders: trust === undefined ? [] : [trustCheck(trust)],
    adapters: Object.entries(config.protocols)
      .filter(([, protocol]) => protocol.enabled)
      .map(([name]) => name),
  };
}

/** A component's check as `/ready` shows it (specification 2). */
export interface ReadinessCheck {
  readonly name: string;
  readonly status: 'pass' | 'warn' | 'fail';
  readonly detail?: ReadinessDetail;
}

/** The closed vocabulary of contract 2; causes go to the log. */
type ReadinessDetail =
  | `${'store' | 'adapter' | 'payment-provider' | 'authorization-provider'}-${'degraded' | 'unreachable'}`
  | 'backend-exposed'
  | 'backend-unreachable'
  | 'store-unwritable'
  | 'draining'
  | 'starting';

/** The result of one look at a component. */
export type Observation = 'ok' | 'degraded' | 'unreachable' | 'unwritable';

/** The state between looks. Times in milliseconds of a monotonic clock. */
export interface CheckState {
  readonly status: ReadinessCheck['status'];
  readonly last: Observation;
  readonly failures: number;
  readonly lastGoodAt: number;
}

/** Failed looks in a row that turn `warn` into `fail`. */
const FAILURES_TO_FAIL = 3;
/** Time since the last good look after which a component fails, milliseconds. */
const STALE_AFTER_MS = 10_000;

/** Before the first look: a component fails until a look has found it working. */
export const UNSEEN: CheckState = { status: 'fail', last: 'unreachable', failures: 0, lastGoodAt: -STALE_AFTER_MS };

/**
 * The transitions of contract 2: the first failure warns, the third in a row (or 10 s without a
 * good look) fails, one good look passes. A store that cannot write fails at once; a degraded
 * component warns and serves.
 */
export function observe(state: CheckState, found: Observation, now: number): CheckState {
  if (found === 'ok') return { status: 'pass', last: found, failures: 0, lastGoodAt: now };
  if (found === 'degraded') return { status: 'warn', last: found, failures: 0, lastGoodAt: now };
  const failures = state.failures + 1;
  const failing = found === 'unwritable' || failures >= FAILURES_TO_FAIL || now - state.lastGoodAt >= STALE_AFTER_MS;
  return { status: failing ? 'fail' : 'warn', last: found, failures, lastGoodAt: state.lastGoodAt };
}

/** Renders a check; `pass` carries no detail. */
export function renderCheck(
  name: string,
  kind: 'store' | 'adapter' | 'payment-provider' | 'authorization-provider',
  state: CheckState,
): ReadinessCheck {
  if (state.status === 'pass') return { name, status: 'pass' };
  if (state.last === 'unwritable') return { name, status: state.status, detail: 'store-unwritable' };
  return { name, status: state.status, detail: `${kind}-${state.last === 'degraded' ? 'degraded' : 'unreachable'}` };
}

const ALIVE = JSON.stringify({ status: 'ok' });

/** Mounted on both listeners, before every check of Host or Origin. */
export function probes(monitor: Pick<Monitor, 'readiness'>): Router {
  const router = Router({ strict: true, caseSensitive: true });
  router.get('/health', function health(_req, res) {
    res.setHeader('cache-control', 'no-store');
    sendJson(res, 200, ALIVE);
  });
  router.get('/ready', async function ready(_req, res) {
    const readiness = await monitor.readiness();
    res.setHeader('cache-control', 'no-store');
    sendJson(res, readiness.ready ? 200 : 503, JSON.stringify(readiness));
  });
  router.all(['/health', '/ready'], allowOnly('GET', 'HEAD'));
  return router;
}
