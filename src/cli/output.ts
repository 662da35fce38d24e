/** Prints what a command found: a table for people, JSON or CSV for programs. */

import { styleText } from 'node:util';
import { type Command, Option } from 'commander';

/** The output of a command; `process.stdout` is one. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  /** Whether the terminal shows colours, by its type and the environment. */
  hasColors?(): boolean;
}

/** The values of the options of `addFormatOptions`. */
export interface FormatArgs {
  readonly json?: boolean;
  readonly csv?: boolean;
}

type Cell = string | number | boolean | undefined;
type Style = Parameters<typeof styleText>[0];

/** A column of a table. */
interface Column<Row> {
  readonly title: string;
  value(row: Row): Cell;
  /** Numbers stand at the right. */
  readonly right?: boolean;
  readonly style?: (row: Row) => Style | undefined;
  /** Characters that most values fit in, for rows that are printed one by one. */
  readonly width?: number;
}

/** How rows of one kind are shown. */
export interface Shape<Row> {
  readonly table: readonly Column<Row>[];
  /** Columns of CSV by their names, which programs rely on. */
  readonly csv: Readonly<Record<string, (row: Row) => Cell>>;
}

/** Columns of CSV for members of a row, under their names. */
export function members<Name extends string>(
  ...names: readonly Name[]
): Record<string, (row: { readonly [Member in Name]?: Cell }) => Cell> {
  return Object.fromEntries(names.map((name) => [name, (row) => row[name]]));
}

/** A whole list, with the parts that only one of the formats has. */
interface List<Row> {
  readonly rows: readonly Row[];
  /** JSON prints it instead of the rows. */
  readonly document: object;
  /** The line on a terminal where there are no rows. */
  readonly none: string;
}

/** Control characters, marks that turn the direction of text, halves of characters, separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** A cell that a spreadsheet would compute; some also take the wide forms. */
const FORMULA = /^[=+\-@\uff1d\uff0b\uff0d\uff20]/;
const GAP = '  ';

/** Adds `--json` and `--csv`; without them a terminal gets a table, and a pipe JSON. */
export function addFormatOptions(command: Command): Command {
  return command
    .addOption(new Option('--json', 'JSON on a terminal too, as a pipe gets it').conflicts('csv'))
    .option('--csv', 'CSV instead');
}

/** Prints a whole list. JSON is one document. */
export function printList<Row>(
  { rows, document, none }: List<Row>,
  shape: Shape<Row>,
  args: FormatArgs,
  out: Output = process.stdout,
): void {
  const format = formatOf(args, out);
  if (format === 'json') out.write(`${jsonText(document)}\n`);
  else if (format === 'csv') for (const line of [csvTitles(shape), ...rows.map(csvLine(shape))]) out.write(line);
  else if (rows.length === 0) out.write(`${none}\n`);
  else out.write(tableText(rows, shape.table, out));
}

/** Prints rows as they come: JSON lines; CSV or a table, its titles first. */
export function printStream<Row>(
  { table, csv }: Shape<Row>,
  args: FormatArgs,
  out: Output = process.stdout,
): (row: Row) => void {
  const format = formatOf(args, out);
  if (format === 'json') return (row) => out.write(`${inOneLine(row)}\n`);
  if (format === 'csv') {
    out.write(csvTitles({ csv }));
    const line = csvLine<Row>({ csv });
    return (row) => out.write(line(row));
  }
  const widths = table.map(({ title, width = title.length }) => width);
  out.write(titleLine(table, widths, out));
  return (row) => out.write(tableLine(row, table, widths, out));
}

/** Prints one thing with all its members: a line each on a terminal, else JSON. */
export function printWhole(document: object, { json }: Pick<FormatArgs, 'json'>, out: Output = process.stdout): void {
  if (json === true || out.isTTY !== true) {
    out.write(`${jsonText(document)}\n`);
    return;
  }
  const members = membersOf(document);
  const width = Math.max(...members.map(([name]) => name.length));
  for (const [name, value] of members)
    out.write(`${styled('dim', name.padEnd(width), out)}${GAP}${visible(String(value))}\n`);
}

/** A text of a peer, in which the characters are spelled that a terminal would act on. */
export function visible(text: string): string {
  return text.replace(UNPRINTABLE, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Styles a text where the output is a terminal with colours. */
function styled(style: Style | undefined, text: string, out: Output): string {
  const wanted = style !== undefined && out.isTTY === true && (process.env['NO_COLOR'] ?? '') === '';
  return wanted && out.hasColors?.() === true ? styleText(style, text, { validateStream: false }) : text;
}

function formatOf({ json, csv }: FormatArgs, { isTTY }: Output): 'table' | 'json' | 'csv' {
  if (csv === true) return 'csv';
  return json === true || isTTY !== true ? 'json' : 'table';
}

function jsonText(document: object): string {
  return spelled(JSON.stringify(document, undefined, 2));
}

function inOneLine(row: unknown): string {
  return spelled(JSON.stringify(row));
}

/** JSON escapes only some of these characters by itself. Line ends between members stay. */
function spelled(json: string): string {
  return json.replace(UNPRINTABLE, (char) =>
    char === '\n' ? char : Array.from(char.split(''), (unit) => `\\u${hex4(unit.charCodeAt(0))}`).join(''),
  );
}

function hex4(code: number): string {
  return code.toString(16).padStart(4, '0');
}

function csvTitles({ csv }: Pick<Shape<never>, 'csv'>): string {
  return `${Object.keys(csv).map(csvCell).join(',')}\r\n`;
}

function csvLine<Row>({ csv }: Pick<Shape<Row>, 'csv'>): (row: Row) => string {
  const values = Object.values(csv);
  return (row) => `${values.map((value) => csvCell(value(row))).join(',')}\r\n`;
}

/** RFC 4180. An apostrophe before a formula makes a spreadsheet take it as text. */
function csvCell(value: Cell): string {
  if (typeof value !== 'string') return String(value ?? '');
  const text = `${FORMULA.test(value) ? "'" : ''}${visible(value)}`;
  return /[",]|^ | $/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function tableText<Row>(rows: readonly Row[], columns: readonly Column<Row>[], out: Output): string {
  const widths = columns.map((column) =>
    rows.reduce((widest, row) => Math.max(widest, lengthOf(cellText(column, row))), column.title.length),
  );
  return titleLine(columns, widths, out) + rows.map((row) => tableLine(row, columns, widths, out)).join('');
}

function titleLine<Row>(columns: readonly Column<Row>[], widths: readonly number[], out: Output): string {
  const cells = columns.map(({ title, right }, index) => inCell(title, title, widths[index] ?? 0, right));
  return `${styled('bold', cells.join(GAP).trimEnd(), out)}\n`;
}

function tableLine<Row>(row: Row, columns: readonly Column<Row>[], widths: readonly number[], out: Output): string {
  const cells = columns.map((column, index) => {
    const text = cellText(column, row);
    return inCell(text, styled(column.style?.(row), text, out), widths[index] ?? 0, column.right);
  });
  return `${cells.join(GAP).trimEnd()}\n`;
}

function cellText<Row>({ value }: Column<Row>, row: Row): string {
  return visible(String(value(row) ?? ''));
}

/** `shown`: the text with its style, which takes no room. */
function inCell(text: string, shown: string, width: number, right = false): string {
  const filling = ' '.repeat(Math.max(0, width - lengthOf(text)));
  return right ? filling + shown : shown + filling;
}

/** Characters, not units of UTF-16. */
function lengthOf(text: string): number {
  return [...text].length;
}

/** Members of members have their path as name. */
function membersOf(document: object, above = ''): readonly (readonly [name: string, value: unknown])[] {
  return Object.entries(document).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null
      ? membersOf(value, `${above}${name}.`)
      : [[`${above}${name}`, value] as const],
  );
}
