/** A WebSocket endpoint that sends every message back (RFC 6455), for backends of tests. */

import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** What the accept value of a handshake is made with (RFC 6455, 4.2.2). */
const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const OPCODE = { close: 0x8, ping: 0x9, pong: 0xa } as const;

/** Accepts the upgrade and echoes until a close frame, which it answers. */
export function echoWebSocket({ headers }: IncomingMessage, socket: Duplex, head: Buffer): void {
  const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${ACCEPT_GUID}`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  let waiting = head;
  const read = (chunk: Buffer): void => {
    waiting = Buffer.concat([waiting, chunk]);
    for (let frame = firstFrame(waiting); frame !== undefined; frame = firstFrame(waiting)) {
      waiting = waiting.subarray(frame.size);
      const opcode = frame.first & 0xf;
      if (opcode === OPCODE.pong) continue;
      const reply = opcode === OPCODE.ping ? (frame.first & 0xf0) | OPCODE.pong : frame.first;
      socket.write(frameOf(reply, frame.payload));
      if (opcode === OPCODE.close) socket.end();
    }
  };
  socket.on('data', read);
  socket.on('end', () => socket.end());
  socket.on('error', () => socket.destroy());
  read(Buffer.alloc(0));
}

interface Frame {
  /** Flags and opcode. */
  readonly first: number;
  readonly payload: Buffer;
  /** With its head, bytes. */
  readonly size: number;
}

/** The first frame of a client, unmasked; undefined while it is not there as a whole. */
function firstFrame(bytes: Buffer): Frame | undefined {
  const [first, second] = bytes;
  if (first === undefined || second === undefined) return undefined;
  const short = second & 0x7f;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const maskAt = 2 + lengthBytes;
  if (bytes.length < maskAt + 4) return undefined;
  const length = lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(2) : bytes.readUIntBE(4, 6);
  const mask = bytes.subarray(maskAt, maskAt + 4);
  const size = maskAt + 4 + length;
  if (bytes.length < size) return undefined;
  const masked = bytes.subarray(maskAt + 4, size);
  return { first, payload: Buffer.from(masked.map((byte, at) => byte ^ (mask[at % 4] ?? 0))), size };
}

/** A frame of a server: whole and unmasked. Control frames hold at most 125 bytes. */
function frameOf(first: number, payload: Buffer): Buffer {
  const { length } = payload;
  if (length < 126) return Buffer.concat([Buffer.from([first, length]), payload]);
  const head = Buffer.alloc(length < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = length < 65_536 ? 126 : 127;
  if (length < 65_536) head.writeUInt16BE(length, 2);
  else head.writeUIntBE(length, 4, 6);
  return Buffer.concat([head, payload]);
}
