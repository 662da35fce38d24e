/** What a gateway of several processes takes of a pod's memory; measured, see docs/sizing.md. */

/** The pages of the program and its libraries, which all processes share, megabytes. */
const SHARED_MB = 50;
/** What the primary has of its own, megabytes. */
const PRIMARY_MB = 30;
/** What a worker has of its own under load, megabytes. */
const WORKER_MB = 130;

/** Megabytes of a gateway of so many workers under load, its answer buffers apart. */
export function memoryOfWorkers(workers: number): number {
  return SHARED_MB + (workers === 1 ? 0 : PRIMARY_MB) + workers * WORKER_MB;
}

/** Megabytes that a passed exchange buffers while its reader has stopped; measured. */
const RELAYED_MB = 0.5;

/** Megabytes of so many passed exchanges, event streams and WebSockets that no reader reads. */
export function memoryOfRelays(places: number): number {
  return Math.ceil(places * RELAYED_MB);
}
