/** The two eras of MCP that one path serves, and the versions and names of each. */

/** The revision with per-request metadata and without sessions; the only one of its era. */
export const MODERN_VERSION = '2026-07-28';
/** Revisions with `initialize`, newest first. No version header means 2025-03-26. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26'];

/** Decided from the content of each request: the gateway keeps nothing between two of them. */
export type Era = 'legacy' | 'modern';

/** Versions are dates, which sort as texts. */
export function isModern(version: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= MODERN_VERSION;
}

/** Members of `_meta` in the modern era (2026-07-28, basic/index, `_meta`). */
export const META_VERSION = 'io.modelcontextprotocol/protocolVersion';
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
