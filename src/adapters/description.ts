import type { ListedResource } from '../resources/listing.ts';

/** What a model reads about a resource: its description, else its name, for a priced one what it costs per call, and whether it needs a mandate. */
export function describedWithPrice(
  resource: Pick<ListedResource, 'name' | 'description' | 'pricing' | 'authorization'>,
  howToPay = '',
): string {
  const { name, description = name, pricing } = resource;
  const mandate = asksForMandate(resource) ? NEEDS_MANDATE : '';
  if (pricing.type === 'free' && mandate === '') return description;
  const sentence = /[.!?]$/.test(description) ? description : `${description}.`;
  const price = pricing.type === 'free' ? '' : ` Costs ${pricing.amount} ${pricing.currency} per call${howToPay}.`;
  return `${sentence}${price}${mandate}`;
}

/** Whether calls need an AP2 mandate. */
export function asksForMandate({ authorization }: Pick<ListedResource, 'authorization'>): boolean {
  return authorization?.required.includes('ap2') === true;
}

const NEEDS_MANDATE =
  ' Needs an AP2 mandate in the header Agent-Authorization or the input member _authorization: call it without one and the answer has ' +
  'the checkout to make it for.';
