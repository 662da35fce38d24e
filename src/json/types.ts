/** JSON as parsed at an edge: the only shape untyped input may have behind it. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}
