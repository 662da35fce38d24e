/** One thing wrong with a resource; `path` is relative to it. */
export interface ResourceFault {
  readonly path: string;
  readonly message: string;
}
