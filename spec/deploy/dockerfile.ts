/** Reads Dockerfiles and .dockerignore, for the specs of the image. */

import { readFileSync } from 'node:fs';

export interface Instruction {
  /** Upper case, for example `COPY`. */
  readonly name: string;
  readonly value: string;
}

/** Reads a Dockerfile: comments dropped, continued lines joined. */
export function instructions(path: string | URL): readonly Instruction[] {
  const text = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'))
    .join('\n')
    .replaceAll(/\\\n\s*/g, ' ');
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [name = '', ...rest] = line.trim().split(/\s+/);
      return { name: name.toUpperCase(), value: rest.join(' ') };
    });
}

/** The instructions of each stage, its FROM first. */
export function stages(all: readonly Instruction[]): readonly (readonly Instruction[])[] {
  const starts = all.flatMap(({ name }, index) => (name === 'FROM' ? [index] : []));
  return starts.map((start, stage) => all.slice(start, starts[stage + 1]));
}

/**
 * Whether the build context contains `path`, by the rules of .dockerignore: the last matching line
 * wins, a line matches a path or a parent of it, `*` stands for one path segment. Throws on `**`,
 * which this reader does not know.
 */
export function inContext(dockerignore: string, path: string): boolean {
  const segments = path.split('/');
  const parents = segments.map((_segment, index) => segments.slice(0, index + 1).join('/'));
  let included = true;
  for (const line of dockerignore.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    if (line.includes('**')) throw new Error(`.dockerignore line "${line}" is not understood`);
    const pattern = line.replace(/^!/, '').replaceAll('.', '\\.').replaceAll('*', '[^/]*');
    if (parents.some((parent) => new RegExp(`^${pattern}$`).test(parent))) included = line.startsWith('!');
  }
  return included;
}
