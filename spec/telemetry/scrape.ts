import { readMetrics } from '../support/read-metrics.ts';

/** The value of each time series in `/metrics`, by its name and labels as they are written. */
export async function scrape(managementUrl: string): Promise<ReadonlyMap<string, number>> {
  return seriesIn(await readMetrics(managementUrl));
}

/** The time series of a text in Prometheus' format. */
export function seriesIn(text: string): ReadonlyMap<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}
