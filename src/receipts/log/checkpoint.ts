/**
 * Checkpoints of the log of receipts: each signs the versions that it seals, and the checkpoint
 * before it. An operator who has a copy of one has proof of everything before it.
 */

import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { PublicJwk, SigningKey } from '../../crypto/signing-key.ts';
import { canonicalJson } from '../../json/canonical.ts';
import { digestOf } from './series.ts';

export interface Checkpoint {
  readonly merchant: string;
  /** From 1 on, over all series. */
  readonly number: number;
  /** Digest of the checkpoint before it; empty for the first. */
  readonly previous: string;
  readonly series: string;
  /** Versions of the series before it, and with it. */
  readonly from: number;
  readonly to: number;
  /** The chained digest of the series before it, empty at its beginning, and with it. */
  readonly before: string;
  readonly head: string;
  /** Versions of the whole log with it, also those that were trimmed. */
  readonly versions: number;
  /** Since when versions are logged, ISO 8601. */
  readonly since: string;
  readonly at: string;
  /** The newest checkpoint that was trimmed, and what the log had with it; absent: none was. */
  readonly trimmed?: {
    readonly number: number;
    readonly digest: string;
    readonly versions: number;
    /** The latest one of a version that was trimmed. */
    readonly position: string;
  };
}

const TYPE = 'receipt-checkpoint+jws';

/** The chained digest of a series behind `versions`, the text that a checkpoint seals. */
export function headOf(before: string, versions: string): string {
  return digestOf(`${before}\n${versions}`);
}

/** A JWS in compact form. */
export function signCheckpoint(checkpoint: Checkpoint, key: SigningKey): string {
  const { alg, kid } = key.publicJwk;
  const signed = `${encoded(JSON.stringify({ alg, kid, typ: TYPE }))}.${encoded(canonicalJson({ ...checkpoint }))}`;
  return `${signed}.${key.sign(signed)}`;
}

/** What a checkpoint says, whether or not its signature is one; undefined for what is none. */
export function readCheckpoint(jws: string): Checkpoint | undefined {
  const payload = decoded(jws.split('.')[1]);
  return isCheckpoint(payload) ? payload : undefined;
}

/** Checks signatures by keys of the gateway, present and earlier ones. */
export function checkpointSignatures(keys: readonly PublicJwk[]): (jws: string) => boolean {
  const byId = new Map<unknown, KeyObject>(
    keys.map((jwk) => [jwk.kid, createPublicKey({ key: { ...jwk }, format: 'jwk' })]),
  );
  return (jws) => {
    const [head = '', payload = '', signature = '', ...more] = jws.split('.');
    const { alg, kid, typ } = recordOf(decoded(head));
    const key = byId.get(kid);
    if (more.length > 0 || alg !== 'ES256' || typ !== TYPE || key === undefined) return false;
    const bytes = Buffer.from(signature, 'base64url');
    // Another spelling of the same bytes is another checkpoint.
    if (bytes.toString('base64url') !== signature) return false;
    return verify('sha256', Buffer.from(`${head}.${payload}`), { key, dsaEncoding: 'ieee-p1363' }, bytes);
  };
}

function isCheckpoint(value: unknown): value is Checkpoint {
  const found = recordOf(value);
  const texts = ['merchant', 'previous', 'series', 'before', 'head', 'since', 'at'];
  const numbers = ['number', 'from', 'to', 'versions'];
  const trimmed = recordOf(found['trimmed'] ?? { number: 0, digest: '', versions: 0, position: '' });
  return (
    texts.every((name) => typeof found[name] === 'string') &&
    numbers.every((name) => Number.isSafeInteger(found[name])) &&
    ['number', 'versions'].every((name) => Number.isSafeInteger(trimmed[name])) &&
    ['digest', 'position'].every((name) => typeof trimmed[name] === 'string')
  );
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}

function decoded(part: string | undefined): unknown {
  try {
    return JSON.parse(Buffer.from(part ?? '', 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}
