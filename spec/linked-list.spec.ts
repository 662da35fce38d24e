import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LinkedList, type Place } from '../src/linked-list.ts';

type Step = { readonly kind: 'add' } | { readonly kind: 'remove'; readonly at: number };

describe('a linked list', () => {
  const members = (list: LinkedList<number>): number[] => [...list].map(({ member }) => member);

  it('keeps the order of its members, whichever of them leave, as a set does', () => {
    const step: fc.Arbitrary<Step> = fc.oneof(
      fc.constant<Step>({ kind: 'add' }),
      fc.nat().map((at): Step => ({ kind: 'remove', at })),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const list = new LinkedList<number>();
        const set = new Set<number>();
        const places: Place<number>[] = [];
        for (const what of steps) {
          if (what.kind === 'add') {
            set.add(places.length);
            places.push(list.add(places.length));
          } else {
            const place = places[what.at % Math.max(1, places.length)];
            if (place !== undefined) assert.equal(list.remove(place), set.delete(place.member));
          }
          assert.deepEqual(members(list), [...set]);
          assert.equal(list.size, set.size);
          assert.equal(list.first?.member, [...set].at(0));
          assert.equal(list.last?.member, [...set].at(-1));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('shows none that left, and none that came, while it is gone through', () => {
    const list = new LinkedList<number>();
    const places = [0, 1, 2, 3].map((member) => list.add(member));
    const shown: number[] = [];
    for (const { member } of list) {
      shown.push(member);
      if (member !== 1) continue;
      for (const at of [1, 2]) list.remove(places[at] as Place<number>);
      list.add(4);
    }
    assert.deepEqual(shown, [0, 1, 3]);
    assert.deepEqual(members(list), [0, 3, 4]);
  });

  it('ties nothing to a member that has left', () => {
    const list = new LinkedList<number>();
    const [, second] = [list.add(1), list.add(2), list.add(3)];
    assert.equal(list.remove(second), true);
    assert.deepEqual([second.list, second.before, second.behind], [undefined, undefined, undefined]);
    assert.equal(list.remove(second), false);
  });

  it('takes no place of another list', () => {
    const place = new LinkedList<number>().add(1);
    const other = new LinkedList<number>();
    other.add(2);
    assert.equal(other.remove(place), false);
    assert.equal(other.size, 1);
  });
});
