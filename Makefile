# Everything runs on the Node that the lockfile brings, whatever the machine has.
MACHINE_PATH := $(PATH)
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
PACKAGES := node_modules/.package-lock.json
INSTALLED := node_modules/.node-runs
.DEFAULT_GOAL := help
.PHONY: help run demo test unit pictures chaos attack mutants slips pods image streams verify verify-quick verify-admission check deps format bench bench-quick build package clean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# With the machine's own Node: the one of the lockfile may be one that does not run.
$(PACKAGES): package.json package-lock.json .npmrc
	@PATH='$(MACHINE_PATH)' npm ci --loglevel=error
	@touch $@

$(INSTALLED): $(PACKAGES)
	@sh spec/support/lockfile-node.sh
	@touch $@

run: $(INSTALLED) ## gateway, sample merchant and a local chain, until Ctrl-C
	@node spec/support/run.ts

demo: $(INSTALLED) ## the same, then one resource bought with the official client
	@node spec/support/demo.ts

test: $(INSTALLED) ## the specs, and a short run of what touches money, with a real Redis and a real chain; SPEC=spec/store for a part
	@node spec/run.ts $(SPEC)

unit: $(INSTALLED) ## the tests that need no server and no download
	@node spec/run.ts --unit

chaos: $(INSTALLED) ## 6,000 paid calls under kills, power cuts and lies; ARGS="--calls 500 --seed 7"
	@node spec/support/install-redis.ts
	@node verification/chaos/main.ts $(ARGS)

attack: $(INSTALLED) ## the adversary suite: every known attack, and the table of goals; ARGS="--quick"
	@node spec/support/install-redis.ts
	@node verification/attack/main.ts $(ARGS)

mutants: $(INSTALLED) ## removes one check of the mandate verifier at a time: each must flip a test; ARGS="--checks" for whole checks only
	@node verification/mandates/mutants.ts $(ARGS)

slips: $(INSTALLED) ## whether something sold runs unpaid in any of 3,600 spellings, with merchants of 27 kinds, gunicorn, daphne and Next.js (330 MB the first time); ARGS="--only Koa"
	@node verification/passthrough/main.ts $(ARGS)

verify-quick: $(INSTALLED) ## what proves the system at length, as short as it goes: ten minutes
	@node spec/run.ts --verification

verify: $(INSTALLED) ## the same at full length, one after the other: hours
	@$(MAKE) chaos
	@$(MAKE) chaos ARGS="--store sqlite"
	@$(MAKE) attack
	@$(MAKE) mutants
	@$(MAKE) slips
	@$(MAKE) pods
	@node verification/chaos/sim/main.ts
	@node verification/refunds/main.ts 500
	@node verification/import/main.ts

verify-admission: $(INSTALLED) ## every way of injection, judged by Kubernetes' own admission code: 324 MB and a long build the first time
	@node verification/admission/main.ts

check: $(INSTALLED) ## types, lint, format, what the schema of the configuration gives
	@tsc --project .
	@tsc --project src/operator/console
	@biome check --error-on-warnings .
	@node tools/docs/configuration.ts

format: $(INSTALLED) ## repair what lint and format can repair, and write what the schema of the configuration gives
	@biome check --write .
	@node tools/docs/configuration.ts --write

pictures: $(INSTALLED) ## docs/pictures/console.png, from the real console with invented sales
	@node spec/support/install-chromium.ts
	@node spec/operator/console/draw.ts

pods: $(INSTALLED) ## restarts of injected pods under buyers that pay: none fails, whichever way injected; ARGS="--short"
	@node spec/support/install-redis.ts
	@node verification/pods/main.ts $(ARGS)

streams: $(INSTALLED) ## long transfers, WebSockets and floods through the passthrough: memory and delays; ARGS="--quick"
	@node verification/streams/main.ts $(ARGS)

image: $(INSTALLED) ## builds the image over local bases and runs it as a pod would; says plainly what is missing
	@node verification/image/main.ts $(ARGS)

bench: $(INSTALLED) ## what the gateway costs beside every peer, and the table of goals; exit code 1 when one is missed; ARGS="--before FILE" for an earlier gateway
	@node spec/support/install-redis.ts
	@node verification/bench/run.ts $(ARGS)

bench-quick: $(INSTALLED) ## the rows that matter most, in about a minute
	@node spec/support/install-redis.ts
	@node verification/bench/run.ts --quick $(ARGS)

deps: $(PACKAGES) ## newer versions of the packages, and known vulnerabilities of those installed
	@npm outdated || true
	@npm audit

build: $(INSTALLED) ## what the image carries: dist/, with dist/gateway.mjs to run and dist/sbom.json
	@rolldown --config rolldown.config.ts --logLevel warn
	@node deploy/bundle/compile.ts dist

package: $(INSTALLED) ## the npm package: dist/agent-commerce-gateway-<version>.tgz, with acg, the library and the documents
	@node deploy/package/make.ts

clean: ## remove what was built or downloaded, except node_modules
	@rm -rf dist .cache data coverage
