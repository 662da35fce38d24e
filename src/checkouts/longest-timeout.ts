import type { AcpBackend } from './settings.ts';

/** Longest wait for the merchant of all operations, milliseconds. */
export function longestTimeoutMs({ operations }: Pick<AcpBackend, 'operations'>): number {
  return Math.max(...Object.values(operations).map(({ timeoutMs }) => timeoutMs));
}
