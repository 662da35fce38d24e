/** Private keys that anyone can read: with one of them money moves on the local chain alone. */

import { createHash } from 'node:crypto';
import { LOCAL_CHAIN_ID } from '../../pricing/networks.ts';
import { hexBytes } from './calldata.ts';

/**
 * The account of each key and the SHA-256 of the key: first the TEST buyer of `acg dev`, then the
 * accounts of anvil and hardhat ("test test … junk").
 */
const PUBLISHED: ReadonlyMap<string, string> = new Map([
  ['0x2B71e151d846a82EEb185e24947B4AE108F6B388', 'e32cc619a8bd280cbbbc9a79aa983b6914590940d56807970695585a7e57a80b'],
  ['0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', '59891c96881dfbcf7d2ddc270b7813e666694fbbffe8ddd2736bf91c1b0e85d4'],
  ['0x70997970C51812dc3A010C7d01b50e0d17dc79C8', 'bca4c2c0761d850f0c403a699280f70f86ab6659a611ada431019203cd66098f'],
  ['0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC', '193ae84c4c9567c25105535802f463f3f8dc420b0ce9a5b57c7931c764e623d6'],
  ['0x90F79bf6EB2c4f870365E785982E1f101E93b906', 'e25a680eff8baac7b15129a830ecc40211017919d5d32fce8c6b409af753e50f'],
  ['0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65', '6718ba8966161cc843e01e8d19f018859e1bcba7f0e8f2c108578b497ac408b7'],
  ['0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc', 'ac29b3735d1b57180dea890d6321cd27e593723cbe9e227eed8a3fa35945122c'],
  ['0x976EA74026E726554dB657fA54763abd0C3a0aa9', '93e372c67f7238faf2dfdc029246b299e88d71937680cbb895fedeb2a262ed19'],
  ['0x14dC79964da2C08b23698B3D3cc7Ca32193d9955', '59ad99d565557cc0968550ed2f5ea5ff5fd1d279324a25d324a531053c9c16a3'],
  ['0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f', '2d1831e800ec18fe3e29da2e4357db936efce5b9792d76683d465582f0910db0'],
  ['0xa0Ee7A142d267C1f36714E4a8F75612F20a79720', '25061aad2bb0917814989eb38f95608a744ecb8173fdce329486e8b83086e5f0'],
  ['0xBcd4042DE499D14e55001CcbB24a551F3b954096', 'ea72a3e7d4937af3e138d48889290ace71d6fa2c9846509efee3ff2483fbc8da'],
  ['0x71bE63f3384f5fb98995898A86B02Fb2426c5788', 'e77b7f2257fe244cec79340345d2044069e5544129acce4947388e67a6b26200'],
  ['0xFABB0ac9d68B0B445fB7357272Ff202C5651694a', '3d10abbc9c3e287bd2c89cd83cf1849b9368352fe9318823bb25cafd0aa23fbd'],
  ['0x1CBd3b2770909D4e10f157cABC84C7264073C9Ec', '6503803831c946cdadd00c0116828972f5dcdffa5f2417ea136f75eba8a58859'],
  ['0xdF3e18d64BC6A983f673Ab319CCaE4f1a57C7097', '74f97a55058da1bab0311ae9d2530606fd1aed2612b552886a4163a290633b63'],
  ['0xcd3B766CCDd6AE721141F452C550Ca635964ce71', 'b8acf5d5eb4e7fd0b086cc02be9efbb57ced88c3528e151565341e685753cbee'],
  ['0x2546BcD3c84621e976D8185a91A922aE77ECEc30', 'a9c85ef9ebbbe0685ca5c740e814b69797a557e0bdabd24e7363b2c72fa3f929'],
  ['0xbDA5747bFD65F08deb54cb465eB87D40e51B197E', 'c188a572f30c631c29864a510a25759a260e95a52df2f83b89c64436411a5de2'],
  ['0xdD2FD4581271e230360230F9337D5c0430Bf44C0', 'ac70e04ef12b755b829661e0f57bd3349f0f006536b739f154212be4c1a7191f'],
  ['0x8626f6940E2eb28930eFb4CeF49B2d1F2C9C1199', 'fd375fcf38ac71dd90e0ff16ae924cd13bd9dd120a8b6135b3e63b87b8ff532f'],
]);
const ACCOUNTS: ReadonlySet<string> = new Set([...PUBLISHED.keys()].map((account) => account.toLowerCase()));
const KEY_DIGESTS: ReadonlySet<string> = new Set(PUBLISHED.values());

/** Whether anyone can sign for this account, and the chain is one that others use. */
export function isPublishedAccount(account: string, chainId: number): boolean {
  return chainId !== LOCAL_CHAIN_ID && ACCOUNTS.has(account.toLowerCase());
}

/** The same of a private key, 32 bytes as 0x-hex. */
export function isPublishedKey(privateKey: string, chainId: number): boolean {
  if (chainId === LOCAL_CHAIN_ID) return false;
  return KEY_DIGESTS.has(createHash('sha256').update(hexBytes(privateKey)).digest('hex'));
}
