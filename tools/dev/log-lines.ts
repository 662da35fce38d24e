/** The gateway's log for people: one line for each request, and what it warns of. */

import { styleText } from 'node:util';
import type { GatewayConfig } from '../../src/config/document/config.ts';
import { type LogLine, readLogLine } from '../local-world/gateway-process.ts';

/** Levels of the log (pino). */
const WARN = 40;
const ERROR = 50;
/** Columns, so that lines stand below each other. */
const WIDTHS = { method: 6, path: 40, ms: 8 } as const;
/** Answered all the time by whatever watches the gateway. */
const PROBES: ReadonlySet<unknown> = new Set(['/health', '/ready']);
/** A caller may have chosen a text, and a terminal obeys some characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
const CONTROL = /[\x00-\x1f\x7f-\x9f]/g;

type Style = Parameters<typeof styleText>[0];
/** A piece of a line, and how it is shown in colour. */
type Piece = readonly [text: string, style?: Style];

/** What of the configuration makes a line readable. */
type Sold = Pick<GatewayConfig, 'resources' | 'protocols'>;

/** How lines are written; `sold`: undefined before it is known. */
interface LineStyle {
  readonly colour: boolean;
  readonly sold: Sold | undefined;
}

/** Undefined for what needs no eye. A line that is not of the log stays as it is. */
export function readableLine(line: string, { colour, sold }: LineStyle): string | undefined {
  const entry = readLogLine(line);
  if (entry === undefined) return line;
  const pieces = typeof entry['status'] === 'number' ? requestPieces(entry, sold) : newsPieces(entry);
  if (pieces === undefined) return undefined;
  const shown = ([text, style]: Piece): string => {
    const plain = text.replaceAll(CONTROL, ' ');
    return colour && style !== undefined ? styleText(style, plain, { validateStream: false }) : plain;
  };
  return [[timeOf(entry), 'dim'] as const, ...pieces].map(shown).join('  ').trimEnd();
}

/** Such as `0.01 USDC`, or `at least 0.01 USDC` by input; undefined for what is free. */
function priceOf(id: unknown, sold: Sold | undefined): string | undefined {
  const pricing = sold?.resources.find((resource) => resource.id === id)?.pricing;
  if (pricing?.type !== 'fixed') return undefined;
  return `${pricing.by === undefined ? '' : 'at least '}${pricing.amount} ${pricing.currency}`;
}

function timeOf({ time }: LogLine): string {
  const at = new Date(String(time));
  return Number.isNaN(at.getTime()) ? '' : at.toTimeString().slice(0, 'hh:mm:ss'.length);
}

function requestPieces(entry: LogLine, sold: Sold | undefined): readonly Piece[] | undefined {
  const { method, path, status, ms, resource, channel, passed, reason, transaction, msg } = entry;
  if ((PROBES.has(path) && Number(status) < 500) || isHandshake(entry, sold)) return undefined;
  const aside = channel === 'http' || channel === undefined ? undefined : `over ${channel}`;
  return [
    [String(method).padEnd(WIDTHS.method)],
    [String(path).padEnd(WIDTHS.path)],
    [String(status), statusStyle(entry)],
    [`${String(ms)} ms`.padStart(WIDTHS.ms), 'dim'],
    ...told([resource, aside, passed === true ? 'passed to the merchant' : undefined]),
    ...paymentPieces(entry, priceOf(resource, sold)),
    ...told([reason, typeof transaction === 'string' ? `settled by ${transaction}` : undefined]),
    ...(msg === 'request aborted' ? [['the caller left', 'red'] as const] : []),
  ];
}

/** What clients of MCP send around their calls, and ask for a stream that is not offered. */
function isHandshake({ channel, resource, outcome, path, status }: LogLine, sold: Sold | undefined): boolean {
  if (channel === 'mcp') return resource === undefined && outcome === undefined;
  return status === 405 && path === sold?.protocols.mcp.mountPath;
}

function statusStyle({ status, level }: LogLine): Style {
  if (Number(status) >= 500 || Number(level) >= WARN) return 'red';
  return Number(status) >= 400 ? 'yellow' : 'green';
}

function paymentPieces({ outcome, refusal, transaction }: LogLine, price = 'free'): readonly Piece[] {
  switch (outcome) {
    case undefined:
      return [];
    case 'payment_required':
      return [typeof refusal === 'string' ? [`refused: ${refusal}`, 'red'] : [`asked for ${price}`, 'yellow']];
    case 'delivered':
      return [transaction === undefined ? [price] : [`paid ${price}`, 'green']];
    case 'replayed':
      return [['paid before, given again', 'green']];
    default:
      return [[String(outcome), 'red']];
  }
}

/** Warnings, and health. */
function newsPieces(entry: LogLine): readonly Piece[] | undefined {
  const { level, msg, status, component, cause, code, err, problems } = entry;
  const isHealth = msg === 'health';
  if (Number(level) < WARN && !isHealth) return undefined;
  return [
    // A failure has its words in the answer, and its cause here alone.
    [isHealth ? `${component} ${status}` : String(code ?? msg), newsStyle(Number(level))],
    ...told([
      isHealth ? undefined : component,
      cause,
      messageOf(err),
      problems === undefined ? undefined : JSON.stringify(problems),
    ]),
  ];
}

function newsStyle(level: number): Style {
  if (level >= ERROR) return 'red';
  return level >= WARN ? 'yellow' : 'green';
}

function told(words: readonly unknown[]): readonly Piece[] {
  return words.filter((word) => word !== undefined && word !== null).map((word) => [String(word)]);
}

function messageOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined;
  return String(error.message);
}
