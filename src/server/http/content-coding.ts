/** Whether a `content-encoding` says that the bytes are something else than the media type has it. `identity` is none (RFC 9110, 8.4). */
export function isEncoded(contentEncoding: string | readonly string[] | undefined): boolean {
  return contentEncoding !== undefined && String(contentEncoding).toLowerCase() !== 'identity';
}
