import { inTime } from '../../time/time.ts';
import { type CheckState, type Observation, observe, type ReadinessCheck, renderCheck, UNSEEN } from './readiness.ts';

/** Between two rounds of looks, milliseconds. */
const ROUND_MS = 2_000;
/** Longest wait for one look, and for the first answer, milliseconds. */
const LOOK_DEADLINE_MS = 1_000;
/** What a look has found that is not over by then. */
const LATE = { found: 'unreachable', cause: 'no answer in time' } as const;

/**
 * A component to look at in the background. `look` resolves with the cause when something is wrong.
 */
export interface Watched {
  readonly name: string;
  readonly kind: 'store' | 'payment-provider' | 'authorization-provider';
  readonly look: () => Promise<{ readonly found: Observation; readonly cause?: string }>;
}

/** The body of `/ready` (specification 4). */
export interface Readiness {
  readonly ready: boolean;
  readonly store: ReadinessCheck;
  readonly adapters: readonly ReadinessCheck[];
  readonly paymentProviders: readonly ReadinessCheck[];
  readonly authorizationProviders: readonly ReadinessCheck[];
}

/** An adapter's health as the discovery document shows it; `checkedAt` ISO 8601. */
export interface AdapterHealth {
  readonly status: ReadinessCheck['status'];
  readonly checkedAt: string;
}

/**
 * Looks at every component in the background, so that a probe is answered from memory whatever the
 * components do.
 */
export interface Monitor {
  /** Resolves at once after the first round, which it waits for at most 1 s. */
  readiness(): Promise<Readiness>;
  /** Enabled adapters as the discovery document shows them. */
  adapterHealth(): Readonly<Record<string, AdapterHealth>>;
  /**
   * Nothing is told after it: what a look that still runs meets is a component that is being
   * closed.
   */
  close(): void;
}

export function startMonitor(options: {
  readonly store: Watched;
  readonly paymentProviders: readonly Watched[];
  readonly authorizationProviders: readonly Watched[];
  readonly adapters: readonly string[];
  /** Whether the gateway still takes calls, and why not. */
  readonly gate: { readonly draining: () => boolean };
  /**
   * Whether the merchant can be called past the gateway: that degrades the first adapter, and
   * nothing fails for it.
   */
  readonly bypassed?: () => boolean;
  /**
   * Whether the merchant can be reached. Without him nothing paid is sold; that too degrades the
   * first adapter and fails nothing.
   */
  readonly backendReachable?: () => boolean;
  readonly onChange: (name: string, state: CheckState, cause: string | undefined) => void;
}): Monitor {
  const watched = [options.store, ...options.paymentProviders, ...options.authorizationProviders];
  const states = new Map<Watched, CheckState>(watched.map((component) => [component, UNSEEN]));
  let started = false;
  let closed = false;
  let checkedAt = new Date().toISOString();

  // Single flight per component: a look that hangs past its deadline is not joined by a second one,
  // and fails every round that meets it.
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
  const round = async (): Promise<void> => {
    await Promise.all(watched.map(lookAt));
    started = true;
    checkedAt = new Date().toISOString();
  };
  const firstRound = round();
  const timer = setInterval(() => void round(), ROUND_MS);
  timer.unref();

  const render = (component: Watched): ReadinessCheck =>
    renderCheck(component.name, component.kind, states.get(component) ?? UNSEEN);
  const adapterCheck = (name: string): ReadinessCheck => {
    if (options.gate.draining()) return { name, status: 'fail', detail: 'draining' };
    if (!started) return { name, status: 'fail', detail: 'starting' };
    // One warning is enough: it is about the merchant, not about a protocol.
    const degraded = options.bypassed?.() === true || options.backendReachable?.() === false;
    return degraded && name === options.adapters[0]
      ? { name, status: 'warn', detail: 'adapter-degraded' }
      : { name, status: 'pass' };
  };
  return {
    async readiness() {
      if (!started) await firstRound;
      const store = render(options.store);
      const adapters = options.adapters.map(adapterCheck);
      const paymentProviders = options.paymentProviders.map(render);
      const authorizationProviders = options.authorizationProviders.map(render);
      const checks = [store, ...adapters, ...paymentProviders, ...authorizationProviders];
      const ready = checks.every((check) => check.status !== 'fail');
      return { ready, store, adapters, paymentProviders, authorizationProviders };
    },
    adapterHealth: () =>
      Object.fromEntries(options.adapters.map((name) => [name, { status: adapterCheck(name).status, checkedAt }])),
    close() {
      closed = true;
      clearInterval(timer);
    },
  };
}
