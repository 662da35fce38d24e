import { isObject } from '../../json/object.ts';
import type { Json } from '../../json/types.ts';
import type { AnswerContent } from '../json-rpc/answer-content.ts';
import type { Era } from './eras.ts';
import { type ToolResult, textBlock } from './result.ts';

/** What the merchant delivered, as content and structured content. */
export function deliveredContent(
  content: AnswerContent,
  era: Era,
  resourceUrl: string,
): Pick<ToolResult, 'content' | 'structured'> {
  switch (content.kind) {
    case 'json': {
      const { text, value } = content;
      // A string is what it says, everything else is its JSON.
      return {
        content: [textBlock(typeof value === 'string' ? value : text)],
        structured: structured(text, isObject(value), era),
      };
    }
    case 'text':
      return { content: [textBlock(content.text)], structured: structured(JSON.stringify(content.text), false, era) };
    case 'empty':
      return { content: [textBlock('')], structured: structured('null', false, era) };
    case 'bytes':
      // Bytes are not said twice: base64 in structured content would only double them.
      return { content: [bytesBlock(content, resourceUrl)] };
  }
}

/** The value that an output schema is held against; undefined for bytes, which no schema describes. */
export function schemaValue(content: AnswerContent): Json | undefined {
  if (content.kind === 'json') return content.value;
  if (content.kind === 'text') return content.text;
  return content.kind === 'empty' ? null : undefined;
}

/** The legacy era knows objects only. */
function structured(text: string, isRecord: boolean, era: Era): string {
  return isRecord || era === 'modern' ? text : `{"value":${text}}`;
}

const MEDIA = /^(image|audio)\//i;

function bytesBlock(
  { base64, mediaType, contentEncoding }: Extract<AnswerContent, { kind: 'bytes' }>,
  uri: string,
): string {
  const mimeType = mediaType.split(';')[0]?.trim() ?? mediaType;
  const type = MEDIA.exec(mimeType)?.[1]?.toLowerCase();
  if (type !== undefined && contentEncoding === undefined) return JSON.stringify({ type, data: base64, mimeType });
  const encoding =
    contentEncoding === undefined ? {} : { _meta: { 'agent-commerce/contentEncoding': contentEncoding } };
  return JSON.stringify({ type: 'resource', resource: { uri, mimeType, blob: base64, ...encoding } });
}
