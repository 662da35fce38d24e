/**
 * Python of Debian with gunicorn, daphne and Django: $TEST_PYTHON with these modules, else the one
 * unpacked into `.cache`. As a script it prepares the cache.
 */
import { join } from 'node:path';
import { debianProgram, type Program, prepare } from './debian.ts';

const PYTHON = ['python3.11', 'python3.11-minimal', 'libpython3.11-stdlib', 'libpython3.11-minimal'];
const MODULES = [
  ...['gunicorn', 'pkg-resources', 'django', 'asgiref', 'sqlparse', 'tz', 'daphne', 'twisted', 'autobahn', 'txaio'],
  ...['zope.interface', 'incremental', 'constantly', 'hyperlink', 'idna', 'automat', 'attr', 'six', 'cbor'],
  ...['openssl', 'cryptography', 'cffi-backend', 'service-identity', 'pyasn1', 'pyasn1-modules', 'typing-extensions'],
];

/** Finds or unpacks one. @throws Error of one line when there is none and none can be had */
export function pythonWithServers(): Promise<Program> {
  return debianProgram({
    // No program on PATH has this name: another Python lacks the modules.
    name: 'python3.11 with gunicorn and daphne',
    variable: 'TEST_PYTHON',
    folder: 'python',
    packages: { names: [...PYTHON, ...MODULES.map((name) => `python3-${name}`)] },
    path: 'usr/bin/python3.11',
    env: (home) => ({
      PYTHONHOME: join(home, 'usr'),
      PYTHONPATH: join(home, 'usr/lib/python3/dist-packages'),
      PYTHONDONTWRITEBYTECODE: '1',
    }),
  });
}

if (import.meta.main) await prepare(pythonWithServers);
