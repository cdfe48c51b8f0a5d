# Targets for people and CI. Everything is pinned: tools in go.tools.mod, golangci-lint in hack/golangci-lint, the control
# plane in hack/controlplane, the real node in hack/node, Prometheus in hack/prometheus. All are built from Go modules;
# nothing else is downloaded.

# The manager's image.
IMG ?= controller:latest
CONTAINER_TOOL ?= docker
# The folder that `make build-installer` writes to.
DIST ?= dist
# The URL of releases, with a folder for each version.
DOWNLOADS ?= https://rollset.dev/releases
# The folder of a registry that `make push` pushes the Helm chart to.
CHARTS ?= $(dir $(IMG))charts
# For the Operator Lifecycle Manager: the version, the one before it if no version may be skipped, the folders of the bundle and
# the catalog, the bundle's image by digest, and the file of the catalog before, which a new one continues.
VERSION ?= 0.1.0
REPLACES ?=
BUNDLE ?= bundle
BUNDLE_IMG ?=
CATALOG ?= catalog
BEFORE ?=
# Seeds that `make rollouts` plays every scenario with, and the first of them.
SEEDS ?= 10000
START ?= 1
# How long `make fuzz` runs each target.
FUZZTIME ?= 1m
# How long `make crashpoints` plays pairs.
BUDGET ?= 10m
# The tests that `make deflake` repeats, and the benchmarks that `make microbench` runs.
FOCUS ?= .
PKG ?= ./...
# The number of random edits of `make plans`.
EDITS ?= 50
# Flags of the manager that `make run` runs, such as --namespaces=shop.
FLAGS ?=
# Flags of test/e2e, such as images that the nodes of KUBECONFIG can run. Its package comment lists them.
E2E_FLAGS ?=
# The versions of Kubernetes that `make test-versions` runs, of those with a module file in hack/controlplane. KUBERNETES=1.34 lets
# any other target run on one of them.
VERSIONS ?= $(shell hack/controlplane/build.sh versions)
# The revision that `make check` compares the working tree with.
BASE ?= main
# How many pairs of sets `make differential` plays.
PAIRS ?= 1000
# How much `make test-sim` plays: ORDERS of events of each scenario, one of SAMPLE crash points, and CHECKS random histories of each
# kind of set. `make defects` shows that no fewer mistakes are noticed with fewer.
ORDERS ?= 4
SAMPLE ?= 16
CHECKS ?= 1000
# How many random INPUTS `make test-sim` tries for each property of the planners, and five times how many random specs for other rules.
INPUTS ?= 2000
SPECS ?= 50
# How often `make microbench` runs each benchmark: several runs distinguish a change from chance.
COUNT ?= 6

# Programs and tests with their own module files, so that the manager does not get their dependencies.
MODULES := hack/bundle hack/helm hack/integrations hack/release

TOOL := go tool -modfile=go.tools.mod
CONTROLLER_GEN := $(TOOL) controller-gen
CRD_REF_DOCS := $(TOOL) crd-ref-docs
KUSTOMIZE := $(TOOL) kustomize
# The kubectl in the PATH, or one that is built.
KUBECTL ?= "$$(command -v kubectl || echo "$$(hack/controlplane/build.sh kubectl)/kubectl")"
GOLANGCI_LINT := "$$(hack/golangci-lint/build.sh)"

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Targets share the working tree. Only `make test` runs some side by side, which leave it alone.
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
# What one folder has compiled serves all others, and what is built for the local cluster serves our programs and tests.
GOFLAGS := $(sort $(shell go env GOFLAGS) -trimpath)
CGO_ENABLED := 0
export GOFLAGS CGO_ENABLED
# What bash prints for the keyword time.
export TIMEFORMAT = $@: %0lR, of which computing %0lU and %0lS

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make \033[36m<target>\033[0m\n"} \
		/^[a-zA-Z0-9_-]+:.*?##/ {gsub(/[$$][$$]/, "$$", $$2); printf "  \033[36m%-16s\033[0m %s\n", $$1, $$2} \
		/^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)}' $(MAKEFILE_LIST)

.PHONY: clean
clean: ## Remove build output; caches outside the folder stay.
	rm -rf bin dist

##@ Develop

.PHONY: generate
generate: ## Generate the deep copies of the API's types, their reference, the table of flags, and the picture of a plan.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...
	$(CRD_REF_DOCS) --log-level=ERROR --source-path=api --config=hack/reference/config.yaml \
		--templates-dir=hack/reference/templates --renderer=markdown --output-path=docs/api-reference.md
	go test -vet=off . -run TestFlagsAreDocumented -update
	go run ./cmd/kubectl-rollset plan --offline -f hack/plan/old.yaml -f hack/plan/new.yaml -o svg >docs/images/plan.svg

.PHONY: manifests
manifests: ## Generate the CRD, the manager's role, and the schema with which kustomize merges patches of RollSets.
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true,omitToolVersion=true paths=./api/... output:crd:stdout | \
		go run ./hack/crdgen -o config/crd/bases/apps.rollset.dev_rollsets.yaml
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./internal/controller output:rbac:dir=config/rbac/manager
	$(CONTROLLER_GEN) rbac:roleName=node-reader-role paths=./internal/controller/optional output:rbac:dir=config/rbac/disruption
	kubernetes=$$(go -C hack/controlplane/kubernetes mod download -json k8s.io/kubernetes | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
		go run ./hack/patchschema -from "$$kubernetes/api/openapi-spec/swagger.json" -o config/components/kustomize/schema.json
	cp config/crd/bases/apps.rollset.dev_rollsets.yaml charts/rollset/files/crd.yaml
	cp config/rbac/manager/role.yaml config/rbac/rollset_*_role.yaml config/prometheus/rules.yaml \
		config/network-policy/manager_traffic.yaml charts/rollset/files/
	cp config/rbac/disruption/role.yaml charts/rollset/files/disruption_role.yaml

.PHONY: fmt
fmt: ## Format the code.
	$(GOLANGCI_LINT) fmt

.PHONY: tidy
tidy: ## Tidy every module file.
	hack/tidy.sh

.PHONY: lint
lint: ## Check the code against .golangci.yml.
	linter=$(GOLANGCI_LINT); time { $(LOW) "$$linter" run ./...; \
		for module in $(MODULES); do (cd $$module && $(LOW) "$$linter" run ./...); done; }

.PHONY: lint-fix
lint-fix: ## Check the code, and apply automatic fixes.
	$(GOLANGCI_LINT) run --fix ./...

.PHONY: verify
verify: ## Regenerate and reformat everything; fail if that changes a file.
	time $(LOW) hack/verify.sh $(if $(SHORT),code)

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities that the code can reach; asks vuln.go.dev.
	$(TOOL) govulncheck ./...

.PHONY: presubmit
presubmit: test vulncheck ## Run everything that a change must pass.

##@ Test

# Packages are grouped by what their tests need. CLUSTER: a cluster with the manager. API: etcd and an API server. SIM: time.
# All others are unit tests.
TESTED := go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...
CLUSTER := /test/(browser|cli|differential|e2e|install|node|upgrade)$$
API := /test/(admission|docs|kustomize)$$|/internal/testing/(testbed|testbed/nodes|sim/fidelity)$$|/internal/controller$$
SIM := /internal/(forecast|plan|testing/sim)$$
# The race detector slows a test down tenfold, and needs a second build of all that the test imports. It watches packages in
# which goroutines start or meet. By rule, planners have none.
RACE := find . -name '*.go' -exec grep -lE '^\s*go (func\(|[a-zA-Z]+[.(])|^\s*"sync(/atomic)?"$$' {} + | \
	xargs -n 1 dirname | sort -u | sed 's,^\.,,;s,$$,$$,'
# The browser of the Chromium family that renders the pictures of plans.
BROWSER ?= $$(command -v chromium chromium-browser google-chrome google-chrome-stable | head -n 1 || true)
# A test that hangs ends after the timeout; each wait of a test ends much earlier. The linter vets the code.
GO_TEST = $(LOW) go test -vet=off -timeout 60m $(SHUFFLE)
CONTROLPLANE := KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS
# The same random inputs each time. `make histories` and similar targets draw new ones.
test%: export RAPID_SEED ?= 1
# Without it, compilers spend a quarter, and API servers a fifth, of their time on garbage collection.
verify test%: export GOGC ?= 300

# `make test` runs these lanes side by side, and the targets of a lane one after the other. The targets of the first two compute
# without a pause. They have a low priority: they use the time in which the clusters of the other lanes wait, and delay none.
LANES := CODE UNIT E2E NODE PLUGIN
CODE := verify lint test-modules
UNIT := test-sim test-unit
E2E := test-e2e test-bench
NODE := test-node test-upgrade test-install
PLUGIN := test-cli test-envtest test-docs test-differential test-browser
ifdef SIDE_BY_SIDE
$(CODE) $(UNIT): LOW := nice
test%: export KUBECONFIG :=
# after,TARGETS: each target begins when the one before has ended.
after = $(if $(word 2,$1),$(eval $(word 2,$1): | $(word 1,$1))$(call after,$(wordlist 2,$(words $1),$1)))
$(foreach lane,$(LANES),$(call after,$($(lane))))
endif

.PHONY: test
test: ## Run all checks and tests, as CI does. docs/contributing/tests.md has what they are, and where the minutes go.
	time $(MAKE) --no-print-directory --output-sync=target -j $(words $(LANES)) SIDE_BY_SIDE=1 SHORT=-short \
		$(foreach lane,$(LANES),$($(lane)))

.PHONY: test-all
test-all: ## Run all checks and tests in their long form, in a random order, and the long searches; takes hours.
	$(MAKE) --no-print-directory --output-sync=target -j $(words $(LANES)) SIDE_BY_SIDE=1 SHUFFLE=-shuffle=on ORDERS=50 SAMPLE=1 CHECKS=20000 INPUTS=20000 SPECS=500 \
		$(foreach lane,$(LANES),$($(lane)))
	$(MAKE) --no-print-directory test-versions test-prometheus plans rollouts histories transitions tales fidelity crashpoints exhaustive differential

.PHONY: check
check: ## Check what changed since BASE, before a commit: format, lint, and unit tests of all that depends on it.
	hack/check.sh $(BASE)
	packages=$$($(TESTED) | grep -vE '$(CLUSTER)|$(API)|/internal/(forecast|testing/sim)$$'); \
		go test -short -skip 'TestProperties|Exhaustively|TestRealNode' $$packages
	go test -run TestGolden ./internal/testing/sim

.PHONY: test-unit
test-unit: ## Run unit tests; needs only Go.
	packages=$$($(TESTED) | grep -vE '$(CLUSTER)|$(API)|$(SIM)'); race=$$($(RACE)); time { \
		$(GO_TEST) -short -skip TestRealNode $$(grep -vE "$$race" <<<"$$packages"); \
		CGO_ENABLED=1 $(GO_TEST) -short -race $$(grep -E "$$race" <<<"$$packages"); }

.PHONY: test-sim
test-sim: ## Run forecasts, properties of the planners, and short simulations; needs only Go.
	time { $(GO_TEST) -short -skip TestProperties ./internal/forecast ./internal/plan; \
		$(GO_TEST) -run TestProperties ./internal/plan -rapid.checks=$(INPUTS); \
		$(GO_TEST) -short -skip TestHistories ./internal/testing/sim -seeds=$(ORDERS) -sample=$(SAMPLE) -rapid.checks=$(SPECS); \
		$(GO_TEST) -run TestHistories ./internal/testing/sim -rapid.checks=$(CHECKS); }

.PHONY: test-modules
test-modules: ## Run the tests of MODULES.
	@# Not from the cache, which sees no change of a file outside a test's module.
	time for module in $(MODULES); do $(LOW) go -C $$module test -vet=off -timeout 60m -count=1 $(SHUFFLE) ./...; done

.PHONY: test-envtest
test-envtest: ## Run the tests of the controller, and of the cluster that tests use, against a real API server.
	@# The simulated nodes run under the race detector in the tests of the controller.
	$(CONTROLPLANE); time { CGO_ENABLED=1 $(GO_TEST) -count=1 -race $(SHORT) ./internal/controller; \
		$(GO_TEST) -count=1 $(SHORT) ./internal/testing/testbed ./internal/testing/testbed/nodes; }

.PHONY: test-docs
test-docs: ## Run the commands of the pages, and the manifests of users, against a real API server.
	$(CONTROLPLANE); time $(GO_TEST) -count=1 $(SHORT) ./test/docs ./test/admission ./test/kustomize ./internal/testing/sim/fidelity

.PHONY: test-e2e
test-e2e: ## Run end-to-end tests on the cluster of KUBECONFIG, or on a local cluster.
	$(CONTROLPLANE); time $(GO_TEST) -count=1 $(SHORT) ./test/e2e $(E2E_FLAGS)

.PHONY: test-versions
test-versions: ## Run the core of the end-to-end tests on each of VERSIONS of Kubernetes, which are built first; not a part of make test.
	for version in $(VERSIONS); do \
		export KUBERNETES=$$version KUBECONFIG=; $(CONTROLPLANE); echo "Kubernetes $$version"; \
		time $(GO_TEST) -count=1 $(SHORT) ./test/e2e -ginkgo.label-filter=core $(E2E_FLAGS); \
	done

.PHONY: test-bench
test-bench: ## Play the works of the benchmark with a few pods: each must come to its end.
	time go run ./hack/bench -work=create,noop,recreate,scale-in,create-gated,metadata,in-place $(if $(SHORT),-by=rollset,-by=minimal,rollset) -n=20 -repeat=1 -o bin/small

.PHONY: test-install
test-install: ## Install the manifests, the chart and the bundle on a local cluster, with the tools of users.
	$(CONTROLPLANE); time $(GO_TEST) -count=1 $(SHORT) ./test/install

.PHONY: test-upgrade
test-upgrade: ## Upgrade from each earlier release and go back, in the middle of rollouts.
	$(CONTROLPLANE); time $(GO_TEST) -count=1 $(SHORT) ./test/upgrade

.PHONY: test-cli
test-cli: ## Run the plugin's binary against a local cluster with the manager.
	$(CONTROLPLANE); time $(GO_TEST) -count=1 $(SHORT) -skip TestGateByPrometheus ./test/cli

.PHONY: test-prometheus
test-prometheus: ## Judge steps with the plugin and a real Prometheus, which is built once; not a part of make test.
	$(CONTROLPLANE); prometheus=$$(hack/prometheus/build.sh); \
		go test -count=1 -timeout 30m -run TestGateByPrometheus ./test/cli -prometheus="$$prometheus"

.PHONY: test-node
test-node: ## Run tests on a real node with kubelet and containerd, which are built first, if the machine can run one.
	if why=$$(go run ./hack/cluster check 2>&1); then \
		$(CONTROLPLANE); time $(GO_TEST) -count=1 $(SHORT) ./test/node; \
	else echo "test-node did not run: $${why%%$$'\n'*}"; fi

.PHONY: test-browser
test-browser: ## Render the pictures of plans in a headless browser, if there is one. SHOTS=folder keeps screenshots.
	browser=$(BROWSER); \
		if [[ -n $$browser ]]; then time $(GO_TEST) -count=1 ./test/browser -args -browser="$$browser" $(if $(SHOTS),-screenshots=$(abspath $(SHOTS))); \
		else echo "test-browser did not run: there is no chromium in the PATH, and BROWSER names none"; fi

.PHONY: test-differential
test-differential: ## Play a few random histories on RollSets and on the kinds that people would have used, and compare them.
	$(CONTROLPLANE); time $(GO_TEST) -count=1 ./test/differential $(if $(SHORT),-pairs=10)

.PHONY: differential
differential: ## The same with PAIRS pairs from the seed START; a failure is shrunk, and both films are printed.
	$(CONTROLPLANE); go test -count=1 -timeout 0 -v ./test/differential -pairs=$(PAIRS) -seed=$(START)

.PHONY: plans
plans: ## Compare plans of EDITS random edits, and of golden rollouts, with the writes of the manager.
	go test -count=1 -run TestPlanIsTheRestOfTheFilm ./internal/forecast
	$(CONTROLPLANE); \
		go test -count=1 -timeout 0 -v -run TestPlanIsWhatHappens ./test/cli -edits=$(EDITS) -seed=$(START)

.PHONY: moves
moves: ## Move the manifests of 14 applications to RollSets and back, and kill each move after every write; takes some minutes.
	$(CONTROLPLANE); \
		go test -count=1 -timeout 0 -parallel 6 -v -run 'TestWorkloads|TestMoveInTrouble' ./test/cli -kill-all

.PHONY: golden
golden: ## Rewrite the logs of the golden rollouts, or of those that FOCUS names, and list the changed ones.
	time go test -vet=off -count=1 -run 'TestGolden/$(FOCUS)' ./internal/testing/sim -update
	git diff --stat -- internal/testing/sim/testdata

.PHONY: rollouts
rollouts: ## Play every scenario with SEEDS seeds from START; prints the seed and the log of a failure.
	go test -count=1 -timeout 0 ./internal/testing/sim -seeds=$(SEEDS) -start=$(START)

.PHONY: histories
histories: ## Play SEEDS new random histories of each kind of set; a failure is shrunk and printed.
	go test -count=1 -timeout 0 -run TestHistories ./internal/testing/sim -rapid.checks=$(SEEDS)

.PHONY: transitions
transitions: ## Edit sets through SEEDS chains of random specs, good and bad, and compare them with new sets.
	go test -count=1 -timeout 0 -run 'TestFromEmpty|TestBadTemplateAndBack' ./internal/testing/sim -rapid.checks=$(SEEDS)

.PHONY: tales
tales: ## Play SEEDS random stories of each rule of tales, told in two ways, and compare them.
	go test -count=1 -timeout 0 -run 'TestOneEditCostsNoMoreThanTwo|TestOrderOfIndependentEvents|TestScaledUpAndDownAgain|TestALostStatus|TestNeighborsChangeNothing' \
		./internal/testing/sim -rapid.checks=$(SEEDS)

.PHONY: fidelity
fidelity: ## Compare the simulator's store with a real API server on SEEDS random scripts.
	$(CONTROLPLANE); \
		go test -count=1 -timeout 0 -run TestSameAsTheRealOne ./internal/testing/sim/fidelity -rapid.checks=$(SEEDS)

# RECORD=1 rewrites recordings that the real kubelet no longer matches.
.PHONY: fidelity-node
fidelity-node: ## Compare the kubelet model and its recordings with a real node.
	$(CONTROLPLANE); \
		go test -count=1 -timeout 20m -parallel 4 ./internal/testing/kubelet/fidelity $(if $(RECORD),-record)

.PHONY: defects
defects: ## Insert known mistakes into the code, one at a time, and check that a test fails; DEFECTS="-run NAME" or "-quick".
	mkdir -p bin
	nice go run ./hack/defects $(DEFECTS) | tee bin/defects.txt

.PHONY: mutants
mutants: ## Change planners and model by rules, SAMPLE places that SEED chooses, and check that a test fails; MUTANTS="-quick" or "-run NAME".
	mkdir -p bin
	nice -n 15 go run ./hack/defects -mutants $(if $(filter-out file,$(origin SAMPLE)),$(SAMPLE),300) -seed $(or $(SEED),1) $(MUTANTS) | tee bin/mutants.txt

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME; findings are kept in the package's testdata.
	grep -rlE '^func Fuzz' --include=*_test.go internal | while read -r file; do \
		grep -oE '^func Fuzz[A-Za-z]+' "$$file" | cut -c6- | while read -r target; do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "./$${file%/*}"; \
		done; \
	done

.PHONY: crashpoints
crashpoints: ## Inject every fault into every write of the short scenarios, then into random pairs from START, for BUDGET.
	go test -count=1 -timeout 0 -v -run 'TestCrashPoints|TestPairsOfCrashPoints' ./internal/testing/sim -budget=$(BUDGET) -start=$(START)

.PHONY: exhaustive
exhaustive: ## Check the planners in all small states, about 135 million; takes a quarter of an hour.
	go test -count=1 -timeout 0 -run Exhaustively ./internal/plan -exhaustive

.PHONY: deflake
deflake: ## Repeat the tests FOCUS of PKG until one fails.
	$(CONTROLPLANE); \
		while CGO_ENABLED=1 go test -count=1 -race -shuffle=on -run '$(FOCUS)' $(PKG); do :; done; exit 1

.PHONY: microbench
microbench: ## Run the micro benchmarks FOCUS, COUNT times each; needs only Go.
	packages=$$(go list ./... | grep -vE '$(CLUSTER)|/internal/testing/testbed$$'); \
		go test -run '^$$' -bench '$(FOCUS)' -benchmem -count $(COUNT) -timeout 0 $$packages

# WORK, BY, N and REPEAT choose works, competitors, numbers of pods, and how often: see docs/benchmarks.md.
.PHONY: bench
bench: ## Benchmark against Kubernetes' own controllers on a local cluster: 90 minutes, or 5 with BENCH=quick.
	go run ./hack/bench $(if $(WORK),-work=$(WORK)) $(if $(BY),-by=$(BY)) $(if $(N),-n=$(N)) $(if $(REPEAT),-repeat=$(REPEAT))

.PHONY: bench-memory
bench-memory: ## Measure the manager's memory with 10,000 pods, and its idle work; takes some minutes.
	go run ./hack/bench -work=memory

.PHONY: bench-plugin
bench-plugin: ## Measure the plugin with 1,000 pods on a local cluster, and an offline plan of 10,000; takes some minutes.
	mkdir -p bin && go build -ldflags '-s -w' -o bin/kubectl-rollset ./cmd/kubectl-rollset
	ls -l bin/kubectl-rollset
	go test -count=1 -v -timeout 0 -run TestPlanOfManyPods ./internal/cli/predict -pods=10000
	$(CONTROLPLANE); \
		go test -count=1 -v -timeout 0 -run TestNumbers ./test/cli -pods=1000 -limits

##@ Build

.PHONY: build
build: ## Build the manager and the kubectl plugin into bin/.
	go build -ldflags '-s -w' -o bin/manager .
	go build -ldflags '-s -w' -o bin/kubectl-rollset ./cmd/kubectl-rollset

.PHONY: conformance-binary
conformance-binary: ## Build bin/conformance, which tests the manager that the cluster of KUBECONFIG has: bin/conformance -installed.
	mkdir -p bin && go test -c -vet=off -ldflags '-s -w' -o bin/conformance ./test/e2e

.PHONY: docker-build
docker-build: ## Build the manager's image as IMG.
	$(CONTAINER_TOOL) build -t $(IMG) .

.PHONY: image
image: ## Build the manager for each platform, and an OCI image of it, into DIST; needs no container engine.
	go -C hack/release run . image -root $(CURDIR) -out $(abspath $(DIST))

.PHONY: keep-release
keep-release: ## Keep the manager's source at the tag v<VERSION>, or at REF, for the upgrade tests.
	hack/release/source.sh $(or $(REF),v$(VERSION)) test/upgrade/testdata

.PHONY: release
release: ## Write a release of VERSION into DIST, for an image IMG without a tag.
	@[[ "$(IMG)" != *:latest ]] || { echo "usage: make release VERSION=1.2.3 IMG=<registry>/<name>" >&2; exit 1; }
	rm -rf $(DIST)
	go -C hack/release run . image -root $(CURDIR) -out $(abspath $(DIST)) -version v$(VERSION)
	go -C hack/release run . plugin -root $(CURDIR) -out $(abspath $(DIST)) -version v$(VERSION) -downloads $(DOWNLOADS)/v$(VERSION)
	$(MAKE) build-installer IMG=$(IMG):v$(VERSION)@$$(cat $(DIST)/image.digest)
	rm -r $(DIST)/overlay
	go -C hack/release run . chart -root $(CURDIR) -out $(abspath $(DIST)) -version v$(VERSION) -to $(IMG)
	$(MAKE) bundle BUNDLE=$(DIST)/bundle IMG=$(IMG):v$(VERSION)@$$(cat $(DIST)/image.digest)
	go -C hack/release run . folder -out $(abspath $(DIST)) -name bundle
	$(MAKE) catalog BUNDLE=$(DIST)/bundle CATALOG=$(DIST)/catalog BUNDLE_IMG=$(IMG)-bundle:v$(VERSION)@$$(cat $(DIST)/bundle.digest)
	go -C hack/release run . folder -out $(abspath $(DIST)) -name catalog
	cp $(DIST)/catalog/configs/rollset/catalog.yaml $(DIST)/
	rm -r $(DIST)/bundle $(DIST)/catalog
	sed 's,<address of the release>,$(DOWNLOADS)/v$(VERSION),' docs/install.md >$(DIST)/install.md
	go -C hack/release run . documents -out $(abspath $(DIST))

.PHONY: push
push: ## Push the images of the release in DIST to IMG, without a tag, IMG-bundle and IMG-catalog, and the chart to CHARTS.
	go -C hack/release run . push -out $(abspath $(DIST)) -to $(IMG):v$(VERSION)
	for name in bundle catalog; do go -C hack/release run . push -out $(abspath $(DIST)) -name $$name -to $(IMG)-$$name:v$(VERSION); done
	go -C hack/helm tool helm push $(abspath $(DIST))/rollset-$(VERSION).tgz oci://$(CHARTS)

.PHONY: bundle
bundle: ## Write the bundle of VERSION for the Operator Lifecycle Manager into BUNDLE, with the manager's image IMG by digest.
	created=$$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd); manifests=$$($(KUSTOMIZE) build config/manifests); \
		go -C hack/bundle run . bundle -version '$(VERSION)' -image '$(IMG)' -replaces '$(REPLACES)' -created "$$created" -o $(abspath $(BUNDLE)) <<<"$$manifests"

.PHONY: catalog
catalog: ## Write a catalog with the bundle in BUNDLE, whose image is BUNDLE_IMG by digest, into CATALOG; BEFORE is the catalog.yaml before.
	go -C hack/bundle run . catalog -version '$(VERSION)' -image '$(BUNDLE_IMG)' -replaces '$(REPLACES)' -bundle $(abspath $(BUNDLE)) \
		-before '$(if $(BEFORE),$(abspath $(BEFORE)))' -o $(abspath $(CATALOG))

.PHONY: build-installer
build-installer: ## Write dist/install.yaml: the CRD and the manager with image IMG, in one file.
	rm -rf $(DIST)/overlay && mkdir -p $(DIST)/overlay
	kustomize=$$($(TOOL) -n kustomize); cd $(DIST)/overlay; \
		$$kustomize create --resources "$$(realpath --relative-to=. $(CURDIR)/config/default)"; \
		$$kustomize edit set image controller=$(IMG)
	$(KUSTOMIZE) build $(DIST)/overlay >$(DIST)/install.yaml

##@ Run

.PHONY: run
run: ## Run the manager locally in the foreground, against the cluster of KUBECONFIG, with FLAGS.
	@# It serves no probes: nobody asks it, and the port may be taken.
	go run . --leader-elect --health-probe-bind-address=0 $(FLAGS)

.PHONY: install
install: ## Install the CRD into the cluster of KUBECONFIG.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply -f -

.PHONY: uninstall
uninstall: ## Remove the CRD, if no RollSet is left: it would go with its pods.
	@crd=$$($(KUBECTL) get crd rollsets.apps.rollset.dev --ignore-not-found -o name); \
		[[ -z $$crd ]] || left=$$($(KUBECTL) get rollsets.apps.rollset.dev --all-namespaces -o name); \
		[[ -z $${left:-} ]] || { echo "$$left"; echo "error: RollSets are left, and would be deleted with their pods: see docs/upgrade.md" >&2; exit 1; }
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: build-installer ## Install the CRD and the manager with image IMG into the cluster of KUBECONFIG.
	$(KUBECTL) apply -f dist/install.yaml

.PHONY: undeploy
undeploy: ## Remove the manager. The CRD stays, and with it every RollSet and its pods.
	$(KUSTOMIZE) build config/default | $(KUBECTL) delete --ignore-not-found -f - -l app.kubernetes.io/name=rollset

.PHONY: cluster-up
cluster-up: ## Start a local cluster: a real control plane, simulated nodes. For your shell: eval "$$(make -s cluster-up)"
	go run ./hack/cluster up

.PHONY: cluster-down
cluster-down: ## Stop the local cluster.
	go run ./hack/cluster down

.PHONY: node-up
node-up: ## Start a local cluster with one real node: kubelet and containerd; needs Linux and root.
	go run ./hack/cluster up -real

.PHONY: node-down
node-down: ## Stop the local cluster with the real node.
	go run ./hack/cluster down -real

.PHONY: demo
demo: ## Show a rollout on a local cluster, which ends with it.
	hack/demo.sh
