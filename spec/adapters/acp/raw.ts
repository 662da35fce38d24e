import { randomUUID } from 'node:crypto';
import { exchange, head } from '../../server/http/raw.ts';
import { CART, TOKEN } from './testbed.ts';

const nameOf = (line: string): string => line.slice(0, line.indexOf(':')).toLowerCase();

/**
 * The head of a create with these header lines, byte for byte; the others are right.
 * `Connection: close`.
 */
export function createHead(lines: readonly string[]): string {
  const given = lines.map(nameOf);
  const right = [
    'Host: shop',
    `Authorization: Bearer ${TOKEN}`,
    'API-Version: 2026-04-17',
    `Idempotency-Key: ${randomUUID()}`,
    'Content-Type: application/json',
  ].filter((line) => !given.includes(nameOf(line)));
  return head(['POST /acp/checkout_sessions HTTP/1.1', 'Connection: close', ...right, ...lines]);
}

/** Sends such a create with the smallest cart, and returns the whole answer. */
export function rawCreate(url: string, lines: readonly string[]): Promise<string> {
  const body = JSON.stringify(CART);
  return exchange(url, [Buffer.from(`${createHead([...lines, `Content-Length: ${body.length}`])}${body}`, 'latin1')]);
}

/** Status and code of a refusal. */
export function refusalIn(answer: string): { readonly status: number; readonly code: string } {
  const { code } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as { code: string };
  return { status: Number(answer.slice(9, 12)), code };
}
