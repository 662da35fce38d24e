import type { IncomingMessage } from 'node:http';
import { ACP_VERSION } from '../../checkouts/operations.ts';
import { isEncoded } from '../../server/http/content-coding.ts';
import { readHeader } from '../../server/http/headers.ts';
import { AcpError } from './error.ts';

/** The headers of a checkout call that decide whether it is served (acp 2.1). */

/** Those that are refused here when they come twice, as 401 and 415: the shared check of all requests leaves them to us. */
export const JUDGED_FIELDS = ['authorization', 'content-type'] as const;

/** Between the white space that HTTP knows; a no-break space is none of it. */
const KEY = /^[ \t]*([!-~](?:[ -~]{0,253}[!-~])?)[ \t]*$/;
const BLANK = /^[ \t]*$/;

/** @throws AcpError missing_api_version, unsupported_api_version */
export function checkVersion(req: IncomingMessage): void {
  const version = readHeader(req, 'api-version');
  if (version.kind === 'single' && version.value === ACP_VERSION) return;
  const missing = version.kind === 'absent' || (version.kind === 'single' && version.value === '');
  throw new AcpError(missing ? 'missing_api_version' : 'unsupported_api_version', {
    supportedVersions: [ACP_VERSION],
  });
}

/**
 * The caller's name for what he wants done once.
 * @throws AcpError idempotency_key_required, idempotency_key_invalid
 */
export function idempotencyKeyOf(req: IncomingMessage): string {
  const key = legibleKeyOf(req);
  if (key !== undefined) return key;
  const given = req.headers['idempotency-key'];
  const nothing = given === undefined || (typeof given === 'string' && BLANK.test(given));
  throw new AcpError(nothing ? 'idempotency_key_required' : 'idempotency_key_invalid');
}

/** The same for an echo: undefined when there is none that is right. */
export function legibleKeyOf(req: IncomingMessage): string | undefined {
  const header = readHeader(req, 'idempotency-key');
  if (header.kind !== 'single') return undefined;
  const [, key] = KEY.exec(header.value) ?? [];
  return key;
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
/** RFC 9110, 5.6.6: there may be none behind the semicolon. */
const PARAMETER = `;[ \\t]*(?:(${TOKEN})=(${TOKEN}|"(?:[^"\\\\]|\\\\.)*")[ \\t]*)?`;
const JSON_TYPE = new RegExp(`^application/json[ \\t]*((?:${PARAMETER})*)$`, 'i');
const PARAMETERS = new RegExp(PARAMETER, 'gi');
const UTF8 = /^"?utf-8"?$/i;

/**
 * The type and the coding of a body, before any of it is read. What has no type may only be empty.
 * @returns the content type; undefined when there is none
 * @throws AcpError unsupported_media_type
 */
export function checkMediaType(req: IncomingMessage): string | undefined {
  const type = readHeader(req, 'content-type');
  const declared = Number(req.headers['content-length'] ?? 0);
  const served = type.kind === 'absent' ? declared === 0 : type.kind === 'single' && isJsonInUtf8(type.value);
  if (!served || isEncoded(req.headers['content-encoding'])) throw new AcpError('unsupported_media_type');
  return type.kind === 'single' ? type.value : undefined;
}

function isJsonInUtf8(mediaType: string): boolean {
  const parameters = JSON_TYPE.exec(mediaType)?.[1];
  if (parameters === undefined) return false;
  return [...parameters.matchAll(PARAMETERS)].every(
    ([, name = '', value = '']) => name.toLowerCase() !== 'charset' || UTF8.test(value),
  );
}
