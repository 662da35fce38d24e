/** The checks of the chain: its node, its newest block, the asset, and the gas of the relayer. */

import { getBalance, getChainId } from 'viem/actions';
import type { ConfiguredEntry } from '../../config/document/config.ts';
import { checkAsset } from '../../payments/x402/chain/asset-check.ts';
import { clientOver, createRpc, type Rpc, readHead } from '../../payments/x402/chain/node.ts';
import { prepareKey } from '../../payments/x402/evm/account.ts';
import { lowerHex } from '../../payments/x402/evm/eip3009.ts';
import { LOW_GAS_TRANSFERS, transfersPaidBy, watchFees } from '../../payments/x402/local/relayer.ts';
import type { X402Config } from '../../payments/x402/wire/settings.ts';
import { type Check, type Finding, failed, type Part, passed, warned } from './check.ts';

/**
 * Age of the newest block from which on the node lags, seconds: ten blocks of the slowest of the
 * known networks.
 */
const HEAD_LATE_SECONDS = 120;
const NODE = 'chain node';

/** The checks, and the time of the newest block for others, milliseconds since 1970. */
interface ChainPart extends Part {
  newestBlockMs(): Promise<number>;
}

/** `now`: milliseconds since 1970. */
export function checkChain({ at: setting, x402 }: ConfiguredEntry, now: () => number = Date.now): ChainPart {
  const nodes = x402.rpcUrls.map((url) => ({ rpc: createRpc(url), host: new URL(url).host }));
  const checks = nodes.flatMap(({ rpc, host }, at): readonly Check[] => {
    const number = at === 0 ? '' : ` ${at + 1}`;
    const needs = [`${NODE}${number}`];
    return [
      { name: `${NODE}${number}`, run: () => node(rpc, x402, host, setting) },
      { name: `chain head${number}`, needs, run: () => head(rpc, x402, now()) },
      { name: `asset${number}`, needs, run: () => asset(rpc, x402, setting) },
      ...(at > 0 || x402.facilitator.mode !== 'local'
        ? []
        : [{ name: 'relayer gas', needs, run: () => gas(rpc, x402) }]),
    ];
  });
  const heads = () => Promise.any(nodes.map(({ rpc }) => readHead(clientOver(rpc.call))));
  return {
    checks,
    close: async () => void (await Promise.all(nodes.map(({ rpc }) => rpc.close()))),
    newestBlockMs: async () => (await heads()).timestamp * 1_000,
  };
}

async function node(rpc: Rpc, { chainId, network }: X402Config, host: string, setting: string): Promise<Finding> {
  const began = performance.now();
  let found: number;
  try {
    found = await getChainId(clientOver(rpc.call));
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return failed(`${host} does not answer: ${why}`, `look at the node, or correct ${setting}.rpcUrl or rpcUrls`);
  }
  const took = Math.ceil(performance.now() - began);
  return found === chainId
    ? passed(`${host} is on ${network} and answers in ${took} ms`)
    : failed(
        `${host} is a node of eip155:${found}, not of ${network}`,
        `correct ${setting}.rpcUrl, rpcUrls or network`,
      );
}

async function head(rpc: Rpc, { mode }: X402Config, nowMs: number): Promise<Finding> {
  const { number, timestamp } = await readHead(clientOver(rpc.call));
  if (mode === 'local') return passed(`block ${number}; a local chain makes blocks when there is something in them`);
  const age = Math.round(nowMs / 1_000) - timestamp;
  if (age <= HEAD_LATE_SECONDS) return passed(`block ${number} is ${Math.max(0, age)} s old`);
  const found = mode === 'mainnet' ? failed : warned;
  return found(`the newest block, ${number}, is ${age} s old: the node lags or stands still`, 'use another node');
}

async function asset(rpc: Rpc, x402: X402Config, setting: string): Promise<Finding | readonly Finding[]> {
  const differences = await checkAsset(rpc, x402);
  if (differences.length === 0)
    return passed(`${x402.asset} is ${x402.assetName} ${x402.assetVersion} with ${x402.assetDecimals} decimals`);
  return differences.map(({ field, expected, found }) =>
    failed(
      `${setting}.${field}: the chain has ${found ?? 'nothing'}, the configuration ${expected}`,
      field === 'domainSeparator'
        ? 'correct assetName and assetVersion: every payment would fail'
        : `correct ${setting}.${field}`,
    ),
  );
}

/** Compares the relayer's balance with the present cost of payments. */
async function gas(rpc: Rpc, { facilitator }: X402Config): Promise<readonly Finding[]> {
  if (facilitator.mode !== 'local') return [];
  const client = clientOver(rpc.call);
  const { address } = await prepareKey(facilitator.privateKey);
  const { maxFeePerGas } = await watchFees({ client, head: () => readHead(client) }).current();
  const balance = await getBalance(client, { address: lowerHex(address) });
  const transfers = transfersPaidBy({ balance, maxFeePerGas });
  const message = `${address} has gas for ${transfers} payments at the present price`;
  if (transfers >= LOW_GAS_TRANSFERS) return [passed(message)];
  const found = transfers === 0 ? failed : warned;
  return [found(message, `send gas to ${address}`)];
}
