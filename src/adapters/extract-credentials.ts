/** Reads proof, mandate and idempotency key from their places in a call; checks none of them. */

import type { IncomingMessage } from 'node:http';
import { canonicalJson, type Json, parseStrictJson } from '../json/json.ts';
import { type CarriedMandate, carriedMember } from '../mandates/ap2/envelope.ts';
import type { CarriedProof } from '../payments/settlement/verifier.ts';
import { decodeProof, encodeProof } from '../payments/x402/wire/proof.ts';
import { PAYMENT_SIGNATURE } from '../payments/x402/wire/types.ts';
import type { ReceivedCall } from '../pipeline/call.ts';
import { readHeader } from '../server/http/request.ts';

const NO_PROOF: CarriedProof = { kind: 'none' };
/** The header of version 1 of x402. */
const X_PAYMENT = 'x-payment';
const NO_MANDATE: CarriedMandate = { kind: 'none' };

/**
 * The proof in the header of the HTTP transport. `version_1`: the refusal names the version,
 * because the client would else send the same again.
 */
export function carriedProof(req: IncomingMessage): CarriedProof {
  const header = readHeader(req, PAYMENT_SIGNATURE);
  if (header.kind === 'absent') {
    const old = req.headers[X_PAYMENT];
    return old === undefined ? NO_PROOF : { kind: 'version_1', value: String(old) };
  }
  return header.kind === 'single' ? { kind: 'header', value: header.value } : { kind: 'illegible' };
}

export function carriedKey(req: IncomingMessage): ReceivedCall['idempotencyKey'] {
  const header = readHeader(req, 'idempotency-key');
  if (header.kind === 'absent') return undefined;
  return header.kind === 'single' ? header.value : { kind: 'illegible' };
}

/**
 * A proof in a member of a JSON message: the text of the header, or the payload as an object. An
 * empty text counts as absent, because models fill in what a schema offers.
 */
export function memberProof(member: Json | undefined): CarriedProof {
  if (member === undefined || member === null || member === '') return NO_PROOF;
  if (typeof member === 'string') return { kind: 'header', value: member };
  return typeof member === 'object' && !Array.isArray(member)
    ? { kind: 'header', value: encodeProof(member) }
    : { kind: 'illegible' };
}

/** The first of the carried proofs; the others may repeat it in any spelling, but not differ. */
export function oneProof(...carried: readonly CarriedProof[]): CarriedProof {
  const [first = NO_PROOF, ...others] = carried.filter(({ kind }) => kind !== 'none');
  return others.every((other) => sameProof(first, other)) ? first : { kind: 'conflicting' };
}

function sameProof(one: CarriedProof, other: CarriedProof): boolean {
  if (one.kind !== 'header' || other.kind !== 'header') return false;
  if (one.value === other.value) return true;
  const [a, b] = [decodeProof(one.value), decodeProof(other.value)];
  if (a.kind !== 'decoded' || b.kind !== 'decoded') return false;
  return canonicalProof(a) === canonicalProof(b);
}

/** Decoding has normalized every value; only the order of members can still differ. */
function canonicalProof({ payload }: { readonly payload: object }): string {
  return canonicalJson(JSON.parse(JSON.stringify(payload)) as Json);
}

/** The mandate in the header of the HTTP transport (ap2 7.1). An empty one counts as absent. */
export function carriedMandate(req: IncomingMessage): CarriedMandate {
  const header = readHeader(req, 'agent-authorization');
  if (header.kind === 'absent') return NO_MANDATE;
  return header.kind === 'single' ? unlessEmpty({ kind: 'text', value: header.value }) : { kind: 'illegible' };
}

/** A mandate in a member of a JSON message: the text of the header, or the envelope's object. */
export function memberMandate(member: Json | undefined): CarriedMandate {
  return member === null ? NO_MANDATE : unlessEmpty(carriedMember(member));
}

/** The first of the carried mandates, as for proofs. */
export function oneMandate(...carried: readonly CarriedMandate[]): CarriedMandate {
  const [first = NO_MANDATE, ...others] = carried.filter(({ kind }) => kind !== 'none');
  return others.every((other) => sameMandate(first, other)) ? first : { kind: 'conflicting' };
}

function unlessEmpty(carried: CarriedMandate): CarriedMandate {
  return carried.kind === 'text' && carried.value === '' ? NO_MANDATE : carried;
}

/** Whether two mandates are equal up to the spelling of their JSON. */
function sameMandate(one: CarriedMandate, other: CarriedMandate): boolean {
  if (one.kind !== 'text' || other.kind !== 'text') return false;
  if (one.value === other.value) return true;
  const envelope = canonicalEnvelope(one.value);
  return envelope !== undefined && envelope === canonicalEnvelope(other.value);
}

function canonicalEnvelope(envelope: string): string | undefined {
  try {
    return canonicalJson(parseStrictJson(Buffer.from(envelope, 'base64url')));
  } catch {
    return undefined;
  }
}
