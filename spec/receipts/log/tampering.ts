/** Random logs, and every single change that a hand could make to what the store has. */

import fc from 'fast-check';
import { type Receipt, receiptId } from '../../../src/receipts/receipt.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { receipt } from '../../payments/ledger/samples.ts';
import { type Contents, type LogBed, seal } from './log-bed.ts';

/** What a process does. `which`: one of the receipts that are there. */
export type Step =
  | { readonly does: 'write'; readonly receipts: number }
  | { readonly does: 'deliver' | 'owe'; readonly which: number }
  | { readonly does: 'seal' | 'tidy' | 'restart' };

/** Steps of one of two processes. */
export const steps: fc.Arbitrary<readonly (readonly [process: number, step: Step])[]> = fc.array(
  fc.tuple(
    fc.nat({ max: 1 }),
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ does: fc.constant('write' as const), receipts: fc.integer({ min: 1, max: 4 }) }),
      },
      {
        weight: 4,
        arbitrary: fc.record({ does: fc.constantFrom('deliver' as const, 'owe' as const), which: fc.nat() }),
      },
      { weight: 3, arbitrary: fc.constant({ does: 'seal' as const }) },
      { weight: 1, arbitrary: fc.constant({ does: 'tidy' as const }) },
      { weight: 1, arbitrary: fc.constant({ does: 'restart' as const }) },
    ),
  ),
  { minLength: 6, maxLength: 40, size: 'max' },
);

/** Delivered receipts that the book keeps: few, so that some are dropped. */
const KEPT = 8;
/** Versions that the log keeps: few, so that some are trimmed. */
const MOST_VERSIONS = 25;

/** Does the steps; resolves with a store of the bed and each checkpoint that was the newest. */
export async function grown(
  bed: LogBed,
  drawn: readonly (readonly [process: number, step: Step])[],
): Promise<{ readonly store: Store; readonly newest: readonly string[] }> {
  const limits = { eventsMaxLength: 100, receiptsMaxLength: KEPT };
  const processes = [await bed.open(undefined, limits), await bed.open(undefined, limits)];
  const newest: string[] = [];
  let version = 0;
  for (const [at, step] of drawn) {
    const store = processes[at] ?? (await bed.open());
    const present = async () => (await store.receipts.page({ limit: 100 })).receipts;
    version += 1;
    switch (step.does) {
      case 'write':
        await store.receipts.write(
          Array.from({ length: step.receipts }, () =>
            receipt(receiptId(), `r${version}`, { delivered: version % 3 === 0 }),
          ),
        );
        break;
      case 'deliver':
      case 'owe': {
        const all = await present();
        const one = all[step.which % Math.max(1, all.length)];
        if (one !== undefined)
          await store.receipts.write([changed(one, { delivered: step.does === 'deliver', durationMs: version })]);
        break;
      }
      case 'seal':
        await seal(store, { maxVersions: MOST_VERSIONS });
        break;
      case 'tidy':
        // A receipt outlives the minutes in which its versions wait, with any sensible bound.
        await seal(store, { maxVersions: MOST_VERSIONS, leftBehindMs: 0 });
        await store.tidy();
        break;
      case 'restart':
        // What it wrote and did not seal is left behind.
        processes[at] = await bed.open(undefined, limits);
        break;
    }
    const last = [...(await bed.read()).sealed.values()].at(-1)?.checkpoint;
    if (last !== undefined && last !== newest.at(-1)) newest.push(last);
  }
  return { store: processes[0] ?? (await bed.open()), newest };
}

function changed(one: Receipt, more: Partial<Receipt>): Receipt {
  return { ...one, ...more };
}

/** A change by another hand. */
export interface Change {
  readonly name: string;
  readonly contents: Contents;
}

/** Each single removal, change and swap of what is sealed, and of receipts; and what is added. */
export function changesOf(contents: Contents): readonly Change[] {
  const { receipts, sealed, lines } = contents;
  const made: Change[] = [];
  const add = (name: string, changes: Partial<Contents>): void => {
    made.push({ name, contents: { ...contents, ...changes } });
  };
  const ids = [...receipts.keys()];
  for (const [at, id] of ids.entries()) {
    const text = receipts.get(id) ?? '';
    add(`remove ${id}`, { receipts: without(receipts, id) });
    add(`change ${id}`, { receipts: withIn(receipts, id, text.replace('"durationMs":', '"durationMs":1')) });
    add(`deliver or owe ${id}`, { receipts: withIn(receipts, id, otherDelivery(text)) });
    const next = ids[(at + 1) % ids.length] ?? id;
    if (next !== id)
      add(`swap ${id} and ${next}`, {
        receipts: withIn(withIn(receipts, id, receipts.get(next) ?? ''), next, text),
      });
  }
  const added = receiptId();
  add('add a receipt', {
    receipts: withIn(receipts, added, JSON.stringify(receipt(added, 'added', { at: new Date().toISOString() }))),
  });

  const numbers = [...sealed.keys()];
  for (const [at, number] of numbers.entries()) {
    const one = sealed.get(number) ?? { checkpoint: '', versions: '' };
    const isLast = at === numbers.length - 1;
    // Without a copy nothing shows that the last one was ever there, but for what it sealed.
    if (!isLast) add(`remove checkpoint ${number}`, { sealed: without(sealed, number) });
    const put = (name: string, changes: Partial<typeof one>) =>
      add(`${name} of checkpoint ${number}`, { sealed: withIn(sealed, number, { ...one, ...changes }) });
    const [head = '', payload = '', signature = ''] = one.checkpoint.split('.');
    put('change the signature', { checkpoint: `${head}.${payload}.${flipped(signature)}` });
    put('change the payload', { checkpoint: `${head}.${flipped(payload)}.${signature}` });
    put('change the head', { checkpoint: `${flipped(head)}.${payload}.${signature}` });
    put('spell the signature otherwise', { checkpoint: `${head}.${payload}.${signature}=` });
    const rows = one.versions.split('\n').slice(0, -1);
    for (const [row, line] of rows.entries()) {
      const versions = (changedRows: readonly string[]) => changedRows.map((text) => `${text}\n`).join('');
      put(`remove entry ${row}`, { versions: versions(rows.toSpliced(row, 1)) });
      put(`change entry ${row}`, { versions: versions(rows.with(row, flipped(line))) });
      put(`repeat entry ${row}`, { versions: versions(rows.toSpliced(row, 0, line)) });
      const next = rows[row + 1];
      if (next !== undefined)
        put(`swap entries ${row} and ${row + 1}`, { versions: versions(rows.with(row, next).with(row + 1, line)) });
    }
    const after = numbers[at + 1];
    const other = after === undefined ? undefined : sealed.get(after);
    if (after === undefined || other === undefined) continue;
    add(`swap checkpoints ${number} and ${after}`, { sealed: withIn(withIn(sealed, number, other), after, one) });
    put('take the versions of the next one', { versions: other.versions });
  }
  for (const [at, { position, line }] of lines.entries()) {
    add(`change line ${at}`, { lines: lines.with(at, { position, line: flipped(line) }) });
    add(`give line ${at} to another series`, {
      lines: lines.with(at, { position, line: line.replace(/^series_./, 'series_9') }),
    });
  }
  return made;
}

/** The log without its newest checkpoints, and the book as it was then: only a copy shows it. */
export function tailCuts(contents: Contents): readonly Change[] {
  const numbers = [...contents.sealed.keys()];
  return numbers.map((_, at) => ({
    name: `cut the last ${at + 1} checkpoints`,
    contents: {
      ...contents,
      sealed: new Map([...contents.sealed].slice(0, numbers.length - 1 - at)),
      lines: [],
    },
  }));
}

function otherDelivery(text: string): string {
  return text.includes('"delivered":true')
    ? text.replace('"delivered":true', '"delivered":false')
    : text.replace('"delivered":false', '"delivered":true');
}

/** The same text with one character changed, near its end: the end of a digest, code or id. */
function flipped(text: string): string {
  const at = Math.max(0, text.length - 3);
  return `${text.slice(0, at)}${text[at] === 'a' ? 'b' : 'a'}${text.slice(at + 1)}`;
}

function without<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key): Map<Key, Value> {
  const made = new Map(map);
  made.delete(key);
  return made;
}

function withIn<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key, value: Value): Map<Key, Value> {
  return new Map(map).set(key, value);
}
