/** What kustomize renders of deploy/, for the specs of `deploy`. */

import { ok } from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kustomize } from './kubectl.ts';
import { type Container, containersOf, type Manifest, manifests, type PodSpec, pick, podOf } from './manifest.ts';

const DEPLOY = fileURLToPath(new URL('../../deploy', import.meta.url));
const OVERLAY = 'overlays/dev';
/** What generate.sh makes. */
const SECRETS = /\/secrets\/(gateway|redis)$/;

/** Name of the container that the sidecar component adds. */
export const GATEWAY = 'agent-commerce-gateway';

/**
 * Renders `directory` of a copy of deploy/, so that what a spec makes never is in the working copy;
 * secrets that exist there are not copied. `prepare` gets the path of the copy first.
 */
function render(directory: string, prepare: (copy: string) => void): readonly Manifest[] {
  const copy = mkdtempSync(join(tmpdir(), 'deploy-'));
  try {
    cpSync(DEPLOY, copy, { recursive: true, filter: (source) => !SECRETS.test(source) });
    prepare(copy);
    return manifests(kustomize(join(copy, directory)));
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** `withSecrets`: after the script that makes them. */
export function renderDevelopment(withSecrets: boolean): readonly Manifest[] {
  return render(OVERLAY, (copy) => {
    if (withSecrets) execFileSync(join(copy, OVERLAY, 'secrets/generate.sh'), { stdio: 'pipe' });
  });
}

/** An overlay without its component that injects the gateway. */
export function renderUninjected(overlay: 'dev' | 'prod'): readonly Manifest[] {
  return render(`overlays/${overlay}`, (copy) => {
    const file = join(copy, `overlays/${overlay}/kustomization.yaml`);
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^ {2}- gateway\n/m, ''));
    if (overlay === 'dev') execFileSync(join(copy, OVERLAY, 'secrets/generate.sh'), { stdio: 'pipe' });
  });
}

/** The base with components of deploy/components, in the namespace `shop`. */
export function renderComponents(...components: readonly string[]): readonly Manifest[] {
  return render('overlays/spec', (copy) => {
    mkdirSync(join(copy, 'overlays/spec'));
    const kustomization = {
      namespace: 'shop',
      resources: ['../../base'],
      components: components.map((name) => `../../components/${name}`),
    };
    writeFileSync(join(copy, 'overlays/spec/kustomization.yaml'), JSON.stringify(kustomization));
  });
}

/** An overlay as a cluster would get it, and the parts that the specs read. */
export class Overlay {
  readonly objects: readonly Manifest[];

  constructor(objects: readonly Manifest[]) {
    this.objects = objects;
  }

  get workloads(): readonly Manifest[] {
    return this.objects.filter((object) => object.spec?.template !== undefined);
  }

  get containers(): readonly Container[] {
    return this.workloads.flatMap((workload) => containersOf(podOf(workload)));
  }

  get backendPod(): PodSpec {
    return podOf(this.pick('Deployment', 'market-shop'));
  }

  /** Fails unless the backend's pod has exactly one gateway. */
  get gateway(): Container {
    const [gateway, ...more] = containersOf(this.backendPod).filter(({ name }) => name === GATEWAY);
    ok(gateway !== undefined && more.length === 0, 'one gateway in the pod of the backend');
    return gateway;
  }

  get backend(): Container {
    const [backend] = this.backendPod.containers;
    ok(backend !== undefined);
    return backend;
  }

  pick(kind: string, name: string): Manifest {
    return pick(this.objects, kind, name);
  }
}

/** The development overlay. */
export class Development extends Overlay {
  constructor() {
    super(renderDevelopment(true));
  }
}

/** The production overlay, placeholders and all. */
export class Production extends Overlay {
  constructor() {
    super(render('overlays/prod', () => {}));
  }
}
