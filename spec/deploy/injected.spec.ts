import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { type Manifest, pick } from './manifest.ts';
import { Development, type Overlay, Production, renderUninjected } from './rendered.ts';

function podTemplate(objects: readonly Manifest[]): Pod {
  return pick(objects, 'Deployment', 'market-shop').spec?.template as unknown as Pod;
}

for (const { name, overlay } of [
  { name: 'dev', overlay: new Development() },
  { name: 'prod', overlay: new Production() },
] as const satisfies readonly { readonly name: string; readonly overlay: Overlay }[])
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
  });
