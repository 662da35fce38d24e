/** Reads the frames of an event stream (Server-Sent Events, as HTML defines them). */

/** A frame that is not finished by then is not one of a gateway, characters. */
const MAX_FRAME = 1_048_576;

/** What a stream brings. `retryMs`: how long to wait before the next connection. */
type StreamFrame =
  | { readonly kind: 'event'; readonly id: string; readonly data: string }
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'retry'; readonly retryMs: number };

/** The frames in their order, each as soon as it is complete. @throws Error for an endless one */
export async function* framesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<StreamFrame> {
  const decoder = new TextDecoder();
  let rest = '';
  let id = '';
  let data: string[] = [];
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    if (rest.length > MAX_FRAME) throw new Error('its stream has a line without an end');
    for (const line of lines) {
      const { name, value } = fieldOf(line);
      if (line === '' && data.length > 0) {
        yield { kind: 'event', id, data: data.join('\n') };
        data = [];
      } else if (line.startsWith(':')) yield { kind: 'comment', text: value };
      else if (name === 'id') id = value;
      else if (name === 'data') data.push(value);
      else if (name === 'retry' && /^\d{1,6}$/.test(value)) yield { kind: 'retry', retryMs: Number(value) };
    }
  }
}

/** The name of a comment is empty. */
function fieldOf(line: string): { readonly name: string; readonly value: string } {
  const at = line.indexOf(':');
  if (at === -1) return { name: line, value: '' };
  return { name: line.slice(0, at), value: line.slice(at + 1).replace(/^ /, '') };
}
