/**
 * Checks trace headers by W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context/): only
 * valid ones go to the backend and into traces.
 */

/** Section 3.2: version (not ff), trace id and parent id (neither all zero), flags. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Section 3.3.1.3: a simple key or tenant@system; printable ASCII without comma and equals. */
const TRACESTATE_MEMBER =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
/** Section 3.3.1.1. */
const TRACESTATE_MEMBERS_MAX = 32;
/** Section 3.3.1.5: the length every vendor should be able to propagate, characters. */
const TRACESTATE_LENGTH_MAX = 512;

export function validTraceparent(value: string): boolean {
  return TRACEPARENT.test(value);
}

/** Commas with optional space separate members; empty ones are legal, repeated keys are not. */
export function validTracestate(value: string): boolean {
  if (value.length > TRACESTATE_LENGTH_MAX) return false;
  const members = value
    .split(',')
    .map((member) => member.replace(/^[\t ]+|[\t ]+$/g, ''))
    .filter((member) => member !== '');
  if (members.length === 0 || members.length > TRACESTATE_MEMBERS_MAX) return false;
  const keys = new Set(members.map((member) => member.slice(0, member.indexOf('='))));
  return keys.size === members.length && members.every((member) => TRACESTATE_MEMBER.test(member));
}

/** The trace id in a traceparent, or undefined when that is not valid. */
export function traceIdOf(traceparent: string): string | undefined {
  return validTraceparent(traceparent) ? traceparent.slice(3, 35) : undefined;
}
