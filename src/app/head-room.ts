/**
 * Bounds the head of an answer: proxies answer 502 in place of a head larger than their buffer. The
 * gateway's own fields are counted here, each at its longest.
 */

import { STATUS_CODES } from 'node:http';
import type { GatewayConfig } from '../config/document/config.ts';
import { parseAmount } from '../payments/pricing/amount.ts';
import { highestOf } from '../payments/pricing/by-input.ts';
import { type HeadRoom, TOKEN_GAP } from '../payments/x402/wire/challenge.ts';
import { compileOffers } from '../payments/x402/wire/offers.ts';
import { memberPath } from '../problems/problem.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { corsFields } from '../server/http/origin.ts';
import { fieldsBytes, JSON_HEAD, NO_SNIFFING, PAGE_HEADERS } from '../server/http/respond.ts';
import { openSigning } from './open-signing.ts';

const STATUS_LINE = Math.max(...Object.values(STATUS_CODES).map((text) => `HTTP/1.1 000 ${text}\r\n\r\n`.length));

/** Fields of Node and the first middleware in every head, and that of an invoke path. */
const ALWAYS = {
  date: new Date(0).toUTCString(),
  connection: 'keep-alive',
  'keep-alive': 'timeout=65',
  'x-request-id': '_'.repeat(64),
  'cache-control': 'private, no-store',
  'content-length': '9'.repeat(15),
  allow: 'POST',
  ...JSON_HEAD,
  ...NO_SNIFFING,
};

const NUMBER = '9'.repeat(10);
const RATE = { 'ratelimit-policy': `"ip";q=${NUMBER};w=${NUMBER}`, ratelimit: `"ip";r=${NUMBER};t=${NUMBER}` };

type HeadSettings = Pick<GatewayConfig, 'server' | 'backend' | 'limits'>;

/** The bytes of a head that are left for the fields of payments and of the merchant. */
export function headRoom({ server, backend, limits }: HeadSettings): HeadRoom {
  const { allowedOrigins, maxHeadBytes } = server;
  const longest = allowedOrigins.reduce((most, origin) => (origin.length > most.length ? origin : most), '');
  const fields = {
    ...ALWAYS,
    vary: ['Origin', 'Accept', ...backend.originHeaders].join(', '),
    ...(longest === '' ? {} : corsFields(longest)),
    ...(limits.rate === undefined ? {} : RATE),
  };
  const plain = maxHeadBytes - STATUS_LINE - fieldsBytes(fields);
  return { plain, page: plain - fieldsBytes(PAGE_HEADERS) };
}

type SaleSettings = HeadSettings & Pick<GatewayConfig, 'x402' | 'alternatives' | 'merchant' | 'resources' | 'signing'>;

/** Names each resource whose 402 leaves something out to keep its head within the bound. */
export function headWarnings(config: SaleSettings, { bazaar }: Pick<Catalogue, 'bazaar'>): readonly string[] {
  const signer = openSigning(config, { error: () => undefined })?.offers;
  const offers = compileOffers(
    { ...config, headRoom: headRoom(config) },
    { issue: () => TOKEN_GAP },
    { bazaar, signer },
  );
  return config.resources.flatMap(({ id, address, exposedVia }) => {
    const offer = offers.get(id);
    if (offer === undefined) return [];
    const { byInput, decimals } = offer;
    // The highest price has the most digits.
    const dearest = byInput?.at(parseAmount(highestOf(byInput.rule), decimals)) ?? offer;
    const { challenge } = dearest;
    const facts = { requestId: '', expiresAt: '', token: TOKEN_GAP };
    const urls = [...(exposedVia.includes('http') ? [undefined] : []), ...(address === undefined ? [] : [address])];
    const leftOut = new Set(urls.flatMap((url) => challenge.fresh({ ...facts, url }).leftOut));
    if (leftOut.size === 0) return [];
    return [
      `${memberPath('resources', id)}: its 402 leaves out ${[...leftOut].join(', ')}, so that the head has at most ${config.server.maxHeadBytes} bytes; shorten them, or raise server.maxHeadBytes where the proxy in front takes more`,
    ];
  });
}
