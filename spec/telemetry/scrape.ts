import assert from 'node:assert/strict';

/** The value of each time series in `/metrics`, by its name and labels as they are written. */
export async function scrape(managementUrl: string): Promise<ReadonlyMap<string, number>> {
  const answer = await fetch(`${managementUrl}/metrics`);
  assert.equal(answer.status, 200);
  return seriesIn(await answer.text());
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
