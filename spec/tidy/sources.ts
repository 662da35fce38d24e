/** The texts that the rules of tidiness are about. */

import { globSync, readFileSync } from 'node:fs';

/** TypeScript and JavaScript of the whole repository, by path. */
export const texts = new Map(
  globSync(['{src,tools,spec,verification,deploy}/**/*.{ts,js}', '*.ts'], { exclude: ['**/node_modules/**'] })
    .sort()
    .map((file) => [file, readFileSync(file, 'utf8')] as const),
);
/** The files of the gateway itself. */
export const sources = [...texts.keys()].filter((file) => file.startsWith('src/') && file.endsWith('.ts'));
/** Paths of all that is read: code, scripts, manifests and documents. */
export const pages = globSync(['{src,tools,spec,verification,deploy,docs}/**/*.{ts,js,lua,md,yaml}', '*.md'], {
  exclude: ['**/node_modules/**'],
});
