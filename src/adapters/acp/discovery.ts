/** The discovery document of the checkout service (acp 7), built once at the start. */

import { ACP_VERSION } from '../../checkouts/operations.ts';
import type { AcpDiscoverySettings } from '../../checkouts/settings.ts';
import type { JsonObject } from '../../json/json.ts';
import { type StaticDocument, staticDocument } from '../../resources/static-document.ts';
import { validatorOf } from './validation/validator.ts';

interface DiscoveryParts {
  /** No trailing slash. */
  readonly publicBaseUrl: string;
  readonly mountPath: string;
  readonly settings: AcpDiscoverySettings;
}

/**
 * The document names neither the merchant nor the payment handlers nor the backend.
 * @throws Error when it does not match its schema: the configuration should have been refused
 */
export function acpDiscovery({ publicBaseUrl, mountPath, settings }: DiscoveryParts): StaticDocument {
  const { documentationUrl, supportedCurrencies, supportedLocales, interventionTypes } = settings;
  const document: JsonObject = {
    protocol: {
      name: 'acp',
      version: ACP_VERSION,
      supported_versions: [ACP_VERSION],
      ...(documentationUrl === undefined ? {} : { documentation_url: documentationUrl }),
    },
    api_base_url: `${publicBaseUrl}${mountPath}`,
    transports: ['rest'],
    capabilities: {
      services: ['checkout'],
      ...(interventionTypes === undefined ? {} : { intervention_types: interventionTypes }),
      ...(supportedCurrencies === undefined ? {} : { supported_currencies: supportedCurrencies }),
      ...(supportedLocales === undefined ? {} : { supported_locales: supportedLocales }),
    },
  };
  const fault = validatorOf('strict', 'DiscoveryResponse')(document);
  if (fault !== undefined) throw new Error(`the ACP discovery document is wrong: ${fault.param} ${fault.message}`);
  return staticDocument(document);
}
