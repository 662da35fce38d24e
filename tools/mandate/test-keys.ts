/** `acg mandate keys`: makes TEST keys and the configuration that trusts them. */

import { generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { NoInputError } from '../../src/cli/program.ts';
import { readSigningKey, type SigningKey } from '../../src/crypto/signing-key.ts';
import { isObject } from '../../src/json/json.ts';
import { readJson, readText, writeNew } from './files.ts';

/** `TEST` in each name: never to be trusted outside of tests. */
const FILES = {
  provider: 'TEST-provider.pem',
  agent: 'TEST-agent.pem',
  agentPublic: 'TEST-agent.jwk.json',
  checkout: 'TEST-checkout.pem',
  issuer: 'TEST-issuer.json',
} as const;
const DEFAULT_ISSUER = 'https://test-agents.example';

/** The keys of a developer: the provider that signs roots, and the agent. */
export interface TestKeys {
  readonly issuer: string;
  readonly provider: SigningKey;
  readonly agent: SigningKey;
}

/**
 * Makes a key for a provider, one for an agent, and one for the checkouts of a test gateway.
 * Returns the configuration that trusts the provider.
 * @throws Error when a file is there already
 */
export function makeKeys(folder: string, issuer: string = DEFAULT_ISSUER): string {
  const directory = path.resolve(folder);
  const [provider, agent, checkout] = [newPem(), newPem(), newPem()];
  const providerJwk = keyOf(provider, FILES.provider).publicJwk;
  const entry = { id: issuer, keys: [providerJwk] };
  const file = (name: string): string => path.join(directory, name);
  // First: it is in every folder that was used before, which is then refused unchanged.
  writeNew(file(FILES.issuer), `${JSON.stringify(entry, undefined, 2)}\n`);
  writeNew(file(FILES.provider), provider);
  writeNew(file(FILES.agent), agent);
  writeNew(file(FILES.agentPublic), `${JSON.stringify(keyOf(agent, FILES.agent).publicJwk, undefined, 2)}\n`);
  writeNew(file(FILES.checkout), checkout);
  const members = Object.entries(providerJwk).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `# TEST keys are in ${directory}. With them anyone can make mandates that this gateway accepts: never trust them where money is real.
authorization:
  ap2:
    enabled: true
    checkout:
      signingKey: ${JSON.stringify(`\${file:${file(FILES.checkout)}}`)}
    issuers:
      - id: ${JSON.stringify(issuer)}
        keys:
          - { ${members.join(', ')} }
`;
}

/** What `mandate keys` wrote. @throws Error that names the file */
export function readKeys(directory: string): TestKeys {
  const file = (name: string): string => path.join(directory, name);
  if (!existsSync(file(FILES.issuer)))
    throw new NoInputError(`${directory} is no folder that mandate keys --out made: it has no ${FILES.issuer}`);
  const entry = readJson(file(FILES.issuer));
  const issuer = isObject(entry) ? entry['id'] : undefined;
  if (typeof issuer !== 'string')
    throw new Error(`${file(FILES.issuer)} has no id; mandate keys --out makes such a folder`);
  return { issuer, provider: keyIn(file(FILES.provider)), agent: keyIn(file(FILES.agent)) };
}

function keyIn(file: string): SigningKey {
  return keyOf(readText(file), file);
}

function keyOf(pem: string, file: string): SigningKey {
  const reading = readSigningKey(pem);
  if (!reading.ok) throw new Error(`${file} ${reading.message}`);
  return reading.key;
}

function newPem(): string {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey;
}
