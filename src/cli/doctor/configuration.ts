/** The check of the configuration, as `acg validate` and a start make it. */

import { headWarnings } from '../../app/head-room.ts';
import { warningsOf } from '../../app/route-warnings.ts';
import { configuredEntries, type GatewayConfig } from '../../config/document/config.ts';
import { configPath } from '../../config/document/parse.ts';
import { ConfigError } from '../../problems/problem.ts';
import { type Catalogue, compileCatalogue } from '../../resources/catalogue.ts';
import { checkedStart } from '../checked-start.ts';
import { type Finding, failed, type NamedFinding, passed } from './check.ts';

interface CheckedConfiguration {
  /** Undefined when it is refused: then nothing else can be looked at. */
  readonly accepted: { readonly config: GatewayConfig; readonly catalogue: Catalogue } | undefined;
  readonly findings: readonly NamedFinding[];
}

export function checkConfiguration(path: string | undefined, env: NodeJS.ProcessEnv): CheckedConfiguration {
  const file = configPath(path, env);
  try {
    const { loaded, also: catalogue } = checkedStart({ path, env }, compileCatalogue);
    const { config } = loaded;
    const warnings = [...warningsOf(config), ...headWarnings(config, catalogue)];
    // Each warning says what to do, so it has no remedy.
    const findings = warnings.map((message): Finding => ({ status: 'WARN', message }));
    return {
      accepted: { config, catalogue },
      findings: named(findings.length === 0 ? [passed(sold(file, config))] : findings),
    };
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    const findings = thrown.problems.map(({ path: at, message }) => failed(`${at}: ${message}`, `correct ${file}`));
    return { accepted: undefined, findings: named(findings) };
  }
}

function named(findings: readonly Finding[]): readonly NamedFinding[] {
  return findings.map((finding) => ({ check: 'configuration', ...finding }));
}

function sold(file: string, config: GatewayConfig): string {
  const { resources } = config;
  const priced = resources.filter(({ pricing }) => pricing.type === 'fixed').length;
  const networks = new Set(configuredEntries(config).map(({ x402 }) => x402.network));
  const money = networks.size === 0 ? 'no payments' : `x402 on ${[...networks].join(', ')}`;
  return `${file}: ${resources.length} resources, ${priced} of them paid; ${money}`;
}
