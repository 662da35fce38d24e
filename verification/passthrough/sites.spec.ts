import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { measureSite, PYTHON_SITES } from './sites.ts';

/** `main.ts` sends all. */
const EVERY = 3;

for (const kind of PYTHON_SITES)
  describe(`what is sold by ${kind.name}`, () => {
    it('is reached by no header field and no second name, and what passes is as before', async () => {
      const outcome = await measureSite(kind, EVERY);
      assert.ok(outcome.bare.length >= 10, 'the requests reach nothing without the gateway');
      assert.ok(outcome.bare.some(({ headers }) => headers !== undefined));
      assert.deepEqual([outcome.leaked, outcome.unnamed, outcome.changed], [[], [], []]);
    });
  });
