/** How long a drain takes at most, from the longest that one call may (contract 3, shutdown). */

/** What running calls get at least, milliseconds. */
const SHORTEST_FINISH_MS = 30_000;
/** What a call may take beside its wait for the backend, milliseconds: most of it settlement. */
const SETTLEMENT_MS = 60_000;

/** The two parts of a drain. */
export interface DrainLength {
  /** How long new calls are still served, milliseconds: until no endpoint lists the pod. */
  readonly propagationMs: number;
  /** How long running calls may take after that, milliseconds. */
  readonly finishMs: number;
}

/** `longestTimeoutMs`: of all that may be asked of the backend; 0 where nothing is. */
export function drainLength(propagationSeconds: number, longestTimeoutMs: number): DrainLength {
  const longestCallMs = longestTimeoutMs === 0 ? 0 : longestTimeoutMs + SETTLEMENT_MS;
  return { propagationMs: propagationSeconds * 1_000, finishMs: Math.max(SHORTEST_FINISH_MS, longestCallMs) };
}

/** The whole drain in full seconds, as the annotation of a pod states it. */
export function drainSeconds({ propagationMs, finishMs }: DrainLength): number {
  return Math.ceil((propagationMs + finishMs) / 1_000);
}

/** Why the pod leaves too little time for such a drain; undefined: it leaves enough. */
export function budgetProblem(length: DrainLength, budgetSeconds: number | undefined): string | undefined {
  const seconds = drainSeconds(length);
  if (budgetSeconds === undefined || seconds <= budgetSeconds) return undefined;
  return (
    `is ${budgetSeconds}, and the drain of this configuration may take ${seconds} s; set the annotation ` +
    `agent-commerce.dev/drain-seconds: "${seconds}" on the pod, or shorten the longest timeoutMs`
  );
}
