/** What others added to the gateway container: kept, unless it could change what the image runs. */

import * as names from './names.ts';
import type { InjectionOptions } from './options.ts';
import type { Container, EnvVar, VolumeMount } from './pod.ts';

const OWN_DIRECTORIES = [names.CONFIG_DIRECTORY, names.SECRET_DIRECTORY, names.TOKEN_DIRECTORY];

/**
 * Read by Node, its OpenSSL and the loader of libraries before the code of the gateway, or saying
 * whom it asks in place of the address that the configuration names.
 */
const STEERING = /^(?:NODE_|LD_|SSL_|OPENSSL_)|^PATH$|_(?:PROXY|proxy)$/;

/** Without those whose names belong to injection, also where it does not write them this time. */
export function foreignVariables(env: readonly EnvVar[], { secretKeys }: InjectionOptions): readonly EnvVar[] {
  const requests = [...names.PROBES.map(({ env: name }) => name), names.ENV_PRESTOP];
  const own = new Set([
    'AGENT_COMMERCE_CONFIG',
    ...secretKeys.map((key) => `${key}_FILE`),
    names.ENV_MERCHANT,
    names.ENV_DRAIN_SECONDS,
    names.ENV_DRAIN_BUDGET,
    names.ENV_MERCHANT_GRACE,
    names.ENV_PRESTOP_SECONDS,
    ...requests.flatMap((name) => [name, `${name}${names.ENV_HEADERS}`]),
  ]);
  return env.filter(({ name }) => !own.has(name));
}

/** Without those that injection replaces. */
export function foreignMounts(mounts: readonly VolumeMount[]): readonly VolumeMount[] {
  return mounts.filter(({ mountPath }) => !OWN_DIRECTORIES.includes(mountPath));
}

/** Why the additions cannot stay; undefined when they can. */
export function additionFault(
  { env = [], volumeMounts = [] }: Container,
  options: InjectionOptions,
): string | undefined {
  const variable = foreignVariables(env, options).find(({ name }) => STEERING.test(name));
  if (variable !== undefined)
    return `container ${names.GATEWAY_CONTAINER} has variable ${variable.name}, which could change what its image runs or whom it asks; remove it`;
  const mount = foreignMounts(volumeMounts).find(({ mountPath }) => isOverGateway(mountPath));
  if (mount !== undefined)
    return `container ${names.GATEWAY_CONTAINER} has a mount at ${mount.mountPath}, over files of the gateway or with .. in it; use another path`;
  return undefined;
}

/** Whether the path equals, lies under or lies above one that the gateway lives by. */
function isOverGateway(mountPath: string): boolean {
  // A path that is relative counts from the root. What `..` leaves depends on links of the image.
  const steps = mountPath.split('/').filter((step) => step !== '' && step !== '.');
  const path = `/${steps.map((step) => `${step}/`).join('')}`;
  return (
    steps.includes('..') ||
    names.GUARDED_PATHS.some((guarded) => path.startsWith(`${guarded}/`) || `${guarded}/`.startsWith(path))
  );
}
