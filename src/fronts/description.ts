import type { ListedResource } from '../catalogue/listing.ts';

/** What a model reads about a resource: its description, else its name, and for a priced one what it costs per call. */
export function describedWithPrice(
  { name, description = name, pricing }: Pick<ListedResource, 'name' | 'description' | 'pricing'>,
  howToPay = '',
): string {
  if (pricing.type === 'free') return description;
  const sentence = /[.!?]$/.test(description) ? description : `${description}.`;
  return `${sentence} Costs ${pricing.amount} ${pricing.currency} per call${howToPay}.`;
}
