/** The TypeScript of a document as one program: each block goes on where the one before ended. */

import type { Block } from './blocks.ts';

/** Prints what a block has waited for; an answer by its status and text. */
const TOLD = `
async function told(values: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [name, value] of Object.entries(values))
    console.log(name, value instanceof Response ? \`\${value.status} \${await value.clone().text()}\` : JSON.stringify(value));
}
`;
const IMPORT = /^import .*;\n/gm;
const AWAITED = /^const (\w+)(?::[^=]+)? = await /gm;

/**
 * The program of these blocks. A block stands inside the one before it, so that it may name again
 * what that one has named.
 */
export function programOf(blocks: readonly Block[]): string {
  const texts = blocks.map(({ text }) => text);
  const imports = new Set(texts.flatMap((text) => text.match(IMPORT) ?? []));
  const bodies = texts.map((text) => {
    const names = [...text.matchAll(AWAITED)].map(([, name = '']) => name);
    return `${text.replaceAll(IMPORT, '')}\nawait told({ ${names.join(', ')} });\n`;
  });
  return `${[...imports].join('')}${TOLD}${bodies.join('{\n')}${'}\n'.repeat(bodies.length - 1)}`;
}
