/** The revision with per-request metadata and without sessions; the only one of its era. */
export const MODERN_VERSION = '2026-07-28';
/**
 * Revisions that open with `initialize`, newest first. 2025-03-26 is also what a request without a
 * version header means.
 */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26'];

/**
 * Decided for each request, from its own content: the gateway remembers nothing between two
 * requests.
 */
export type Era = 'legacy' | 'modern';

/** Versions are dates, so later ones sort behind. */
export function isModern(version: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= MODERN_VERSION;
}

/** Members of `_meta` in the modern era (2026-07-28, basic/index, `_meta`). */
export const META_VERSION = 'io.modelcontextprotocol/protocolVersion';
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
