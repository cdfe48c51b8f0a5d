# What people and CI run. Everything is pinned: tools in go.tools.mod, golangci-lint in hack/golangci-lint, the control
# plane in hack/controlplane, the real node in hack/node, Prometheus in hack/prometheus. All of it is built from Go
# modules; nothing else is downloaded.

# The manager's image.
IMG ?= controller:latest
CONTAINER_TOOL ?= docker
# Where `make build-installer` puts what it builds.
DIST ?= dist
# Below which URL releases can be downloaded: a folder for each version.
DOWNLOADS ?= https://rollset.dev/releases
# Where `make push` puts the Helm chart: a folder of a registry.
CHARTS ?= $(dir $(IMG))charts
# What `make bundle` writes: the version, its manager's image, and the version before if none may be left out.
VERSION ?= 0.1.0
BUNDLE_IMG ?= example.com/rollset:v$(VERSION)
REPLACES ?=
# Seeds that `make rollouts` plays every scenario with, and the first of them.
SEEDS ?= 10000
START ?= 1
# How long `make fuzz` runs each target.
FUZZTIME ?= 1m
# For how long `make crashpoints` plays pairs.
BUDGET ?= 10m
# What `make deflake` repeats, and which benchmarks `make microbench` runs.
FOCUS ?= .
PKG ?= ./...
# How many random edits `make plans` makes.
EDITS ?= 50
# Flags of test/e2e: images that the nodes of KUBECONFIG can run, and the like. Its package comment has them.
E2E_FLAGS ?=
# How often `make microbench` runs each benchmark: it takes several runs to tell a change from chance.
COUNT ?= 6

# Programs and tests with module files of their own, whose dependencies must not become those of the manager.
MODULES := hack/bundle hack/helm hack/integrations hack/release

TOOL := go tool -modfile=go.tools.mod
CONTROLLER_GEN := $(TOOL) controller-gen
CRD_REF_DOCS := $(TOOL) crd-ref-docs
KUSTOMIZE := $(TOOL) kustomize
# The kubectl of the PATH, or else one that is built for it.
KUBECTL ?= "$$(command -v kubectl || echo "$$(hack/controlplane/build.sh kubectl)/kubectl")"
GOLANGCI_LINT := "$$(hack/golangci-lint/build.sh)"

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Targets share two cores and the working tree.
.NOTPARALLEL:

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make \033[36m<target>\033[0m\n"} \
		/^[a-zA-Z0-9_-]+:.*?##/ {printf "  \033[36m%-16s\033[0m %s\n", $$1, $$2} \
		/^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)}' $(MAKEFILE_LIST)

.PHONY: clean
clean: ## Remove what was built here; the caches outside stay.
	rm -rf bin dist

##@ Develop

.PHONY: generate
generate: ## Generate the deep copies of the API's types, their reference, and the pictures of a plan and of a rollout.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...
	$(CRD_REF_DOCS) --log-level=ERROR --source-path=api --config=hack/reference/config.yaml \
		--templates-dir=hack/reference/templates --renderer=markdown --output-path=docs/api-reference.md
	go run ./cmd/kubectl-rollset plan --offline -f hack/plan/old.yaml -f hack/plan/new.yaml -o svg >docs/images/plan.svg
	go run ./hack/film internal/testing/sim/testdata/broken-update.txtar >docs/images/rollout.svg

.PHONY: manifests
manifests: ## Generate the CRD, the manager's role, and the schema by which kustomize merges patches of RollSets.
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true,omitToolVersion=true paths=./api/... output:crd:stdout | \
		go run ./hack/crdgen -o config/crd/bases/apps.rollset.dev_rollsets.yaml
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./internal/controller/... output:rbac:dir=config/rbac/manager
	kubernetes=$$(go -C hack/controlplane/kubernetes mod download -json k8s.io/kubernetes | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
		go run ./hack/patchschema -from "$$kubernetes/api/openapi-spec/swagger.json" -o config/components/kustomize/schema.json
	cp config/crd/bases/apps.rollset.dev_rollsets.yaml charts/rollset/files/crd.yaml
	cp config/rbac/manager/role.yaml config/rbac/rollset_*_role.yaml config/prometheus/rules.yaml \
		config/network-policy/manager_traffic.yaml charts/rollset/files/

.PHONY: bundle
bundle: ## Write the bundle of VERSION for the Operator Lifecycle Manager.
	$(KUSTOMIZE) build config/manifests | \
		go -C hack/bundle run . -version $(VERSION) -image $(BUNDLE_IMG) -replaces '$(REPLACES)' -o $(CURDIR)/bundle

.PHONY: fmt
fmt: ## Format the code.
	$(GOLANGCI_LINT) fmt

.PHONY: tidy
tidy: ## Tidy every module file.
	hack/tidy.sh

.PHONY: lint
lint: ## Check the code against .golangci.yml.
	$(GOLANGCI_LINT) run ./...
	linter=$(GOLANGCI_LINT); for module in $(MODULES); do (cd $$module && "$$linter" run ./...); done

.PHONY: lint-fix
lint-fix: ## Check the code, and repair what can be repaired by a machine.
	$(GOLANGCI_LINT) run --fix ./...

.PHONY: verify
verify: ## Regenerate and reformat everything; fail if that changes a file.
	hack/verify.sh

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities that the code can reach; asks vuln.go.dev.
	$(TOOL) govulncheck ./...

.PHONY: words
words: ## Measure the prose: reading grade and sentence length of each page, and phrases to avoid.
	go run ./hack/words

.PHONY: presubmit
presubmit: test vulncheck ## Everything that a change has to pass.

##@ Test

# Packages are told apart by what their tests need. CLUSTER: a whole one, with the manager in it. API: etcd and an API server,
# because they are the shell or the local cluster, or import envtest. SIM: time, which the race detector would multiply;
# the simulator has one goroutine. All others are plain unit tests.
PACKAGES := go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./...
CLUSTER := rollset/test/(cli|e2e|fidelity|install|node|upgrade)
# BROWSER is the browser of the Chromium family that looks at the pictures of plans.
BROWSER ?= $$(command -v chromium chromium-browser google-chrome google-chrome-stable | head -n 1 || true)
API := ^[^ ]*/internal/controller |rollset/internal/testing/testbed|controller-runtime/pkg/envtest
SIM := rollset/internal/testing/sim$$
NAMES := cut -d' ' -f1

.PHONY: test
test: SHORT := -short
test: export KUBECONFIG :=
# The same random inputs each time; `make histories` and its like look for new ones.
test: export RAPID_SEED := 1
test: verify lint test-unit test-envtest test-e2e test-node test-install test-upgrade test-cli test-browser ## All checks and tests, e2e on the local cluster; what CI runs.

.PHONY: test-unit
test-unit: ## Unit tests and short simulations; needs nothing but Go.
	packages=$$($(PACKAGES) | grep -vE '$(CLUSTER)|$(API)|rollset/test/browser' | $(NAMES) | grep -vE '$(SIM)'); \
		go test -short -race -shuffle=on $$packages
	go test -short -shuffle=on -timeout 30m -skip TestHistories ./internal/testing/sim -sample=4
	go test -timeout 30m -run TestHistories ./internal/testing/sim -rapid.checks=2500
	@# Not from the cache, which sees no change of a file outside a test's module.
	for module in $(MODULES); do go -C $$module test -count=1 -shuffle=on ./...; done

.PHONY: test-envtest
test-envtest: ## Tests against a real API server, which is built first.
	packages=$$($(PACKAGES) | grep -vE '$(CLUSTER)' | grep -E '$(API)' | $(NAMES)); \
		KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -race -shuffle=on -p 1 -timeout 15m $(SHORT) $$packages

.PHONY: test-e2e
test-e2e: ## End to end, on the cluster of KUBECONFIG, or else on a local one that is started for it.
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -p 1 -timeout 30m $(SHORT) ./test/e2e/... $(E2E_FLAGS)

.PHONY: test-install
test-install: ## Install what is shipped on a local cluster, by the tools that users have.
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -timeout 15m ./test/install

.PHONY: test-upgrade
test-upgrade: ## Take sets over from each release before, and give them back, in the middle of rollouts.
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -timeout 15m ./test/upgrade

.PHONY: test-cli
test-cli: ## Run the plugin's binary against a local cluster in which the manager runs.
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -timeout 15m -skip TestGateByPrometheus ./test/cli

.PHONY: test-prometheus
test-prometheus: ## Judge steps with the plugin by a real Prometheus, which is built first, once; CI runs it beside make test.
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); prometheus=$$(hack/prometheus/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -timeout 15m -run TestGateByPrometheus ./test/cli -prometheus="$$prometheus"

.PHONY: test-node
test-node: ## On a real node, with kubelet and containerd, which are built first; says so where there can be none.
	if why=$$(go run ./hack/cluster check 2>&1); then \
		KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -timeout 15m ./test/node; \
	else echo "test-node did not run: $${why%%$$'\n'*}"; fi

.PHONY: test-browser
test-browser: ## Look at the pictures of plans in a headless browser; says so where there is none. SHOTS=folder keeps what it shows.
	browser=$(BROWSER); \
		if [[ -n $$browser ]]; then go test -count=1 -timeout 15m ./test/browser -args -browser="$$browser" $(if $(SHOTS),-screenshots=$(abspath $(SHOTS))); \
		else echo "test-browser did not run: there is no chromium in the PATH, and BROWSER names none"; fi

.PHONY: plans
plans: ## Plan EDITS random edits, make them on a local cluster, and compare with what the manager writes; golden rollouts, too.
	go test -count=1 -run TestPlanIsTheRestOfTheFilm ./internal/forecast
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -timeout 0 -v -run TestPlanIsWhatHappens ./test/cli -edits=$(EDITS) -seed=$(START)

.PHONY: golden
golden: ## Rewrite the logs of the golden rollouts, and show which ones changed.
	go test ./internal/testing/sim -update
	git diff --stat -- internal/testing/sim/testdata

.PHONY: rollouts
rollouts: ## Play every scenario with SEEDS seeds from START on; prints the seed and the log of a failure.
	go test -count=1 -timeout 0 ./internal/testing/sim -seeds=$(SEEDS) -start=$(START)

.PHONY: histories
histories: ## Play SEEDS random histories of each kind of set, other ones each time; a failure is shrunk and printed.
	go test -count=1 -timeout 0 -run TestHistories ./internal/testing/sim -rapid.checks=$(SEEDS)

.PHONY: transitions
transitions: ## Take sets through random specs and back from bad ones, and compare with sets that are new; SEEDS chains of each kind.
	go test -count=1 -timeout 0 -run 'TestFromEmpty|TestBadTemplateAndBack' ./internal/testing/sim -rapid.checks=$(SEEDS)

.PHONY: fidelity
fidelity: ## Play SEEDS random scripts on the simulator's store and on a real API server, and compare.
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -timeout 0 -run TestSameAsTheRealOne ./internal/testing/sim/fidelity -rapid.checks=$(SEEDS)

# RECORD=1 writes the recordings anew that the real kubelet does not give any more.
.PHONY: fidelity-node
fidelity-node: ## Play the scripts of the kubelet's model on a real node, and compare with what was recorded and with the model.
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -timeout 20m -parallel 4 ./test/fidelity $(if $(RECORD),-record)
	go test -count=1 ./internal/testing/kubelet/fidelity

.PHONY: defects
defects: ## Put known mistakes into the code, one at a time, and see whether a test notices; DEFECTS="-run NAME" or "-sim".
	mkdir -p bin
	nice go run ./hack/defects $(DEFECTS) | tee bin/defects.txt

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME; what one finds is kept in the package's testdata.
	grep -rlE '^func Fuzz' --include=*_test.go internal | while read -r file; do \
		grep -oE '^func Fuzz[A-Za-z]+' "$$file" | cut -c6- | while read -r target; do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "./$${file%/*}"; \
		done; \
	done

.PHONY: crashpoints
crashpoints: ## Let each write of the short scenarios go wrong in every way, and pairs of all, drawn from START, for as long as BUDGET says.
	go test -count=1 -timeout 0 -v -run 'TestCrashPoints|TestPairsOfCrashPoints' ./internal/testing/sim -budget=$(BUDGET) -start=$(START)

.PHONY: exhaustive
exhaustive: ## Check the planners in all small states, some forty million; a minute or two.
	go test -count=1 -timeout 0 -run Exhaustively ./internal/plan -exhaustive

.PHONY: deflake
deflake: ## Repeat the tests FOCUS of PKG until one fails.
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		while go test -count=1 -race -shuffle=on -run '$(FOCUS)' $(PKG); do :; done; exit 1

.PHONY: microbench
microbench: ## Run the micro benchmarks FOCUS, COUNT times each; they need nothing but Go.
	packages=$$(go list ./... | grep -vE '$(CLUSTER)|rollset/internal/testing/testbed'); \
		go test -run '^$$' -bench '$(FOCUS)' -benchmem -count $(COUNT) -timeout 0 $$packages

# WORK, BY, N and REPEAT choose works, competitors, numbers of pods, and how often: see docs/benchmarks.md.
.PHONY: bench
bench: ## Measure beside Kubernetes' own controllers, on a local cluster; an hour and a half, or minutes with BENCH=quick.
	go run ./hack/bench $(if $(WORK),-work=$(WORK)) $(if $(BY),-by=$(BY)) $(if $(N),-n=$(N)) $(if $(REPEAT),-repeat=$(REPEAT))

.PHONY: bench-memory
bench-memory: ## Measure the manager's memory with 10,000 pods, and what it does when nothing happens; some minutes.
	go run ./hack/bench -work=memory

.PHONY: bench-plugin
bench-plugin: ## Measure the kubectl plugin with 1,000 pods on a local cluster, and an offline plan of 10,000; some minutes.
	mkdir -p bin && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/kubectl-rollset ./cmd/kubectl-rollset
	ls -l bin/kubectl-rollset
	go test -count=1 -v -timeout 0 -run TestPlanOfManyPods ./internal/cli/predict -pods=10000
	KUBEBUILDER_ASSETS=$$(hack/controlplane/build.sh); export KUBEBUILDER_ASSETS; \
		go test -count=1 -v -timeout 0 -run TestNumbers ./test/cli -pods=1000

##@ Build

.PHONY: build
build: ## Build the manager and the kubectl plugin into bin/.
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/manager .
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/kubectl-rollset ./cmd/kubectl-rollset

.PHONY: docker-build
docker-build: ## Build the manager's image as IMG.
	$(CONTAINER_TOOL) build -t $(IMG) .

.PHONY: image
image: ## Build the manager for each platform, and an OCI image of it, into DIST; needs no container engine.
	go -C hack/release run . image -root $(CURDIR) -out $(abspath $(DIST))

.PHONY: keep-release
keep-release: ## Keep the source of the manager at the tag v<VERSION>, or at REF, for the test of upgrades.
	hack/release/source.sh $(or $(REF),v$(VERSION)) test/upgrade/testdata

.PHONY: release
release: ## Write a release of VERSION into DIST; its image is to be pushed to IMG, which has no tag here.
	@[[ "$(IMG)" != *:latest ]] || { echo "usage: make release VERSION=1.2.3 IMG=<registry>/<name>" >&2; exit 1; }
	rm -rf $(DIST)
	go -C hack/release run . image -root $(CURDIR) -out $(abspath $(DIST)) -version v$(VERSION)
	go -C hack/release run . plugin -root $(CURDIR) -out $(abspath $(DIST)) -version v$(VERSION) -downloads $(DOWNLOADS)/v$(VERSION)
	$(MAKE) build-installer IMG=$(IMG):v$(VERSION)@$$(cat $(DIST)/image.digest)
	rm -r $(DIST)/overlay
	go -C hack/release run . chart -root $(CURDIR) -out $(abspath $(DIST)) -version v$(VERSION) -to $(IMG)
	sed 's,<address of the release>,$(DOWNLOADS)/v$(VERSION),' docs/install.md >$(DIST)/install.md
	go -C hack/release run . documents -out $(abspath $(DIST))

.PHONY: push
push: ## Push the image of the release of VERSION in DIST to IMG, which has no tag here, and the chart to CHARTS.
	go -C hack/release run . push -out $(abspath $(DIST)) -to $(IMG):v$(VERSION)
	go -C hack/helm tool helm push $(abspath $(DIST))/rollset-$(VERSION).tgz oci://$(CHARTS)

.PHONY: build-installer
build-installer: ## Write dist/install.yaml: the CRD and the manager with image IMG, in one file.
	rm -rf $(DIST)/overlay && mkdir -p $(DIST)/overlay
	kustomize=$$($(TOOL) -n kustomize); cd $(DIST)/overlay; \
		$$kustomize create --resources "$$(realpath --relative-to=. $(CURDIR)/config/default)"; \
		$$kustomize edit set image controller=$(IMG)
	$(KUSTOMIZE) build $(DIST)/overlay >$(DIST)/install.yaml

##@ Run

.PHONY: run
run: ## Run the manager here, against the cluster of KUBECONFIG; it does not stay behind.
	go run . --leader-elect

.PHONY: install
install: ## Install the CRD into the cluster of KUBECONFIG.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply -f -

.PHONY: uninstall
uninstall: ## Remove the CRD, and with it every RollSet and its pods.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: build-installer ## Install the CRD and the manager with image IMG into the cluster of KUBECONFIG.
	$(KUBECTL) apply -f dist/install.yaml

.PHONY: undeploy
undeploy: ## Remove the manager and the CRD, and with it every RollSet and its pods.
	$(KUSTOMIZE) build config/default | $(KUBECTL) delete --ignore-not-found -f -

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
demo: ## Show what a RollSet does, on a local cluster.
	go run ./hack/demo
