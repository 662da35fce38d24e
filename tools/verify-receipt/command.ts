/** `acg verify-receipt`: says what the signed documents of a purchase show. No network. */

import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { visible } from '../../src/cli/output.ts';
import { defineCommand, NoInputError } from '../../src/cli/program.ts';
import { isObject, type JsonObject, parseStrictJson } from '../../src/json/json.ts';
import { checkTogether, readKept } from './documents.ts';
import { checkAnswer, type FindKey, keysOfDid, keysOfSet, NotGenuine, readSigned, type Signed } from './signed.ts';

interface Args {
  readonly answer?: string;
  readonly did?: string;
  readonly jwks?: string;
}

export function verifyReceiptCommand(): Command {
  const about = `Says what a signed receipt, offer or statement of a gateway shows, without any network. FILE: a PAYMENT-RESPONSE or
PAYMENT-REQUIRED header or its JSON, the answer of /api/purchases, or one JWS. Ends with 1 unless all that is signed
verifies and nothing in it says otherwise; members that nothing signs are named.`;
  return defineCommand('verify-receipt', about, 'acg verify-receipt receipt.txt --did did.json --answer report.json')
    .argument('<file>')
    .option('--answer <file>', 'the bytes that were delivered')
    .addOption(new Option('--did <file>', "the merchant's /.well-known/did.json").conflicts('jwks'))
    .option('--jwks <file>', "or the merchant's /.well-known/jwks.json")
    .action((file: string, args: Args) => {
      const content = readFileSync(file, 'utf8');
      const answer = args.answer === undefined ? undefined : readFileSync(args.answer);
      const { lines, verified } = judge(content, { findKey: findKeyOf(args), answer });
      for (const line of lines) process.stdout.write(`${visible(line)}\n`);
      process.exitCode = verified ? 0 : 1;
    });
}

function findKeyOf({ did, jwks }: Args): FindKey | undefined {
  const file = did ?? jwks;
  if (file === undefined) return undefined;
  const text = readFileSync(file);
  try {
    const document = parseStrictJson(text);
    if (!isObject(document)) throw new Error('it is no JSON object');
    return did === undefined ? keysOfSet(document) : keysOfDid(document);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'it is no JSON';
    throw new NoInputError(`${file} has no keys: ${why}`);
  }
}

/** The lines that tell what a file shows, and whether all that is signed verifies. */
export function judge(
  content: string,
  { findKey, answer }: { readonly findKey: FindKey | undefined; readonly answer: Uint8Array | undefined },
): { readonly lines: readonly string[]; readonly verified: boolean } {
  const lines: string[] = [];
  try {
    const kept = readKept(content);
    const signed = kept.signed.map((text) => readSigned(text, findKey));
    const unsigned = checkTogether(signed, kept);
    for (const one of signed) lines.push(...linesOf(one));
    for (const path of unsigned) lines.push(`not signed, and shows nothing: ${path}`);
    if (answer !== undefined) lines.push(answerLine(signed, answer));
    if (findKey !== undefined) return { lines, verified: true };
    lines.push('NOT VERIFIED: no signature was checked; give the keys of the merchant with --did or --jwks');
  } catch (fault) {
    if (!(fault instanceof NotGenuine)) throw fault;
    lines.push(`REFUSED: ${fault.message}`);
  }
  return { lines, verified: false };
}

function answerLine(signed: readonly Signed[], bytes: Uint8Array): string {
  const statement = signed.find(({ kind }) => kind === 'statement');
  if (statement === undefined) throw new NotGenuine('only a statement says which answer was delivered');
  checkAnswer(statement, bytes);
  return `the answer is the one that was delivered: ${bytes.byteLength} bytes`;
}

const HEADLINES: Readonly<Record<Signed['kind'], string>> = {
  receipt: 'receipt: the merchant took this payment and accepted to deliver; not that it was delivered',
  offer: 'offer: the merchant sells at this price until it ends',
  statement: 'statement: what became of the purchase',
};

function linesOf({ kind, payload, kid, verified }: Signed): readonly string[] {
  const [did, fragment] = kid.split('#');
  return [
    HEADLINES[kind],
    `  ${verified ? 'signed by' : 'says that it is signed by'} key ${fragment} of ${did}`,
    ...membersOf(payload, ''),
  ];
}

/** Each member in a line; times are said as dates too. */
function membersOf(payload: JsonObject, prefix: string): readonly string[] {
  return Object.entries(payload).flatMap(([name, value]) => {
    if (isObject(value)) return membersOf(value, `${prefix}${name}.`);
    const isTime = typeof value === 'number' && /(?:At|Until)$/.test(name) && value < 1e11;
    return [`  ${prefix}${name} ${String(value)}${isTime ? ` (${new Date(value * 1_000).toISOString()})` : ''}`];
  });
}
