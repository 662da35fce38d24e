/** Writes texts into environment variables so that the kubelet passes them on unchanged. */

import type { EnvVar } from './pod.ts';

/** The kubelet replaces `$(NAME)` and makes one `$` of `$$`, so each `$` is written twice. */
export function variable(name: string, text: string): EnvVar {
  return { name, value: text.replaceAll('$', '$$$$') };
}

/** The text of a variable that `variable` wrote. */
export function variableText(env: readonly EnvVar[], name: string): string | undefined {
  return env.find((entry) => entry.name === name)?.value?.replaceAll('$$', '$');
}
