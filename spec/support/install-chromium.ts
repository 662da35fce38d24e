/**
 * A Chromium for the tests: $TEST_CHROMIUM, else the one on PATH, else Debian's. As a script it
 * prepares the cache.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { debianProgram, type Program, prepare } from './debian.ts';

const FONTS_CONFIGURATION = 'etc/fonts/console.conf';

/** Finds or unpacks one. @throws Error of one line when there is none and none can be had. */
export function chromium(): Promise<Program> {
  return debianProgram({
    name: 'chromium',
    variable: 'TEST_CHROMIUM',
    folder: 'chromium',
    packages: {
      names: ['chromium', 'chromium-common', 'fonts-liberation', 'fonts-dejavu-core'],
      // It draws the menus of a desktop, and is loaded only where there is one.
      without: /^libgtk-/,
    },
    path: 'usr/lib/chromium/chromium',
    finish(root) {
      mkdirSync(join(root, 'etc/fonts'), { recursive: true });
      writeFileSync(join(root, FONTS_CONFIGURATION), FONTS);
    },
    env: (home) => ({ FONTCONFIG_FILE: join(home, FONTS_CONFIGURATION), XDG_CACHE_HOME: join(home, 'var/cache') }),
  });
}

/** The fonts that were unpacked and no others: a picture of a page is the same on every machine. */
const FONTS = `<?xml version="1.0"?>
<fontconfig>
  <dir prefix="relative">../../usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <match>
    <test name="family"><string>monospace</string></test>
    <edit name="family" mode="prepend" binding="strong"><string>DejaVu Sans Mono</string></edit>
  </match>
  <match>
    <edit name="family" mode="append_last"><string>Liberation Sans</string></edit>
  </match>
</fontconfig>
`;

if (import.meta.main) await prepare(chromium);
