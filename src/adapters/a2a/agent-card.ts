/** The agent card, by which A2A clients find the resources, made and signed at start. */

import { Router } from 'express';
import { KEY_SET_PATH, readSigningKey, type SigningKey, signDocument } from '../../crypto/signing-key.ts';
import type { Json, JsonObject } from '../../json/json.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import { asksForMandate, describedWithPrice, exampleInput, type ListedResource } from '../../resources/listing.ts';
import { CARD_PATH } from '../../resources/published.ts';
import type { Resource } from '../../resources/resource.ts';
import { AUTHORIZATION_MEMBER, PAYMENT_MEMBER } from '../../resources/schemas/keywords.ts';
import { staticDocument } from '../../resources/static-document.ts';
import { allowOnly } from '../../server/http/request.ts';
import { published } from '../../server/http/respond.ts';

const JSON_ONLY = ['application/json'];
/**
 * A card has at most so many skills, the first of the configuration. A2A has no pages for skills,
 * and clients read the card as a whole; the list at `resourcesUrl` has all resources.
 */
const MOST_SKILLS = 1_000;
/** The name under which the card declares where a mandate goes (a2a 2). */
const MANDATE_SCHEME = 'ap2Mandate';
/**
 * The URI of the extension that tells what the data part of a message must hold: a skill of A2A 1.0
 * has no member for that.
 */
const RESOURCES_EXTENSION = 'urn:agent-commerce:a2a:resources:1';

interface CardParts {
  readonly settings: CardSettings;
  readonly catalogue: Pick<Catalogue, 'byId' | 'listed'>;
  readonly merchant: { readonly name: string; readonly publicBaseUrl: string; readonly iconUrl?: string };
  /** The gateway's version, not that of A2A. */
  readonly version: string;
}

interface CardSettings {
  readonly mountPath: string;
  readonly description?: string | undefined;
  readonly provider?: { readonly organization: string; readonly url: string } | undefined;
  readonly documentationUrl?: string | undefined;
  readonly iconUrl?: string | undefined;
}

interface DocumentParts extends CardParts {
  /** `signingKey`: PKCS#8 PEM, checked by the configuration; undefined: the card is not signed. */
  readonly settings: CardSettings & { readonly signingKey?: string | undefined };
  readonly startedAt: Date;
}

/**
 * Serves the card at the root and below the mount: clients resolve a relative reference, so a slash
 * at the end of their base URL decides which path they ask. The bytes of the card are made once.
 * The gateway publishes the key of the signature with its other keys.
 */
export function a2aDocuments({ startedAt, ...parts }: DocumentParts): Router {
  const { settings, merchant } = parts;
  const key = keyOf(settings.signingKey);
  const card = agentCard(parts);
  const text = key === undefined ? card : signed(card, key, `${merchant.publicBaseUrl}${KEY_SET_PATH}`);
  const paths = [CARD_PATH, `${settings.mountPath}${CARD_PATH}`];
  const router = Router({ strict: true, caseSensitive: true });
  router.get(paths, published(staticDocument(text), startedAt));
  router.all(paths, allowOnly('GET', 'HEAD'));
  return router;
}

/**
 * The agent card (A2A 1.0, section 4.4.1; contract 7.2). It has no members outside A2A and no empty
 * lists or defaults: readers drop such members before they check the signature, which then fails.
 */
export function agentCard({ settings, catalogue, merchant, version }: CardParts): JsonObject {
  const { provider, documentationUrl, iconUrl = merchant.iconUrl } = settings;
  const resources = catalogue.listed.filter(({ exposedVia }) => exposedVia.includes('a2a'));
  const mandates = resources.some(asksForMandate);
  const { name, publicBaseUrl } = merchant;
  return {
    name,
    description: settings.description ?? `Operations of ${name} for software agents, each free or paid per call.`,
    supportedInterfaces: [
      { url: `${publicBaseUrl}${settings.mountPath}`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    ],
    ...(provider === undefined ? {} : { provider: { url: provider.url, organization: provider.organization } }),
    version,
    ...(documentationUrl === undefined ? {} : { documentationUrl }),
    capabilities: {
      streaming: false,
      pushNotifications: false,
      extensions: [resourcesExtension(publicBaseUrl, mandates, resources.length)],
      extendedAgentCard: false,
    },
    ...(mandates ? { securitySchemes: MANDATE_SCHEMES } : {}),
    defaultInputModes: JSON_ONLY,
    defaultOutputModes: JSON_ONLY,
    skills: resources.slice(0, MOST_SKILLS).map((resource) => skillOf(resource, catalogue.byId.get(resource.id))),
    ...(iconUrl === undefined ? {} : { iconUrl }),
  };
}

const MANDATE_SCHEMES: JsonObject = {
  [MANDATE_SCHEME]: {
    apiKeySecurityScheme: {
      description: `An AP2 0.2 mandate for the checkout of the challenge, or the same in input.${AUTHORIZATION_MEMBER}.`,
      location: 'header',
      name: 'Agent-Authorization',
    },
  },
};

const MORE_THAN_LISTED =
  ' More resources than these skills are there, with a2a under exposedVia, and are called alike.';

/** `offered`: how many resources a message can name, listed here as skills or not. */
function resourcesExtension(publicBaseUrl: string, mandates: boolean, offered: number): Json {
  const unlisted = offered > MOST_SKILLS;
  return {
    uri: RESOURCES_EXTENSION,
    description: `A message has one data part: resource is the id of a skill, input fits its schema at resourcesUrl.${unlisted ? MORE_THAN_LISTED : ''}`,
    params: {
      resourcesUrl: `${publicBaseUrl}/api/resources`,
      discoveryUrl: `${publicBaseUrl}/.well-known/agent-commerce`,
      paymentField: `input.${PAYMENT_MEMBER}`,
      ...(unlisted ? { resourcesOffered: offered } : {}),
      ...(mandates ? { authorizationField: `input.${AUTHORIZATION_MEMBER}` } : {}),
    },
  };
}

/** A resource as a skill. `compiled` decides whether an example would be accepted. */
function skillOf(listed: ListedResource, compiled: Pick<Resource, 'prepare'> | undefined): JsonObject {
  const { id, name, pricing, tags = [] } = listed;
  const own = ['agent-commerce', pricing.type === 'free' ? 'free' : 'paid', ...(asksForMandate(listed) ? ['ap2'] : [])];
  const example = exampleInput(listed.inputSchema, compiled);
  return {
    id,
    name,
    description: describedWithPrice(listed),
    tags: [...new Set([...own, ...tags])],
    ...(example === undefined ? {} : { examples: [examplePart(id, example)] }),
    inputModes: JSON_ONLY,
    outputModes: JSON_ONLY,
    ...(asksForMandate(listed) ? { securityRequirements: [{ schemes: { [MANDATE_SCHEME]: {} } }] } : {}),
  };
}

/** A part that can be sent as it stands: no other member of a skill shows a model what to send. */
function examplePart(resource: string, input: JsonObject): string {
  return JSON.stringify({ data: { resource, input }, mediaType: 'application/json' });
}

function keyOf(pem: string | undefined): SigningKey | undefined {
  if (pem === undefined) return undefined;
  const reading = readSigningKey(pem);
  if (!reading.ok) throw new Error('the configuration accepted a signing key that cannot be read');
  return reading.key;
}

/** A2A 1.0, section 8.4. ES256 is randomized: each process publishes its own signature and ETag. */
function signed(card: JsonObject, key: SigningKey, keySetUrl: string): JsonObject {
  const signature = signDocument(card, key, keySetUrl);
  return { ...card, signatures: [{ protected: signature.protected, signature: signature.signature }] };
}
