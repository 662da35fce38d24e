/** The calldata of Multicall3, which makes many calls in one transaction. */

import { prepareEncodeFunctionData } from 'viem';
import { decodeFunctionData, decodeFunctionResult, encodeFunctionData, parseAbi, toFunctionSelector } from 'viem/utils';
import { lowerHex } from './abi-words.ts';

/** Its address on every chain that has it. */
export const MULTICALL3 = '0xca11bde05977b3631167028862be2a173976ca11';

const ABI = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] results)',
]);
const AGGREGATE = prepareEncodeFunctionData({ abi: ABI, functionName: 'aggregate3' });
const SELECTOR = toFunctionSelector(ABI[0]);

/** Calls of one contract in this order. One that fails undoes itself and no other. */
export function aggregateCall(target: string, calls: readonly string[]): `0x${string}` {
  const address = lowerHex(target);
  const list = calls.map((call) => ({ target: address, allowFailure: true, callData: lowerHex(call) }));
  return encodeFunctionData({ ...AGGREGATE, args: [list] });
}

/** Which of the calls succeeded, in their order. @throws when these are no results */
export function succeeded(returned: string): readonly boolean[] {
  const results = decodeFunctionResult({ abi: ABI, functionName: 'aggregate3', data: lowerHex(returned) });
  return results.map(({ success }) => success);
}

/** The calls in calldata: those that are batched, or the calldata itself. */
export function callsIn(calldata: string): readonly string[] {
  if (!calldata.startsWith(SELECTOR)) return [calldata];
  try {
    const { args } = decodeFunctionData({ abi: ABI, data: lowerHex(calldata) });
    return args[0].map(({ callData }) => callData);
  } catch {
    return [];
  }
}
