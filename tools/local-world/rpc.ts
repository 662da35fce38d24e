/** A JSON-RPC error answer of the chain. */
export class RpcError extends Error {
  readonly code: number;

  constructor(method: string, code: number, message: string) {
    super(`${method}: ${message}`);
    this.name = 'RpcError';
    this.code = code;
  }
}

interface RpcAnswer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Longest wait for one answer, milliseconds. */
const RPC_TIMEOUT_MS = 10_000;

/** One JSON-RPC call over HTTP; resolves to `result`. @throws RpcError */
export async function rpc(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(RPC_TIMEOUT_MS),
  });
  const answer = (await response.json()) as RpcAnswer;
  if (answer.error !== undefined) throw new RpcError(method, answer.error.code, answer.error.message);
  return answer.result;
}
