import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withBothLines } from '../../src/config/two-lines.ts';
import { ProblemList } from '../../src/problems/problem.ts';

function read(document: object): unknown {
  const problems = new ProblemList();
  const result = withBothLines(document, problems);
  problems.throwIfAny();
  return result;
}

describe('a token of two lines', () => {
  it('is two operator tokens', () => {
    const server = { adminToken: 'new', adminTokenNext: 'old' };
    assert.deepEqual(read({ server: { adminToken: 'new\nold' } }), { server });
    assert.deepEqual(read({ server: { adminToken: 'new\r\nold\r\n' } }), { server });
  });

  it('is one where the second line is missing', () => {
    assert.deepEqual(read({ server: { adminToken: 'one' } }), { server: { adminToken: 'one' } });
  });

  it('is refused beside a third token', () => {
    assert.throws(() => read({ server: { adminToken: 'new\nold', adminTokenNext: 'third' } }), /adminTokenNext/);
  });

  it('of three lines stays as it is, for the schema to refuse', () => {
    assert.deepEqual(read({ server: { adminToken: 'a\nb\nc' } }), { server: { adminToken: 'a\nb\nc' } });
  });

  it('is two tokens of the one checkout client, and of a client of the list', () => {
    assert.deepEqual(read({ protocols: { acp: { auth: { token: 'new\nold' } } } }), {
      protocols: { acp: { auth: { clients: [{ id: 'default', tokens: ['new', 'old'] }] } } },
    });
    const clients = [{ id: 'a', tokens: ['new\nold'] }];
    assert.deepEqual(read({ protocols: { acp: { auth: { clients } } } }), {
      protocols: { acp: { auth: { clients: [{ id: 'a', tokens: ['new', 'old'] }] } } },
    });
  });

  it('changes nothing of a document that is none', () => {
    for (const document of [null, 7, 'text', [], { server: 7, protocols: [] }])
      assert.deepEqual(withBothLines(document, new ProblemList()), document);
  });
});
