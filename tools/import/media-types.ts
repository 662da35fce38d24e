/** Media types as documents spell them. */

const JSON_LIKE = /^application\/(?:json|[a-z0-9.-]+\+json)$/;

/** Lower case, without parameters. */
export function essenceOf(media: string): string {
  return (media.split(';')[0] ?? '').trim().toLowerCase();
}

export function isJson(media: string): boolean {
  return JSON_LIKE.test(essenceOf(media)) || ['*/*', 'application/*'].includes(essenceOf(media));
}
