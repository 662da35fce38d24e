import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sources, texts } from './sources.ts';

/** Words of an older vocabulary, and what stands for them (docs/glossary.md). */
const REPLACED: Readonly<Record<string, string>> = {
  backlog: 'write queue',
  cashier: 'settler',
  doorway: 'load shedder',
  NothingOwed: 'SafeToRechallenge',
  presenter: 'response writer',
  vitalSigns: 'processGauges',
};

/** What opens the apps of a gateway. */
const OPENER = /\bcreateGateway\b[^;]*from '[^']*app\/gateway\.ts'/;
const COMMENT_LINE = /^\s*(?:\/\*\*|\*|\/\/)(?!.*biome-ignore)/;
/** Columns. */
const WIDEST_COMMENT = 100;

const EXPORT = /^export (?:async )?(?:abstract )?(?:function\*?|const|interface|type|class) ([A-Za-z0-9_]+)/gm;
const WORD = /[A-Za-z_$][\w$]*/g;

describe('the sources', () => {
  it('export nothing that no other file names', () => {
    const named = new Map([...texts].map(([file, text]) => [file, new Set(text.match(WORD))] as const));
    const unused = [...texts.keys()]
      .filter((file) => /^(?:src|tools)\/.*\.ts$/.test(file))
      .flatMap((file) =>
        [...(texts.get(file) ?? '').matchAll(EXPORT)]
          .map(([, name = '']) => name)
          .filter((name) => ![...named].some(([other, words]) => other !== file && words.has(name)))
          .map((name) => `${file}: ${name}`),
      );
    assert.deepEqual(unused, []);
  });

  // A client may leave while its request is read: such a response has no `close` event to come.
  it('wait for the end of a response through onceClosed', () => {
    const waiting = sources.filter(
      (file) =>
        /^src\/(?!server\/listener\/|server\/http\/access-record)/.test(file) &&
        /\bres\)?\.(?:once|on)\('close'/.test(texts.get(file) ?? ''),
    );
    assert.deepEqual(waiting, []);
  });

  it('begin each module with what it is for', () => {
    const silent = sources.filter((file) => !/^(?:#![^\n]*\n)?\/\*\*/.test(texts.get(file) ?? ''));
    assert.deepEqual(silent, []);
  });

  it('have no comment wider than a reader wants it', () => {
    const wide = [...texts].flatMap(([file, text]) =>
      text
        .split('\n')
        .map((line, index) => ({ line, at: `${file}:${index + 1}` }))
        .filter(({ line }) => COMMENT_LINE.test(line) && line.length > WIDEST_COMMENT)
        .map(({ at }) => at),
    );
    assert.deepEqual(wide, []);
  });

  it('open gateways in spec/support alone', () => {
    const opening = [...texts.keys()].filter(
      (file) => /^(?:spec|verification)\//.test(file) && OPENER.test(texts.get(file) ?? ''),
    );
    assert.deepEqual(opening, ['spec/support/gateway.ts']);
  });

  for (const [word, instead] of Object.entries(REPLACED))
    it(`say ${instead} where they said ${word}`, () => {
      const spelled = new RegExp(`\\b${word}\\b`, 'i');
      assert.deepEqual(
        sources.filter((file) => spelled.test(texts.get(file) ?? '')),
        [],
      );
    });
});
