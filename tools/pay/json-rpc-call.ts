/** A call of a resource by its name, for protocols on JSON-RPC. */
export interface JsonRpcCall {
  /** Of the endpoint. */
  readonly url: string;
  readonly resource: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}
