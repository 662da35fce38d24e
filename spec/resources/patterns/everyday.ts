/** A pattern as operators write it, with texts that match and texts that do not. */
export type Everyday = readonly [name: string, pattern: string, yes: readonly string[], no: readonly string[]];

const r = String.raw;

export const EVERYDAY: readonly Everyday[] = [
  ['mail', r`^[^\s@]+@[^\s@]+\.[^\s@]+$`, ['a@b.co'], ['a@b', 'a b@c.de']],
  [
    'mail of HTML',
    r`^[a-zA-Z0-9.!#$%&'*+/=?^_{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`,
    ['a@b', 'a@b-c.de'],
    ['a@-b', 'a@b..c'],
  ],
  [
    'UUID, version and variant',
    r`^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`,
    ['123E4567-e89b-12d3-a456-426614174000'],
    ['123e4567-e89b-12d3-a456-42661417400'],
  ],
  ['E.164', r`^\+[1-9]\d{1,14}$`, ['+4915112345678'], ['+0123', '4915112345678']],
  [
    'telephone, North America',
    r`^(?:\+?1[-. ]?)?\(?\d{3}\)?[-. ]?\d{3}[-. ]?\d{4}$`,
    ['+1 (212) 555-0100', '2125550100'],
    ['12345'],
  ],
  ['date, sound months and days', r`^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$`, ['2026-12-31'], ['2026-13-01']],
  [
    'instant',
    r`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$`,
    ['2026-01-02T03:04:05.6Z'],
    ['2026-01-02'],
  ],
  ['URL, https', r`^https://`, ['https://shop.example'], ['http://shop.example']],
  [
    'URL with host and port',
    r`^https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[^\s?#]*)?(?:\?[^\s#]*)?(?:#\S*)?$`,
    ['https://a.b:80/c?d#e'],
    ['https://a b'],
  ],
  [
    'IPv4',
    r`^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)$`,
    ['255.0.10.1'],
    ['256.0.0.1', '1.2.3'],
  ],
  ['MAC', r`^(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$`, ['00:1a:2B:3c:4d:5e'], ['00:1a']],
  ['SHA-512 digest', r`^[A-Fa-f0-9]{128}$`, ['aF'.repeat(64)], ['a'.repeat(127)]],
  ['address of Ethereum', r`^0x[a-fA-F0-9]{40}$`, [`0x${'aB'.repeat(20)}`], [`0x${'a'.repeat(39)}`]],
  ['base64', r`^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`, ['', 'YQ==', 'YWJj'], ['YQ=', 'a']],
  ['JWT', r`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`, ['a.b.c'], ['a.b']],
  ['user name', r`^[a-zA-Z][a-zA-Z0-9_]{2,31}$`, ['ada_1'], ['1a', 'ab']],
  ['SKU', r`^[A-Z]{2,4}-\d{3,6}(?:-[A-Z0-9]+)?$`, ['AB-123-X1'], ['A-123']],
  ['country', r`^(?:[A-Z]{2}|[A-Z]{3})$`, ['DE', 'DEU'], ['D']],
  ['amount', r`^(?:0|[1-9]\d*)(?:\.\d{1,2})?$`, ['0', '12.50'], ['01', '1.']],
  ['integer', r`^-?(?:0|[1-9][0-9]*)$`, ['-10'], ['01']],
  ['IBAN', r`^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$`, ['DE89370400440532013000'], ['DE8']],
  ['number of a card', r`^(?:\d{4}[ -]?){3}\d{4}$`, ['4111 1111 1111 1111'], ['4111']],
  ['postal code, UK', r`^[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}$`, ['SW1A 1AA'], ['123']],
  ['ISBN-13', r`^97[89]-?\d{1,5}-?\d{1,7}-?\d{1,7}-?\d$`, ['978-3-16-148410-0'], ['977-3']],
  ['colour', r`^#(?:[0-9a-fA-F]{3}){1,2}$`, ['#fff', '#A0b1C2'], ['#ffff']],
  ['media type', r`^[\w.+-]+/[\w.+-]+$`, ['application/ld+json'], ['text']],
  ['name of a file', r`^[^<>:"/\\|?*\x00-\x1f]{1,255}$`, ['report (1).pdf'], ['a/b', '']],
  ['no blanks at the ends', r`^\S(?:.*\S)?$`, ['a b'], [' a', 'a ']],
  ['person', r`^[A-Za-zÀ-ÖØ-öø-ÿ' -]{1,100}$`, ["Zoë O'Neil-Müller"], ['a1']],
  ['list of tags', r`^[a-z0-9]+(?:,[a-z0-9]+){0,9}$`, ['a,b,c'], ['a,,b']],
  ['CAIP-2', r`^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$`, ['eip155:8453'], ['x:1']],
  ['enumeration', r`^(?:small|medium|large)$`, ['medium'], ['mediums']],
  ['ticker', r`^[A-Z]{1,5}(?:\.[A-Z]{1,2})?$`, ['BRK.B'], ['brk']],
];

/** Ordinary patterns that are refused, and what to write instead. */
export const FALSE_REFUSALS: readonly (readonly [name: string, pattern: string, reason: RegExp, instead: string])[] = [
  [
    'password',
    r`^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,64}$`,
    /look-around/,
    'allOf of four patterns: [a-z], [A-Z], [0-9] and ^.{8,64}$',
  ],
  [
    'password with a sign',
    r`^(?=.*[A-Za-z])(?=.*\d)(?=.*[@$!%*#?&])[A-Za-z\d@$!%*#?&]{8,}$`,
    /look-around/,
    'allOf of patterns',
  ],
  [
    'host name with a length',
    r`^(?=.{1,253}$)(?:[a-z0-9-]{1,63}\.)+[a-z]{2,63}$`,
    /look-around/,
    'maxLength: 253 beside the rest',
  ],
  ['not admin', r`^(?!admin$)[a-z]+$`, /look-around/, 'not: { const: admin } beside ^[a-z]+$'],
  [
    'user name without two underscores',
    r`^(?!.*__)[a-z0-9_]{3,20}$`,
    /look-around/,
    'not: { pattern: __ } beside the rest',
  ],
  [
    'amount with groups of thousands',
    r`^\d{1,3}(?:,(?=\d{3})\d{3})*$`,
    /look-around/,
    'the same without the look-ahead',
  ],
  [
    'letters of any language',
    r`^\p{L}+$`,
    /Unicode mode/,
    'a class of the letters that are wanted, such as [A-Za-zÀ-ÿ]',
  ],
  ['quoted text', r`^(["']).*\1$`, /back-reference/, '^(?:".*"|\'.*\')$'],
  ['doubled word', r`\b(\w+) \1\b`, /back-reference/, 'a check in the backend: no linear pattern compares'],
  ['emoji', '^[\u{1f600}-\u{1f64f}]$', /U\+FFFF/, 'a check in the backend'],
  ['a list of a hundred words', r`^(?:\w{1,30} ?){1,100}$`, /takes [\d,]+ steps/, 'maxLength beside ^(?:\\w+ ?)+$'],
];
