import { isObject } from '../../json/object.ts';
import type { Json, JsonObject } from '../../json/types.ts';
import type { ListedResource } from '../../resources/listing.ts';
import type { Resource } from '../../resources/resource.ts';
import { asksForMandate, describedWithPrice } from '../description.ts';

const JSON_ONLY = ['application/json'];
/** The name under which the card declares where a mandate goes (a2a 2). */
export const MANDATE_SCHEME = 'ap2Mandate';

/** A resource as a skill. `compiled` tells whether an example would be accepted. */
export function skillOf(listed: ListedResource, compiled: Pick<Resource, 'prepare'> | undefined): JsonObject {
  const { id, name, pricing } = listed;
  const example = exampleInput(listed.inputSchema, compiled);
  return {
    id,
    name,
    description: describedWithPrice(listed),
    tags: ['agent-commerce', pricing.type === 'free' ? 'free' : 'paid', ...(asksForMandate(listed) ? ['ap2'] : [])],
    ...(example === undefined ? {} : { examples: [examplePart(id, example)] }),
    inputModes: JSON_ONLY,
    outputModes: JSON_ONLY,
    ...(asksForMandate(listed) ? { securityRequirements: [{ schemes: { [MANDATE_SCHEME]: {} } }] } : {}),
  };
}

/** A part that can be sent as it stands: the only member of a skill that can tell a model what to send. */
function examplePart(resource: string, input: JsonObject): string {
  return JSON.stringify({ data: { resource, input }, mediaType: 'application/json' });
}

/** The first valid input that the schema itself shows: an example, its default, or those of its properties put together. */
function exampleInput(schema: JsonObject, compiled: Pick<Resource, 'prepare'> | undefined): JsonObject | undefined {
  const candidates = [...shown(schema), fromProperties(schema)].filter((candidate) => isObject(candidate));
  return candidates.find((candidate) => compiled?.prepare(candidate, undefined).ok === true);
}

function fromProperties({ properties }: JsonObject): JsonObject {
  const input: Record<string, Json> = {};
  for (const [name, schema] of Object.entries(isObject(properties) ? properties : {})) {
    const [first] = isObject(schema) ? shown(schema) : [];
    if (first !== undefined) input[name] = first;
  }
  return input;
}

function shown({ examples, default: usual }: JsonObject): readonly Json[] {
  return [...(Array.isArray(examples) ? (examples as readonly Json[]) : []), ...(usual === undefined ? [] : [usual])];
}
