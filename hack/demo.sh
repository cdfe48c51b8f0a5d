#!/usr/bin/env bash
# Show a rollout with the project's own means: a local cluster, the manager, kubectl, and the plugin, which shows the set as it
# changes. The cluster and the manager end with the demo, unless the cluster was up before.
set -euo pipefail
cd "$(dirname "$0")/.."
go build -o bin/manager . && go build -o bin/kubectl-rollset ./cmd/kubectl-rollset
go run ./hack/cluster status >/dev/null 2>&1 || started=yes
exports=$(go run ./hack/cluster up)
eval "$exports"
PATH=$PWD/bin:$PATH
manager --health-probe-bind-address=0 --metrics-bind-address=0 2>bin/demo.log &
trap 'kill $(jobs -p) 2>/dev/null; [[ -z ${started:-} ]] || go run ./hack/cluster down' EXIT

# step says what happens, makes a change, and waits until the set is at rest, for two minutes at most.
step() {
	printf '\n== %s\n' "$1"
	"${@:2}"
	timeout 120 kubectl rollset status web >/dev/null
}
kubectl apply -f config/samples/apps_v1beta1_rollset.yaml
timeout 300 kubectl rollset get web --watch 2>>bin/demo.log &
step "Five pods are wanted" true
step "Scale to eight" kubectl scale rollset web --replicas=8
step "Roll to another image, with one pod above eight and none below" kubectl rollset set image rollset/web nginx=nginx:1.30
printf '\n== Roll to an image that does not exist: one pod tries it, eight serve\n'
kubectl rollset set image rollset/web nginx=nginx:broken
kubectl wait rollset/web --for=jsonpath='{.status.updatedReplicas}'=1 --timeout=60s
sleep 5
step "Take it back: the broken pod goes, and no other is touched" kubectl rollset undo rollset/web
