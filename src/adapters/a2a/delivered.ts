import { isObject } from '../../json/object.ts';
import type { AnswerContent } from '../json-rpc/answer-content.ts';

/**
 * What the merchant delivered as the JSON object of a data part: an object as it stands, everything else as
 * `{"value": ...}` (specification 3). Nothing is parsed and written again, so no number loses a digit.
 */
export function deliveredData(content: AnswerContent): string {
  switch (content.kind) {
    case 'json':
      return isObject(content.value) ? content.text : `{"value":${content.text}}`;
    case 'text':
      return JSON.stringify({ value: content.text });
    case 'empty':
      return '{"value":null}';
    case 'bytes': {
      const { base64, mediaType, contentEncoding } = content;
      const compressed = contentEncoding === undefined ? {} : { contentEncoding };
      return JSON.stringify({ value: base64, encoding: 'base64', mediaType, ...compressed });
    }
  }
}
