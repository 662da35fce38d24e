import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { pages } from './sources.ts';

/** They hide who is meant: a caller, a payer, an operator, a user of the cluster. */
const VAGUE = /\b(?:nobody|somebody|everybody|anybody|whoever)\b/i;

describe('the prose', () => {
  it('says who is meant', () => {
    const vague = pages
      .filter((file) => file !== 'spec/tidy/prose.spec.ts')
      .flatMap((file) =>
        readFileSync(file, 'utf8')
          .split('\n')
          .flatMap((line, index) => (VAGUE.test(line) ? [`${file}:${index + 1}`] : [])),
      );
    assert.deepEqual(vague, []);
  });
});
