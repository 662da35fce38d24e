const JSON_TYPE = /^(?:application\/json|[\w.-]+\/[\w.+-]+\+json)\s*(?:;|$)/i;

/** Whether a media type, with or without parameters, is `application/json` or a `+json` type. */
export function isJsonType(mediaType: string): boolean {
  return JSON_TYPE.test(mediaType);
}
