/** Valid patterns that are known to be slow in some engine. */
export const PATTERNS: Readonly<Record<string, string>> = {
  alternatives: '^(a|a)*$',
  overlapping: '^(a|aa)+$',
  optional: '^(a?b?c?d?)?$',
  polynomial: 'a*a*a*a*a*a*b',
  trimming: '\\s*$',
  email: '^[a-z0-9._]+@[a-z0-9-]+\\.[a-z0-9.-]+$',
  words: '^[a-z]+ [a-z]+ [a-z]+ [a-z]+$',
  version: '^\\d+\\.\\d+\\.\\d+[-+.\\w]*$',
  digits: '^\\d{1,3}(,\\d{3})*(\\.\\d+)?$',
  wide: '.*.*=.*',
  classes: '[^=]*[^=]*=',
  groups: '(.*)(.*)=',
  digest: '^(?:[a-z]|[a-z0-9]){64}$',
  counted: '^(a?){60}a{60}$',
  nested: '^(a+)+$',
  lists: '^(?:.*?,){13}P',
  'many ranges': '(?:[\\w.:-]|[^a]){200}!',
};

/** Texts that make a backtracking engine retry; the end of each prevents a match. */
const PUMPS: readonly (readonly [before: string, pumped: string, after: string])[] = [
  ['', 'a', '!'],
  ['', 'aa', '\u0000'],
  ['', ' ', 'x'],
  ['', '1', 'x'],
  ['', '1,111', 'x'],
  ['', '0.', '.'],
  ['', '-', '\n'],
  ['', 'a.', '@'],
  ['a@', 'a.a-', '\n'],
  ['a', '@', 'a'],
  ['http://', 'a:@', '['],
  ['http://[', '::', ']'],
  ['//', '%41', '%'],
  ['', '{a}', '{'],
  ['', ':', ':'],
  ['', '1:', 'z'],
  ['', '/~0', '~'],
  ['#', '/%41', '%'],
  ['P', '1D', 'T'],
  ['2020-01-01T00:00:00.', '0', 'x'],
  ['', '(a*)*', '('],
  ['', '[', '\\'],
  ['', 'QUFB', '='],
  ['', '=', '\n'],
  ['', 'a a ', '!'],
];

/** All of them at `length` characters. */
export function slowTexts(length: number): readonly string[] {
  return PUMPS.map(([before, pumped, after]) => {
    const room = length - before.length - after.length;
    return before + pumped.repeat(Math.floor(room / pumped.length)) + after;
  });
}
