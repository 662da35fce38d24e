/** What the primary asks of a worker, and what it is answered. All of it is plain data. */

import type { ConfigDocument } from '../config/document/document.ts';
import type { DrainLength } from '../sidecar/drain-length.ts';
import type { RunningExchanges } from '../sidecar/pod-hooks.ts';
import type { Readiness } from '../telemetry/health/monitor.ts';
import type { ReadinessCheck } from '../telemetry/health/readiness.ts';

/** A configuration with its number among those that one primary has loaded. */
export interface NumberedDocument {
  readonly number: number;
  /** Expanded, with its secrets in place. */
  readonly document: ConfigDocument;
  /** Paths of it whose value came out of a mounted file. */
  readonly fromFile: ReadonlySet<string>;
}

/** How the backend stands that its pod restarts. */
export type FenceOrder = 'raise' | 'release' | 'lower';

/** What a worker begins with. */
export interface StartOrder {
  readonly config: NumberedDocument;
  /** Processes that the bounds are divided among. */
  readonly processes: number;
  /** Of the listener for agents, once one worker has it; undefined: that of the configuration. */
  readonly port: number | undefined;
  /** Undefined: the backend does not restart. */
  readonly fence: FenceOrder | undefined;
}

/** The port that agents reach. */
interface Listening {
  readonly port: number;
}

/** By the name of the command: what it is given, and its answer. */
interface WorkerCommands {
  /** The first command, once. */
  start: (order: StartOrder) => Listening;
  /** The worker's event loop turns. */
  ping: (nothing: null) => null;
  /** Makes everything of a configuration, which `use` puts into use and `discard` forgets. */
  prepare: (config: NumberedDocument) => null;
  use: (config: NumberedDocument) => null;
  discard: (nothing: null) => null;
  drain: (length: DrainLength) => null;
  /** Listens and takes calls again after a drain. */
  openAgain: (nothing: null) => null;
  fence: (order: FenceOrder) => null;
  running: (nothing: null) => RunningExchanges;
  tryBackend: (nothing: null) => null;
  readiness: (nothing: null) => Readiness;
  routing: (nothing: null) => ReadinessCheck;
  /** In the text format of Prometheus. */
  metrics: (nothing: null) => string;
  /** Ends the process in order. */
  end: (nothing: null) => null;
}

export type CommandName = keyof WorkerCommands;
export type Given<Name extends CommandName> = Parameters<WorkerCommands[Name]>[0];
export type Answered<Name extends CommandName> = ReturnType<WorkerCommands[Name]>;
