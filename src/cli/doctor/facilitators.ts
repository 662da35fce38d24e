/** The check of the facilitators: each serves the scheme on this network, with our login. */

import type { ConfiguredEntry } from '../../config/document/config.ts';
import { connectFacilitator } from '../../payments/x402/facilitator/facilitator.ts';
import type { FacilitatorEndpoint } from '../../payments/x402/wire/settings.ts';
import { type Check, type Finding, failed, passed, warned } from './check.ts';

/** One of several that is away is only a warning: the next one is asked. */
export function checkFacilitators(
  endpoints: readonly FacilitatorEndpoint[],
  { at, x402: { network } }: ConfiguredEntry,
): Check {
  return {
    name: 'facilitator',
    async run() {
      const answers = await Promise.all(endpoints.map((endpoint) => answerOf(endpoint, network)));
      const found = answers.some(({ fault }) => fault === undefined) ? warned : failed;
      return answers.map(({ host, login, fault, tookMs }): Finding => {
        if (fault !== undefined) return found(`${host}: ${fault}`, remedyOf(fault, login, at));
        return passed(`${host} serves exact on ${network}, login ${login}, in ${tookMs} ms`);
      });
    },
  };
}

async function answerOf(endpoint: FacilitatorEndpoint, network: string) {
  const facilitator = connectFacilitator(endpoint.url, () => endpoint.auth);
  const began = performance.now();
  try {
    const fault = await facilitator.fault(network);
    const { name: host } = facilitator;
    return { host, login: endpoint.auth.type, fault, tookMs: Math.ceil(performance.now() - began) };
  } finally {
    await facilitator.close();
  }
}

function remedyOf(fault: string, login: FacilitatorEndpoint['auth']['type'], at: string): string {
  if (/answered 40[13]\b/.test(fault))
    return login === 'none'
      ? `set ${at}.facilitator.auth: it wants a login`
      : `look at ${at}.facilitator.auth: the login may be taken back, and this clock may be wrong`;
  return /does not serve|does not say/.test(fault)
    ? 'name a facilitator of this network'
    : `look whether it is up, or name others under ${at}.facilitator.fallbacks`;
}
