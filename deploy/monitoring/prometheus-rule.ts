/**
 * Writes the alerts as a PrometheusRule, which kustomize cannot make out of a rule file:
 * `node deploy/monitoring/prometheus-rule.ts` after every change of alerts.yaml.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ALERTS = join(import.meta.dirname, 'alerts.yaml');
/** The object that `components/monitoring` applies. */
export const PROMETHEUS_RULE = join(import.meta.dirname, '../components/monitoring/prometheusrule.yaml');

const HEAD = `# Written by deploy/monitoring/prometheus-rule.ts from alerts.yaml there: change the alerts in that file.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: agent-commerce-gateway
spec:
`;

/** The text of the object: the rule file as it stands, its comments too, below `spec`. */
export function prometheusRule(): string {
  const lines = readFileSync(ALERTS, 'utf8').trimEnd().split('\n');
  return `${HEAD}${lines.map((line) => (line === '' ? '' : `  ${line}`)).join('\n')}\n`;
}

if (import.meta.main) writeFileSync(PROMETHEUS_RULE, prometheusRule());
