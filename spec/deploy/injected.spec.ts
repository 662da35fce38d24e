import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { type Manifest, pick } from './manifest.ts';
import { Development, type Overlay, Production, renderUninjected } from './rendered.ts';

const OVERLAYS = join(import.meta.dirname, '../../deploy/overlays');
const MAIN = join(import.meta.dirname, '../../src/main.ts');

function podTemplate(objects: readonly Manifest[]): Pod {
  return pick(objects, 'Deployment', 'market-shop').spec?.template as unknown as Pod;
}

for (const { name, merchant, overlay } of [
  { name: 'dev', merchant: 'merchant/deployment.yaml', overlay: new Development() },
  { name: 'prod', merchant: 'merchant.yaml', overlay: new Production() },
] as const satisfies readonly { readonly name: string; readonly merchant: string; readonly overlay: Overlay }[])
  describe(`the merchant of overlays/${name}`, () => {
    const bare = podTemplate(renderUninjected(name));
    const rendered = podTemplate(overlay.objects);

    it('has probes of its own, and neither hooks nor a gateway', () => {
      const [container] = bare.spec.containers;
      assert.ok(container?.livenessProbe?.httpGet !== undefined && container.readinessProbe?.httpGet !== undefined);
      assert.equal(container.lifecycle, undefined);
      assert.equal(bare.spec.initContainers, undefined);
    });

    it('is rendered exactly as injection makes it, with the image and the configuration of the overlay', () => {
      const config = pick(overlay.objects, 'ConfigMap', 'agent-commerce-gateway-config').metadata.name;
      const secret = overlay.backendPod.volumes?.find((volume) => volume.name === 'agent-commerce-secret')?.secret;
      const injection = injectPod(bare, {
        ...USUAL_OPTIONS,
        image: overlay.gateway.image,
        configMap: config,
        secret: secret?.secretName ?? '',
      });
      assert.ok(injection.kind === 'injected', JSON.stringify(injection));
      assert.deepEqual(rendered, injection.pod);
      assert.deepEqual(injection.warnings, []);
    });

    it('has the component that acg inject writes', () => {
      const written = mkdtempSync(join(tmpdir(), 'component-'));
      try {
        const args = ['inject', '--component', written, '-f', join(OVERLAYS, name, merchant)];
        execFileSync(process.execPath, [MAIN, ...args], { stdio: 'pipe' });
        const files = readdirSync(written).sort();
        assert.deepEqual(readdirSync(join(OVERLAYS, name, 'gateway')).sort(), files);
        for (const file of files)
          assert.equal(
            readFileSync(join(OVERLAYS, name, 'gateway', file), 'utf8'),
            readFileSync(join(written, file), 'utf8'),
            `acg inject --component deploy/overlays/${name}/gateway -f deploy/overlays/${name}/${merchant}`,
          );
      } finally {
        rmSync(written, { recursive: true });
      }
    });
  });
