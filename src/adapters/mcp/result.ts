import type { Members } from '../json-rpc/metadata.ts';
import { type Era, META_SERVER_INFO } from './eras.ts';
import type { ServerInfo } from './tools.ts';

/** A result of `tools/call` whose members are JSON text already. */
export interface ToolResult {
  /** Content blocks, each as JSON text. */
  readonly content: readonly string[];
  readonly structured?: string;
  readonly isError?: boolean;
  /** Of `_meta`. */
  readonly meta: Members;
}

/** Writes results of `tools/call` in the form of one era. */
export function resultWriter(era: Era, server: ServerInfo): (result: ToolResult) => string {
  const modern = era === 'modern';
  const info = modern ? `,${JSON.stringify(META_SERVER_INFO)}:${JSON.stringify(server)}` : '';
  const head = modern ? '{"resultType":"complete","content":[' : '{"content":[';
  return ({ content, structured, isError = false, meta }) => {
    const members = Object.entries(meta).map(([name, value]) => `${JSON.stringify(name)}:${value}`);
    const body = structured === undefined ? '' : `,"structuredContent":${structured}`;
    const error = isError ? ',"isError":true' : '';
    return `${head}${content.join(',')}]${body}${error},"_meta":{${members.join(',')}${info}}}`;
  };
}

/** A text block. */
export function textBlock(text: string): string {
  return `{"type":"text","text":${JSON.stringify(text)}}`;
}
