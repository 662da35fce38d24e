/**
 * Runs a pod in the order of the kubelet (KEP-753): init containers one after the other, native
 * sidecars among them, then the main containers; when the pod ends, every hook at once, SIGTERM for
 * a main container when its own hook is over, and for a sidecar when no main container is left.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { COMPILE_CACHE } from '../../spec/support/compile-cache.ts';
import type { Container, Hook, HttpGet, Probe } from '../../src/sidecar/injection/pod.ts';
import { type Ending, ended } from '../../tools/local-world/child.ts';
import { leash } from '../../tools/local-world/leash.ts';
import type { Image, PlacedPod } from './node.ts';

/** What Kubernetes gives a pod that names no grace period, seconds. */
const USUAL_GRACE_SECONDS = 30;
/** After SIGTERM a container always has this long, milliseconds, also when its grace is over. */
const LEAST_GRACE_MS = 2_000;
/** A main container that ends is started again after this, milliseconds. */
const RESTART_MS = 50;

/** A container that ended so often before its pod was ready does not come up any more. */
const MOST_STARTS = 3;

/** What happened in a pod, in order; for the report of a failure. */
interface PodEvent {
  /** Milliseconds of the process. */
  readonly ms: number;
  readonly container: string;
  readonly what: string;
}

export interface RunningPod {
  readonly placed: PlacedPod;
  readonly events: readonly PodEvent[];
  /** Every container that runs on, sidecars too, and is ready. */
  ready(): boolean;
  /** Called with each change of `ready`. */
  onReady(listener: (ready: boolean) => void): void;
  /** Resolves when the pod is ready. @throws Error with the output of its containers */
  untilReady(timeoutMs: number): Promise<void>;
  /** As after a failed liveness probe: hook, SIGTERM, and a new start. */
  restart(container: string): Promise<void>;
  /** kill -9 of one container, as by the system's memory killer; it is started again. */
  kill(container: string): void;
  /** How often a container was started. */
  starts(container: string): number;
  /** Deletes the pod; resolves when its last container has ended, to how each of them did. */
  delete(): Promise<ReadonlyMap<string, Ending & { readonly killed: boolean }>>;
  output(): string;
}

interface Member {
  readonly run: ContainerRun;
  readonly sidecar: boolean;
  ready: boolean;
  /** Aborted when its process ends: its probes end with it. */
  probing: AbortController;
  restarting: boolean;
}

/** Starts a pod; its containers come up in their order. */
export function runPod(placed: PlacedPod): RunningPod {
  const { spec } = placed.pod;
  const events: PodEvent[] = [];
  const note = (container: string, what: string): void =>
    void events.push({ ms: Math.round(performance.now()), container, what });
  const member = (container: ContainerRun['spec'], sidecar: boolean): Member => {
    const image = placed.images[container.image ?? ''];
    if (image === undefined) throw new Error(`no image ${container.image} here`);
    return {
      run: containerRun(container, image),
      ...{ sidecar, ready: false, probing: new AbortController(), restarting: false },
    };
  };
  const inits = (spec.initContainers ?? []).map((container) => member(container, container.restartPolicy === 'Always'));
  const mains = spec.containers.map((container) => member(container, false));
  const staying = [...inits.filter(({ sidecar }) => sidecar), ...mains];
  const listeners: ((ready: boolean) => void)[] = [];
  let deleted: ReturnType<RunningPod['delete']> | undefined;
  let deleting = false;
  let wasReady = false;
  let wasEverReady = false;
  const crashed = Promise.withResolvers<'crashed'>();

  const ready = (): boolean => !deleting && staying.every((one) => one.ready && one.run.running());
  const look = (): void => {
    const now = ready();
    if (now === wasReady) return;
    wasReady = now;
    wasEverReady ||= now;
    for (const listener of listeners) listener(now);
  };
  const setReady = (one: Member, well: boolean): void => {
    if (one.ready !== well) note(one.run.name, well ? 'ready' : 'not ready');
    one.ready = well;
    look();
  };

  /** Starts the process and its probes; resolves when the startup probe succeeded. */
  const start = (one: Member): Promise<void> => {
    const { startupProbe, livenessProbe, readinessProbe } = one.run.spec;
    const probing = new AbortController();
    one.probing = probing;
    one.run.start();
    note(one.run.name, 'started');
    const started = Promise.withResolvers<void>();
    const failed = (well: boolean): void => {
      if (!well) void restart(one, 'failed its probe');
    };
    const afterStart = (): void => {
      started.resolve();
      if (livenessProbe !== undefined) void watchProbe(livenessProbe, probing.signal, failed);
      if (readinessProbe === undefined) setReady(one, true);
      else void watchProbe(readinessProbe, probing.signal, (well) => setReady(one, well));
    };
    if (startupProbe === undefined) afterStart();
    else {
      const starting = new AbortController();
      void watchProbe(startupProbe, AbortSignal.any([probing.signal, starting.signal]), (well) => {
        starting.abort();
        if (well) afterStart();
        else failed(false);
      });
    }
    void one.run.exited().then(({ code, signal }) => {
      probing.abort();
      note(one.run.name, `ended with ${signal ?? code}`);
      setReady(one, false);
      if (deleting || one.restarting || !staying.includes(one)) return;
      if (!wasEverReady && one.run.starts >= MOST_STARTS) crashed.resolve('crashed');
      setTimeout(() => {
        if (!deleting && !one.restarting && !one.run.running()) void start(one);
      }, RESTART_MS);
    });
    return started.promise;
  };

  /** The hook first, then SIGTERM, then SIGKILL at the end of the grace. */
  const stop = async (one: Member, graceMs: number, turn: (leftMs: number) => Promise<void>): Promise<boolean> => {
    const until = performance.now() + graceMs;
    const left = (): number => Math.max(0, until - performance.now());
    const hook = one.run.spec.lifecycle?.preStop;
    if (hook !== undefined && one.run.running()) {
      note(one.run.name, 'hook begins');
      const over = new AbortController();
      // It is not cancelled at the end of the grace, and the container does not wait for it longer.
      const asked = runHook(hook, over.signal).then((status) => note(one.run.name, `hook answered ${status}`));
      await Promise.race([asked, one.run.exited(), delay(left(), undefined, { ref: false })]);
      if (!one.run.running()) over.abort();
    }
    await turn(left());
    if (!one.run.running()) return false;
    note(one.run.name, 'SIGTERM');
    one.run.signal('SIGTERM');
    const patience = delay(Math.max(left(), LEAST_GRACE_MS), 'late' as const, { ref: false });
    if ((await Promise.race([one.run.exited(), patience])) !== 'late') return false;
    note(one.run.name, 'SIGKILL');
    one.run.signal('SIGKILL');
    await one.run.exited();
    return true;
  };
  const graceMs = (spec.terminationGracePeriodSeconds ?? USUAL_GRACE_SECONDS) * 1_000;

  const restart = async (one: Member, why: string): Promise<void> => {
    if (one.restarting || deleting) return;
    one.restarting = true;
    note(one.run.name, why);
    one.probing.abort();
    await stop(one, graceMs, async () => undefined);
    one.restarting = false;
    if (!deleting) void start(one);
  };

  const end = async (): ReturnType<RunningPod['delete']> => {
    note('pod', 'deleted');
    look();
    // Readiness is asked on; the kubelet stops the probes that could restart a container.
    const mainsEnded = Promise.withResolvers<void>();
    const stopMain = mains.map((one) => stop(one, graceMs, async () => undefined));
    void Promise.all(stopMain).then(() => mainsEnded.resolve());
    const sidecars = inits.filter(({ sidecar }) => sidecar);
    let behind: Promise<unknown> = mainsEnded.promise;
    const stopSidecar = sidecars.toReversed().map((one) => {
      const before = behind;
      const stopped = stop(one, graceMs, async (leftMs) => {
        await Promise.race([before, delay(leftMs, undefined, { ref: false })]);
      });
      behind = stopped;
      return stopped;
    });
    const killed = await Promise.all([...stopMain, ...stopSidecar]);
    const order = [...mains, ...sidecars.toReversed()];
    const endings = await Promise.all(order.map(({ run }) => run.exited()));
    return new Map(
      order.map(({ run }, index) => [
        run.name,
        { ...(endings[index] ?? { code: null, signal: null }), killed: killed[index] ?? false },
      ]),
    );
  };

  const comeUp = async (): Promise<void> => {
    for (const one of inits) {
      if (deleting) return;
      if (one.sidecar) await start(one);
      else {
        one.run.start();
        const { code } = await one.run.exited();
        if (code !== 0) return note(one.run.name, `ended with ${code}`);
      }
    }
    if (!deleting) for (const one of mains) void start(one);
  };
  void comeUp();

  const named = (name: string): Member => {
    const found = staying.find(({ run }) => run.name === name);
    if (found === undefined) throw new Error(`no container ${name}`);
    return found;
  };
  const output = (): string =>
    [...inits, ...mains].map(({ run }) => `--- ${placed.name} ${run.name}\n${run.output()}`).join('\n');
  return {
    ...{ placed, events, ready, output },
    onReady: (listener) => void listeners.push(listener),
    async untilReady(timeoutMs) {
      if (ready()) return;
      const come = Promise.withResolvers<'ready'>();
      listeners.push((well) => {
        if (well) come.resolve('ready');
      });
      const known = new AbortController();
      const late = delay(timeoutMs, 'late' as const, { signal: known.signal }).catch(() => 'late' as const);
      const got = await Promise.race([come.promise, crashed.promise, late]);
      known.abort();
      if (got !== 'ready')
        throw new Error(`${placed.name} was not ready (${got}): ${JSON.stringify(events)}\n${output()}`);
    },
    restart: (name) => restart(named(name), 'is restarted'),
    kill: (name) => named(name).run.signal('SIGKILL'),
    starts: (name) => named(name).run.starts,
    delete: () => {
      deleting = true;
      deleted ??= end();
      return deleted;
    },
  };
}

const OUTPUT_TAIL_CHARS = 16_384;

/** One container and the process that it has now. */
interface ContainerRun {
  readonly name: string;
  readonly spec: Container;
  /** How often it was started. */
  readonly starts: number;
  running(): boolean;
  start(): void;
  signal(signal: NodeJS.Signals): void;
  /** Resolves when the process of now has ended. */
  exited(): Promise<Ending>;
  /** The end of what all its processes wrote. */
  output(): string;
}

function containerRun(spec: Container, image: Image): ContainerRun {
  let child: ChildProcess | undefined;
  let starts = 0;
  let tail = '';
  const keep = (text: Buffer): void => {
    tail = (tail + text.toString()).slice(-OUTPUT_TAIL_CHARS);
  };
  const running = (): boolean => child !== undefined && child.exitCode === null && child.signalCode === null;
  return {
    ...{ name: spec.name, spec, running },
    get starts() {
      return starts;
    },
    start() {
      const { args, env = {} } = image(spec, starts);
      starts += 1;
      const own = Object.fromEntries((spec.env ?? []).map(({ name, value = '' }) => [name, value]));
      child = spawn(process.execPath, args, {
        env: { PATH: process.env['PATH'] ?? '', ...COMPILE_CACHE, ...env, ...own },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      });
      child.stdout?.on('data', keep);
      child.stderr?.on('data', keep);
      leash(child);
    },
    signal: (signal) => void child?.kill(signal),
    exited: () => (child === undefined ? Promise.resolve({ code: 0, signal: null }) : ended(child)),
    output: () => tail,
  };
}

/** Where all pods of this machine are. */
const ADDRESS = '127.0.0.1';
/** What Kubernetes takes where a probe does not say. */
const USUAL = { period: 10, timeout: 1, success: 1, failure: 3 };

/** Whether the probe succeeds now. */
function succeeds(probe: Probe, signal: AbortSignal): Promise<boolean> {
  const timeout = AbortSignal.timeout((probe.timeoutSeconds ?? USUAL.timeout) * 1_000);
  const either = AbortSignal.any([signal, timeout]);
  if (probe.httpGet !== undefined)
    return httpStatus(probe.httpGet, 'kube-probe/1.36', either).then(
      (status) => status >= 200 && status < 400,
      () => false,
    );
  if (probe.tcpSocket !== undefined) return connects(Number((probe.tcpSocket as HttpGet).port), either);
  throw new Error('only httpGet and tcpSocket probes are run here');
}

/**
 * Asks a probe at its period until `signal` is aborted, and tells each change: true after
 * `successThreshold` successes in a row, false after `failureThreshold` failures.
 */
async function watchProbe(probe: Probe, signal: AbortSignal, onChange: (well: boolean) => void): Promise<void> {
  const { periodSeconds = USUAL.period, successThreshold = USUAL.success, failureThreshold = USUAL.failure } = probe;
  let told: boolean | undefined;
  let last: boolean | undefined;
  let run = 0;
  while (!signal.aborted) {
    const next = delay(periodSeconds * 1_000, undefined, { signal }).catch(() => undefined);
    const well = await succeeds(probe, signal);
    if (signal.aborted) return;
    run = well === last ? run + 1 : 1;
    last = well;
    if (well !== told && run >= (well ? successThreshold : failureThreshold)) {
      told = well;
      onChange(well);
    }
    await next;
  }
}

/**
 * Runs a preStop hook. It has no timeout of its own; a failed one does not hold the container back.
 * @returns the status; 0 where there was no answer
 */
async function runHook(hook: Hook, signal: AbortSignal): Promise<number> {
  if (hook.httpGet !== undefined) return httpStatus(hook.httpGet, 'kube-lifecycle/1.36', signal).catch(() => 0);
  if (hook.sleep !== undefined) {
    await delay((hook.sleep.seconds ?? 0) * 1_000, undefined, { signal }).catch(() => undefined);
    return 200;
  }
  throw new Error('only httpGet and sleep hooks are run here');
}

function httpStatus(
  { port, path = '/', httpHeaders = [] }: HttpGet,
  userAgent: string,
  signal: AbortSignal,
): Promise<number> {
  const own = httpHeaders.flatMap(({ name, value = '' }) => [name, value]);
  const headers = ['Host', `${ADDRESS}:${port}`, 'User-Agent', userAgent, ...own, 'Connection', 'close'];
  return new Promise((resolve, reject) => {
    const asked = request({ host: ADDRESS, port, path, headers, agent: false, signal }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.once('error', reject);
    });
    asked.once('error', reject);
    asked.end();
  });
}

function connects(port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: ADDRESS, port, signal });
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
