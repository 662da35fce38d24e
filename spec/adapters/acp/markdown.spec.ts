import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasRawHtml } from '../../../src/adapters/acp/markdown.ts';

/** Markdown without raw HTML, by what makes it so. */
const LEGAL: Readonly<Record<string, string>> = {
  'plain text': 'Ships in *two* days.\n\n- one\n- two',
  'a comparison': '1 < 2 and a <- b, x <3',
  'an autolink': 'See <https://shop.example/a?b=c#d>.',
  'an autolink of a mail address': 'Write to <help+shop@mail.shop.example>.',
  'inline code': 'Type `<b>` and ``<i>`</i>``.',
  'two code spans in a line': '`<b>` and `</b>`',
  'code that ends with a backslash': '`<b>\\`',
  'fenced code': 'Before\n\n```html\n<b>bold</b>\n```\n\nafter',
  'tildes as a fence': '~~~ `x`\n<b>\n~~~',
  'a fence of four around one of three': '````\n```\n<b>\n````',
  'a fence that is never closed': '```\n<b>',
  'an indented fence': '  ```\n<b>\n   ```\ntext',
  'line ends of Windows': '```\r\n<b>\r\n```\r\ntext',
  'fenced code behind a list': '- one\n- two\n\n```\n<b>\n```',
};

/** Raw HTML, by where it hides. */
const RAW: Readonly<Record<string, string>> = {
  'an element': 'Hello <b>you</b>',
  'a closing tag': 'Hello </b>',
  'a comment': 'Hello <!-- you -->',
  'an instruction': 'Hello <?php ?>',
  'a tag that never ends': 'Hello <img src=x onerror=alert(1)',
  'no autolink, for a space in it': '<https://shop.example/ onclick=x>',
  'no autolink, for a scheme of one letter': '<a:b>',
  'no autolink, for the end of the text': '<https://shop.example',
  'a code span that is never closed': '`<b>',
  'a code span closed by a run of another length': '``<b>`',
  'behind a code span': '`code` <b>',
  'between two code spans': '`a`<b>`c`',
  'a span that a blank line ends': '`a\n\n<b>`',
  'a span from the line before that ends here': '`a\n`<b>`',
  'an escaped backtick': '\\`<b>`',
  'after the fence': '```\n<b>\n```\n<i>',
  'a fence closed by a longer one': '```\na\n`````\n<b>',
  'not closed by white space of another kind': '```\n```\u00a0\n```\n<b>',
  'a fence whose info string has a backtick': '``` a`b\n<b>',
  'four spaces are no fence': '    ```\n<b>',
  'a tab is no fence': '\t```\n<b>',
  'behind a fence in an item, which ends with the item': '- ```\n  ```\n  <b>',
  'a fence in an item that the next line is not in': '- a\n\n  ```\n<b>',
  'a fence in an inner item closed by the outer one': '- - a\n\n    ```\n  ```\n<b>',
  'behind a list, in a fence that an unindented one closes': '- a\n\nb\n\n  ```\n```\n<b>',
  'a fence in a quotation that ends': '> ```\n<b>',
  'in a quotation': '> <b>',
};

describe('Markdown of a backend', () => {
  for (const [what, text] of Object.entries(LEGAL)) it(`may be ${what}`, () => assert.equal(hasRawHtml(text), false));
  for (const [what, text] of Object.entries(RAW))
    it(`is raw HTML: ${what}`, () => assert.equal(hasRawHtml(text), true));

  const SIZE = 262_144;
  const hostile: Readonly<Record<string, string>> = {
    'opening angle brackets': '<'.repeat(SIZE),
    'angle brackets and dots': '<.'.repeat(SIZE / 2),
    'backtick runs of growing length': Array.from({ length: 700 }, (_, n) => '`'.repeat(n + 1)).join(' '),
    'single backticks': '` '.repeat(SIZE / 2),
    'one run of backticks': '`'.repeat(SIZE),
    'a fence that nearly closes on every line': `\`\`\`\n${'``` x\n'.repeat(SIZE / 6)}`,
    'spaces behind a fence': `\`\`\`\n\`\`\`${' '.repeat(SIZE)}x`,
    'list markers': `${'1. '.repeat(SIZE / 3)}`,
    'digits of a list': '1'.repeat(SIZE),
    'mail addresses that fail': `<1@${'a-'.repeat(SIZE / 2)}`,
    'labels of a mail address': `<1@${'a.'.repeat(SIZE / 2)}`,
    'autolinks that fail': '<1ab:'.repeat(SIZE / 5),
    'blank lines': '\n'.repeat(SIZE),
  };
  it('costs linear time, whatever it is', () => {
    for (const [what, text] of Object.entries(hostile)) {
      // Time of this process alone: the machine may be busy.
      const since = process.cpuUsage();
      hasRawHtml(text);
      const { user, system } = process.cpuUsage(since);
      // Quadratic time would be some minutes.
      assert.ok(user + system < 2_000_000, `${what}: ${user + system} µs`);
    }
  });
});
