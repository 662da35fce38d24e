import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judge, rootsByDefinition } from './edits/judge.ts';
import { allEdits, ownVectors } from './edits.ts';

describe('the own vectors notice every edit of a schema', () => {
  const roots = rootsByDefinition();
  const sets = [['vectors', ownVectors()]] as const;
  // The small ones: all of them take minutes (edits.ts run by hand).
  for (const file of ['error', 'discovery', 'request CancelSessionRequest', 'request MarketingConsent'])
    it(`of ${file}`, () => {
      const edits = allEdits(file);
      assert.ok(edits.length > 0);
      for (const edit of edits)
        assert.equal(
          judge(edit, roots.get(`${edit.file}#/$defs/${edit.definition}`) ?? [], sets),
          'vectors',
          edit.title,
        );
    });
});

describe('every definition', () => {
  it('is reached from a document', () => {
    const reached = rootsByDefinition();
    for (const { file, definition } of allEdits())
      assert.ok(reached.has(`${file}#/$defs/${definition}`), `nothing refers to ${definition} of ${file}`);
  });
});
