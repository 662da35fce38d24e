/** The settings of the passthrough, as the configuration derives them. */

/** What passes to the backend without being sold, and how (contract 7.4). */
export interface PassthroughSettings {
  /** Path templates that may pass, each with all below it; undefined: every path. */
  readonly include: readonly string[] | undefined;
  /** Path templates that never pass, each with all below it, in any spelling. */
  readonly exclude: readonly string[];
  readonly websocket: boolean;
  /** How long either side may send nothing, milliseconds. */
  readonly idleTimeoutMs: number;
  /** Whether the backend gets the caller's Host; else its own. */
  readonly preserveHost: boolean;
}
