/** What lies in an image that an attacker could use, or that the gateway could change. */

import { globSync, lstatSync } from 'node:fs';
import { join } from 'node:path';

const SHELLS = /(?:^|\/)(?:a|ba|da|k|mk|z)?sh$|(?:^|\/)(?:busybox|npm|npx|corepack|apt|apt-get|dpkg|curl|wget)$/;
const SET_ID = 0o6000;
const WRITABLE_BY_ALL = 0o002;

/** Names of the files that should not be there, each with why, from the root of an image. */
export function foundIn(root: string): readonly string[] {
  return globSync('**/*', { cwd: root }).flatMap((path) => {
    const file = lstatSync(join(root, path));
    const reasons: string[] = [];
    if (SHELLS.test(path) && !file.isDirectory()) reasons.push('a shell or an installer');
    if (file.isFile() && (file.mode & SET_ID) !== 0) reasons.push('runs with the rights of its owner');
    if (/^app(?:\/|$)/.test(path) && (file.uid !== 0 || (file.mode & WRITABLE_BY_ALL) !== 0))
      reasons.push('not only root may change it');
    return reasons.map((reason) => `${path}: ${reason}`);
  });
}
