import type { Json, JsonObject } from '../../json/types.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import { AUTHORIZATION_MEMBER, PAYMENT_MEMBER } from '../../resources/schemas/schema-check.ts';
import { asksForMandate } from '../description.ts';
import { MANDATE_SCHEME, skillOf } from './skills.ts';
import { X402_EXTENSIONS } from './x402-keys.ts';

/** What the agent card is made from. */
export interface CardParts {
  readonly settings: CardSettings;
  readonly catalogue: Pick<Catalogue, 'byId' | 'listed'>;
  readonly merchant: { readonly name: string; readonly publicBaseUrl: string };
  /** Of the gateway. */
  readonly version: string;
}

/** What an operator says about the agent. */
export interface CardSettings {
  readonly mountPath: string;
  /** Whether a task may wait for its payment: without it the x402 extension is not served as it is written. */
  readonly continuation: boolean;
  readonly description: string | undefined;
  readonly provider: { readonly organization: string; readonly url: string } | undefined;
  readonly documentationUrl: string | undefined;
  readonly iconUrl: string | undefined;
}

/** The contract of the data part, which a skill of A2A 1.0 has no member for. */
const RESOURCES_EXTENSION = 'urn:agent-commerce:a2a:resources:1';
const JSON_ONLY = ['application/json'];

/**
 * The agent card (A2A 1.0, section 4.4.1; contract 7.2). No members of our own and no empty lists or defaults: readers drop those
 * before they check a signature, and would find another text than the one that was signed.
 */
export function agentCard({ settings, catalogue, merchant, version }: CardParts): JsonObject {
  const { provider, documentationUrl, iconUrl } = settings;
  const resources = catalogue.listed.filter(({ exposedVia }) => exposedVia.includes('a2a'));
  const paid = resources.some(({ pricing }) => pricing.type === 'fixed');
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
      extensions: [
        ...(paid && settings.continuation ? PAYMENT_EXTENSIONS : []),
        resourcesExtension(publicBaseUrl, mandates),
      ],
      extendedAgentCard: false,
    },
    ...(mandates ? { securitySchemes: MANDATE_SCHEMES } : {}),
    defaultInputModes: JSON_ONLY,
    defaultOutputModes: JSON_ONLY,
    skills: resources.map((resource) => skillOf(resource, catalogue.byId.get(resource.id))),
    ...(iconUrl === undefined ? {} : { iconUrl }),
  };
}

const PAYMENT_EXTENSIONS: readonly Json[] = X402_EXTENSIONS.map((uri) => ({
  uri,
  description: 'When activated, a task waits for its x402 payment, and a message with its id pays.',
}));

const MANDATE_SCHEMES: JsonObject = {
  [MANDATE_SCHEME]: {
    apiKeySecurityScheme: {
      description: `An AP2 0.2 mandate for the checkout of the challenge, or the same in input.${AUTHORIZATION_MEMBER}.`,
      location: 'header',
      name: 'Agent-Authorization',
    },
  },
};

function resourcesExtension(publicBaseUrl: string, mandates: boolean): Json {
  return {
    uri: RESOURCES_EXTENSION,
    description: 'A message has one data part: resource is the id of a skill, input fits its schema at resourcesUrl.',
    params: {
      resourcesUrl: `${publicBaseUrl}/api/resources`,
      discoveryUrl: `${publicBaseUrl}/.well-known/agent-commerce`,
      paymentField: `input.${PAYMENT_MEMBER}`,
      ...(mandates ? { authorizationField: `input.${AUTHORIZATION_MEMBER}` } : {}),
    },
  };
}
