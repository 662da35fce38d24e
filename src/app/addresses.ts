/**
 * Compares the paths of the configuration as callers have them: those of the backend's operations
 * with one another and with the gateway's own. For the table of routes and its warnings.
 */

import type { GatewayConfig } from '../config/document/config.ts';
import { memberPath } from '../problems/problem.ts';
import { ownPaths, type RouteSettings } from './open-routes.ts';

/** A path of the backend that the gateway's own routes keep callers from. */
interface ShadowedPath {
  /** The setting that has the path. */
  readonly setting: string;
  readonly path: string;
  /** The path of the gateway that is served there. */
  readonly by: string;
  /** Only some values of its parameters give the path of the gateway. */
  readonly partly: boolean;
}

/**
 * The path of a template below the base URL, without its query; undefined where it is not below it,
 * so that no caller can name it.
 */
export function callersPath(template: string, pathPrefix: string): string | undefined {
  const path = template.replace(/\?.*/, '');
  return path.startsWith(`${pathPrefix}/`) ? path.slice(pathPrefix.length) : undefined;
}

/** A path with a value for each parameter that no configuration has on purpose. */
export function samplePath(path: string): string {
  return path.replaceAll(/\{[^{}]*\}/g, 'x');
}

/** Finds the gateway's own path at which a path of the backend lies; undefined: none. */
export function ownPathFinder(config: RouteSettings): (path: string) => string | undefined {
  const { exact, below } = ownPaths(config);
  return (path) => {
    const segments = path.split('/');
    const whole = [...exact].find((own) => meets(segments, own, true));
    return whole ?? below.find((own) => meets(segments, own, false));
  };
}

/** The paths of resources, and those that may pass, which the gateway answers itself. */
export function shadowedPaths(config: RouteSettings): readonly ShadowedPath[] {
  const ownPathAt = ownPathFinder(config);
  return configuredPaths(config).flatMap(({ setting, path }) => {
    const by = ownPathAt(path);
    if (by === undefined) return [];
    return [{ setting, path, by, partly: ownPathAt(samplePath(path)) === undefined }];
  });
}

function configuredPaths({ backend, resources }: Pick<GatewayConfig, 'backend' | 'resources'>) {
  const sold = resources.flatMap(({ id, backend: { path: template } }) => {
    const path = callersPath(template, backend.pathPrefix);
    return path === undefined ? [] : [{ setting: `${memberPath('resources', id)}.backend.path`, path }];
  });
  const included = (backend.passthrough?.include ?? []).map((path, index) => ({
    setting: memberPath('backend.passthrough.include', index),
    path,
  }));
  return [...sold, ...included];
}

/** Whether some value of a path is an own path, or lies below it unless that is `whole`. */
function meets(segments: readonly string[], own: string, whole: boolean): boolean {
  const owned = own.split('/');
  if (whole ? segments.length !== owned.length : segments.length < owned.length) return false;
  return owned.every((segment, at) => couldBe(segments[at] ?? '', segment));
}

function couldBe(segment: string, literal: string): boolean {
  if (!segment.includes('{')) return segment === literal;
  const source = segment
    .split(/\{[^{}]*\}/)
    .map((part) => RegExp.escape(part))
    .join('.+');
  return new RegExp(`^${source}$`).test(literal);
}
