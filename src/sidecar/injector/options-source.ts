/** Where the options of an injector are mounted: one YAML file, or the keys of a ConfigMap. */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type InjectionOptions, readOptions } from '../injection/options.ts';

/** The keys of the ConfigMap that the validating policy reads too. */
const KEYS = [
  'image',
  'imagePullPolicy',
  'configMap',
  'secret',
  'secretKeys',
  'agentsPort',
  'managementPort',
  'drainSeconds',
  'cpuRequest',
  'memoryRequest',
  'memoryLimit',
] as const;
type Key = (typeof KEYS)[number];

interface OptionsSource {
  readonly files: readonly string[];
  /** @throws ConfigError */
  readonly read: (contents: readonly string[]) => InjectionOptions;
}

/**
 * A file is read as `readOptions` says. A directory is the mounted ConfigMap of the
 * validating policy: webhook and policy have one image of the gateway.
 */
export function optionsSource(path: string): OptionsSource {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
    return { files: [path], read: ([text = '']) => readOptions(text) };
  return {
    files: KEYS.map((key) => join(path, key)),
    read: (contents) => readOptions(JSON.stringify(documentOf(contents))),
  };
}

/** The document of `readOptions`, from the contents in the order of the keys. */
function documentOf(contents: readonly string[]): object {
  const value = (key: Key): string => (contents[KEYS.indexOf(key)] ?? '').trim();
  return {
    image: value('image'),
    imagePullPolicy: value('imagePullPolicy'),
    configMap: value('configMap'),
    secret: value('secret'),
    secretKeys: listIn(value('secretKeys')),
    ports: { agents: numberIn(value('agentsPort')), management: numberIn(value('managementPort')) },
    drainSeconds: numberIn(value('drainSeconds')),
    resources: {
      requests: { cpu: value('cpuRequest'), memory: value('memoryRequest') },
      limits: { memory: value('memoryLimit') },
    },
  };
}

function listIn(text: string): readonly string[] {
  return text.split(',').map((item) => item.trim());
}

/** What is no number stays as it is, and is refused with the words of the option. */
function numberIn(text: string): unknown {
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
}
