/** The gateways that a load run compares: how many pods, which store. */

/** What is started over one store. */
export interface Topology {
  readonly name: string;
  /** Gateways with listeners of their own, as pods have. */
  readonly gateways: number;
  readonly store: 'redis' | 'sqlite';
}

export const TOPOLOGIES: readonly Topology[] = [
  { name: 'one gateway', gateways: 1, store: 'redis' },
  { name: 'two gateways', gateways: 2, store: 'redis' },
  { name: 'one gateway, SQLite file', gateways: 1, store: 'sqlite' },
];

/** What one topology needed for a number of paid calls. */
export interface Measured {
  readonly topology: Topology;
  readonly calls: number;
  readonly elapsedMs: number;
  /** CPU of all gateways and of the store for one call, microseconds. */
  readonly gatewayUs: number;
  readonly storeUs: number;
  /** What the store grew by for one call, bytes. */
  readonly storedBytes: number;
  /** Memory of all gateways before the load and behind it, bytes. */
  readonly idleBytes: number;
  readonly loadedBytes: number;
}

const COLUMNS = ['topology', 'calls', 'calls/s', 'gateway us', 'store us', 'stored B', 'idle MB', 'loaded MB'] as const;
const MEGABYTE = 1_000_000;
const MICROSECONDS = 1_000_000;

/** The table of a run, and what follows for one shard of the store. */
export function reportOf(measured: readonly Measured[]): string {
  const rows = measured.map((one) => [
    one.topology.name,
    String(one.calls),
    String(Math.round((one.calls * 1_000) / one.elapsedMs)),
    String(Math.round(one.gatewayUs)),
    one.topology.store === 'redis' ? String(Math.round(one.storeUs)) : '-',
    String(Math.round(one.storedBytes)),
    String(Math.round(one.idleBytes / MEGABYTE)),
    String(Math.round(one.loadedBytes / MEGABYTE)),
  ]);
  const widths = COLUMNS.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column] ?? '')].map((cell) => cell.length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  const shared = measured.filter(({ topology }) => topology.store === 'redis');
  const dearest = Math.max(0, ...shared.map(({ storeUs }) => storeUs));
  const ceiling =
    dearest === 0 ? [] : ['', `one shard of Redis: at most ${Math.floor(MICROSECONDS / dearest)} paid calls a second`];
  return `${[line(COLUMNS), ...rows.map(line), ...ceiling].join('\n')}\n`;
}
