/** The gateway that published attacks run against. */

import { decode, encode } from '../../spec/e2e/proofs.ts';
import { openTestbed, type Testbed } from '../../spec/support/testbed.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Seen } from './payments/channels.ts';

/** What the published attacks buy. */
export const INPUT = { city: 'Berlin' };
export const RESOURCE = { resourceId: 'market_report', input: INPUT };

/** A gateway that sells over every channel, with a buyer and a chain. */
export interface PublishedTestbed {
  readonly testbed: Testbed;
  /** A proof as the chain shows it: without the token that the gateway issued to its buyer. */
  proofOf(): Promise<string>;
  /** Brings a proof over one of the channels, by its number. */
  bring(proof: string, channel?: number, headers?: Readonly<Record<string, string>>): Promise<Seen>;
  /** What an action caused: units paid to the merchant, requests sent to the backend. */
  came(action: () => Promise<void>): Promise<readonly [units: bigint, executions: number]>;
}

export async function openPublishedTestbed(): Promise<PublishedTestbed> {
  const testbed = await openTestbed({ overrides: ALL_CHANNELS });
  return {
    testbed,
    async proofOf() {
      const proof = decode(await testbed.proof('market_report', INPUT));
      delete proof.extensions;
      return encode(proof);
    },
    bring: (proof, channel = 0, headers = {}) =>
      buy(testbed.gateway.url, CHANNELS[channel % CHANNELS.length] ?? 'http', { ...RESOURCE, proof, headers }),
    async came(action) {
      const [income, executions] = [await testbed.income(), testbed.backend.requests.length];
      await action();
      return [(await testbed.income()) - income, testbed.backend.requests.length - executions];
    },
  };
}

/** Answers that delivered. */
export function granted(answers: readonly Seen[]): number {
  return answers.filter(({ outcome }) => outcome === 'delivered').length;
}
