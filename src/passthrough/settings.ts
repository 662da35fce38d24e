/** The settings of the passthrough, as the configuration derives them. */

/** Pages for operators of servers: they pass only where the configuration says so. */
export const USUALLY_INTERNAL: readonly string[] = [
  ...['/actuator', '/admin', '/debug', '/heapdump', '/internal', '/jolokia', '/management', '/metrics'],
  ...['/server-info', '/server-status', '/.env', '/.env.local', '/.env.production', '/.git', '/.hg', '/.svn'],
];

/** Settings of the requests that pass to the backend without being sold (contract 7.4). */
export interface PassthroughSettings {
  /** Path templates that may pass, each with all below it; undefined: every path. */
  readonly include: readonly string[] | undefined;
  /** Path templates that never pass, each with all below it, in any spelling. */
  readonly exclude: readonly string[];
  /**
   * Path templates that pass, each with all below it, although they may be other names of sold or
   * excluded paths.
   */
  readonly allow: readonly string[];
  /** Lower-case names of callers' header fields that pass although their kind does not. */
  readonly allowHeaders: readonly string[];
  readonly websocket: boolean;
  /** How long either side may send nothing, milliseconds. */
  readonly idleTimeoutMs: number;
  /** Whether the backend gets the caller's Host; else its own. */
  readonly preserveHost: boolean;
}
