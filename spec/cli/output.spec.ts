import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Command } from 'commander';
import {
  addFormatOptions,
  type FormatArgs,
  type Output,
  printList,
  printStream,
  printWhole,
  type Shape,
  visible,
} from '../../src/cli/output.ts';

interface Sale {
  readonly name: string;
  readonly units: number;
  readonly note?: string;
}

const SALES: readonly Sale[] = [
  { name: 'report', units: 7 },
  { name: 'ä', units: 1_250, note: 'late' },
];
const SHAPE: Shape<Sale> = {
  table: [
    { title: 'NAME', value: ({ name }) => name, style: () => 'red', width: 8 },
    { title: 'UNITS', value: ({ units }) => units, right: true },
    { title: 'NOTE', value: ({ note }) => note },
  ],
  csv: { name: ({ name }) => name, units: ({ units }) => units, note: ({ note }) => note },
};
const ESCAPE = '\u001b';
/** Cursor up, C1 control sequence, turned direction, line separator, half of a pair, a tag. */
const HOSTILE = `${ESCAPE}[1A \u009b2J \u202e \u2028 \ud800 \u{e0041}`;
const SPELLED = '\\u{1b}[1A \\u{9b}2J \\u{202e} \\u{2028} \\u{d800} \\u{e0041}';

interface Recording extends Output {
  text(): string;
}

function recording(facts: { readonly isTTY?: boolean; readonly colours?: boolean } = {}): Recording {
  const texts: string[] = [];
  return {
    write: (text) => texts.push(text),
    ...(facts.isTTY === undefined ? {} : { isTTY: facts.isTTY }),
    hasColors: () => facts.colours === true,
    text: () => texts.join(''),
  };
}

function listed(rows: readonly Sale[], args: FormatArgs, out: Recording): string {
  printList({ rows, document: { sales: rows }, none: 'no sales' }, SHAPE, args, out);
  return out.text();
}

describe('a list', () => {
  it('on a terminal is a table whose columns stand one below the other', () => {
    assert.equal(
      listed(SALES, {}, recording({ isTTY: true })),
      ['NAME    UNITS  NOTE', 'report      7', 'ä        1250  late', ''].join('\n'),
    );
    assert.equal(listed([], {}, recording({ isTTY: true })), 'no sales\n');
  });

  it('in a pipe, and with --json, is one JSON document', () => {
    for (const text of [listed(SALES, {}, recording()), listed(SALES, { json: true }, recording({ isTTY: true }))])
      assert.deepEqual(JSON.parse(text), { sales: SALES });
    assert.deepEqual(JSON.parse(listed([], {}, recording())), { sales: [] });
  });

  it('has colours on a terminal that shows them, never with NO_COLOR', (context) => {
    const coloured = () => listed(SALES, {}, recording({ isTTY: true, colours: true }));
    assert.match(coloured(), new RegExp(`${ESCAPE}\\[31mreport${ESCAPE}\\[39m {6}7`));
    assert.doesNotMatch(listed(SALES, {}, recording({ isTTY: true })), new RegExp(ESCAPE));
    assert.doesNotMatch(listed(SALES, {}, recording({ colours: true })), new RegExp(ESCAPE));
    const before = process.env['NO_COLOR'];
    context.after(() => {
      if (before === undefined) delete process.env['NO_COLOR'];
      else process.env['NO_COLOR'] = before;
    });
    process.env['NO_COLOR'] = '1';
    assert.doesNotMatch(coloured(), new RegExp(ESCAPE));
  });

  it('as CSV follows RFC 4180 and holds no formula', () => {
    const rows = [
      { name: 'a,"b"', units: -1, note: ' edge' },
      ...['=1+1', '+1', '-1', '@SUM(A1)', '\uff1d1'].map((name) => ({ name, units: 0 })),
      { name: 'a=1', units: 0 },
    ];
    assert.deepEqual(listed(rows, { csv: true }, recording({ isTTY: true })).split('\r\n'), [
      'name,units,note',
      '"a,""b""",-1," edge"',
      ...["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\uff1d1"].map((name) => `${name},0,`),
      'a=1,0,',
      '',
    ]);
  });

  it('never has a character that a terminal acts on, in any format', () => {
    const rows = [{ name: HOSTILE, units: 1, note: 'a\r\nb\tc' }];
    const unsafe = /(?!\r?\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
    for (const args of [{}, { json: true }, { csv: true }]) {
      const text = listed(rows, args, recording({ isTTY: true }));
      assert.doesNotMatch(text, unsafe, JSON.stringify(args));
      if (args.json === true) assert.deepEqual(JSON.parse(text), { sales: rows });
      else assert.ok(text.includes(SPELLED), text);
      if (args.json !== true) assert.equal(text.trimEnd().split(/\r?\n/).length, 2, 'a value is no line of its own');
    }
    assert.equal(visible(HOSTILE), SPELLED);
  });
});

describe('a stream of rows', () => {
  const streamed = (args: FormatArgs, out: Recording): string => {
    const print = printStream(SHAPE, args, out);
    for (const sale of SALES) print(sale);
    return out.text();
  };

  it('is JSON lines in a pipe, a table with fixed columns on a terminal, and CSV', () => {
    const lines = streamed({}, recording()).trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      SALES,
    );
    assert.equal(
      streamed({}, recording({ isTTY: true })),
      ['NAME      UNITS  NOTE', 'report        7', 'ä          1250  late', ''].join('\n'),
    );
    assert.equal(streamed({ csv: true }, recording()), 'name,units,note\r\nreport,7,\r\nä,1250,late\r\n');
  });

  it('has its titles before the first row', () => {
    const out = recording({ isTTY: true });
    printStream(SHAPE, {}, out);
    assert.equal(out.text(), 'NAME      UNITS  NOTE\n');
  });
});

describe('one thing', () => {
  it('has a line for each member on a terminal, and is JSON in a pipe', () => {
    const document = { id: 'r1', payment: { amount: '0.01', payer: HOSTILE }, tags: ['a'] };
    const terminal = recording({ isTTY: true });
    printWhole(document, {}, terminal);
    assert.equal(
      terminal.text(),
      ['id              r1', 'payment.amount  0.01', `payment.payer   ${SPELLED}`, 'tags.0          a', ''].join('\n'),
    );
    const pipe = recording();
    printWhole(document, {}, pipe);
    assert.deepEqual(JSON.parse(pipe.text()), document);
  });
});

describe('the options of a format', () => {
  it('exclude each other', () => {
    const command = addFormatOptions(new Command('list').exitOverride().configureOutput({ writeErr: () => undefined }));
    assert.throws(() => command.parse(['--json', '--csv'], { from: 'user' }), { code: 'commander.conflictingOption' });
  });
});
