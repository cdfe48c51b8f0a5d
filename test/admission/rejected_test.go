// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// rejection is a set that must be rejected: the smallest one, with changes, and the message for its user.
type rejection struct {
	name    string
	changes fields
	field   string
	message string
}

const (
	rolling  = "spec.updateStrategy.rollingUpdate"
	identity = "spec.podIdentity"

	preDelete = "spec.lifecycle.preDelete"

	aPercentage = `must be a number of pods, or a percentage of replicas from "0%" to "100%"`
	aSurge      = `must be a number of pods, or a percentage of replicas such as "25%"`
	aLabelKey   = `must be the key of a label, such as "zone" or "example.com/zone"`
	labels      = "must be valid labels"
	ourKeys     = "must not contain keys under rollset.dev: they belong to the controller"
	ourLabels   = "must not contain controller-revision-hash, apps.kubernetes.io/pod-index or statefulset.kubernetes.io/pod-name"
	ordinalOnly = "must not be set unless podIdentity is Ordinal"
	anOrdinal   = `must be an ordinal from 0 to 1000000000, or a range of them such as "3-5"`
	aRange      = "must be a range that ends at or after its start, spans at most 10000 ordinals and ends at 1000000000 or before"
	aLabel      = "must be a DNS label"
	notItsPods  = "the set would not find its own pods"
)

func TestRejected(t *testing.T) {
	var cases []rejection
	for _, group := range [][]rejection{names, numbers, percentages, selectors, templates, identities, ordinals, claims, strategies, rolloutSteps, hooks, disruptions} {
		cases = append(cases, group...)
	}
	if len(cases) < 80 {
		t.Errorf("%d cases are fewer than the contract asks for", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := shared.admit(t.Context(), with(t, parse(t, manifest), c.changes))
			checkRejected(t, err, c.field, c.message)
		})
	}
}

// checkRejected checks that an error rejects a field, with a message.
func checkRejected(t *testing.T, err error, field, message string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want %s: %s", field, message)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Fatalf("refused with %v, want a validation error", err)
	}
	var causes []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == field && strings.Contains(cause.Message, message) {
			return
		}
		causes = append(causes, fmt.Sprintf("%s: %s", cause.Field, cause.Message))
	}
	t.Errorf("want %s: %s\ngot:\n%s", field, message, strings.Join(causes, "\n"))
}

var names = []rejection{
	{"a name of 53 characters", fields{"metadata.name": strings.Repeat("a", 53)}, "metadata.name", "must have at most 52 characters"},
	{"a name of 253 characters", fields{"metadata.name": strings.Repeat("a", 253)}, "metadata.name", "must have at most 52 characters"},
	{"a name with a dot", fields{"metadata.name": "web.v2"}, "metadata.name", aLabel},
	{"a service name with a dot", fields{"spec.serviceName": "web.v2"}, "spec.serviceName", "must be the name of a service"},
	{"a service name in capitals", fields{"spec.serviceName": "Web"}, "spec.serviceName", "must be the name of a service"},
	{"a service name that ends with a dash", fields{"spec.serviceName": "web-"}, "spec.serviceName", "must be the name of a service"},
	{"a service name of 64 characters", fields{"spec.serviceName": strings.Repeat("a", 64)}, "spec.serviceName", "may not be more than 63"},
}

var numbers = []rejection{
	{"negative replicas", fields{"spec.replicas": "-1"}, "spec.replicas", "greater than or equal to 0"},
	{"replicas beyond int32", fields{"spec.replicas": "2147483648"}, "spec.replicas", "less than or equal to 2147483647"},
	{"replicas in words", fields{"spec.replicas": "three"}, "spec.replicas", "must be of type integer"},
	{"negative minReadySeconds", fields{"spec.minReadySeconds": "-1"}, "spec.minReadySeconds", "greater than or equal to 0"},
	{"negative revisionHistoryLimit", fields{"spec.revisionHistoryLimit": "-1"}, "spec.revisionHistoryLimit", "greater than or equal to 0"},
	{"a deadline of 0", fields{"spec.progressDeadlineSeconds": "0"}, "spec.progressDeadlineSeconds", "greater than or equal to 1"},
	{"a deadline equal to minReadySeconds", fields{"spec.progressDeadlineSeconds": "60", "spec.minReadySeconds": "60"}, "spec.progressDeadlineSeconds", "must be greater than minReadySeconds"},
	{"a deadline below minReadySeconds", fields{"spec.progressDeadlineSeconds": "30", "spec.minReadySeconds": "60"}, "spec.progressDeadlineSeconds", "must be greater than minReadySeconds"},
	{"minReadySeconds above the default deadline", fields{"spec.minReadySeconds": "600"}, "spec.progressDeadlineSeconds", "must be greater than minReadySeconds"},
	{"a negative grace period", fields{rolling + ".inPlaceUpdateStrategy": "{gracePeriodSeconds: -1}"}, rolling + ".inPlaceUpdateStrategy.gracePeriodSeconds", "greater than or equal to 0"},
}

var percentages = []rejection{
	{"a negative partition", fields{rolling + ".partition": "-1"}, rolling + ".partition", aPercentage},
	{"a partition beyond int32", fields{rolling + ".partition": "2147483648"}, rolling + ".partition", aPercentage},
	{"a partition of 101%", fields{rolling + ".partition": "101%"}, rolling + ".partition", aPercentage},
	{"a partition of -1%", fields{rolling + ".partition": "-1%"}, rolling + ".partition", aPercentage},
	{"a partition without a percent sign", fields{rolling + ".partition": `"5"`}, rolling + ".partition", aPercentage},
	{"a partition of half a percent", fields{rolling + ".partition": "0.5%"}, rolling + ".partition", aPercentage},
	{"a partition of half a pod", fields{rolling + ".partition": "0.5"}, rolling + ".partition", "must be of type integer"},
	{"a partition in words", fields{rolling + ".partition": "all"}, rolling + ".partition", aPercentage},
	{"an empty partition", fields{rolling + ".partition": `""`}, rolling + ".partition", aPercentage},
	{"a negative maxUnavailable", fields{rolling + ".maxUnavailable": "-1"}, rolling + ".maxUnavailable", aPercentage},
	{"a maxUnavailable of 101%", fields{rolling + ".maxUnavailable": "101%"}, rolling + ".maxUnavailable", aPercentage},
	{"a maxUnavailable with a space", fields{rolling + ".maxUnavailable": "20 %"}, rolling + ".maxUnavailable", aPercentage},
	{"a maxUnavailable beyond int32", fields{rolling + ".maxUnavailable": "4294967296"}, rolling + ".maxUnavailable", aPercentage},
	{"a negative maxSurge", fields{rolling + ".maxSurge": "-1"}, rolling + ".maxSurge", aSurge},
	{"a maxSurge of -5%", fields{rolling + ".maxSurge": "-5%"}, rolling + ".maxSurge", aSurge},
	{"a maxSurge of 100000%", fields{rolling + ".maxSurge": "100000%"}, rolling + ".maxSurge", aSurge},
	{"a maxSurge beyond int32", fields{rolling + ".maxSurge": "2147483648"}, rolling + ".maxSurge", aSurge},
	{"a negative scale limit", fields{"spec.scaleStrategy.maxUnavailable": "-1"}, "spec.scaleStrategy.maxUnavailable", aPercentage},
	{"a scale limit of 200%", fields{"spec.scaleStrategy.maxUnavailable": "200%"}, "spec.scaleStrategy.maxUnavailable", aPercentage},
	{"a malformed scale limit", fields{"spec.scaleStrategy.maxUnavailable": `"%"`}, "spec.scaleStrategy.maxUnavailable", aPercentage},
}

var selectors = []rejection{
	{"no selector", fields{"spec.selector": "-"}, "spec.selector", "Required value"},
	{"an empty selector", fields{"spec.selector": "{}"}, "spec.selector", "must not be empty"},
	{"a selector of empty parts", fields{"spec.selector": "{matchLabels: {}, matchExpressions: []}"}, "spec.selector", "must not be empty"},
	{"a selector with another value", fields{"spec.selector": "{matchLabels: {app: db}}"}, "spec.template.metadata.labels", notItsPods},
	{"a selector with a label that the template lacks", fields{"spec.selector": "{matchLabels: {app: web, tier: front}}"}, "spec.template.metadata.labels", notItsPods},
	{"a template without labels", fields{"spec.template.metadata": "-"}, "spec.template.metadata.labels", notItsPods},
	{"In without the template's value", fields{"spec.selector": "{matchExpressions: [{key: app, operator: In, values: [db, cache]}]}"}, "spec.template.metadata.labels", "must satisfy spec.selector.matchExpressions"},
	{"In on a label that the template lacks", fields{"spec.selector": "{matchExpressions: [{key: tier, operator: In, values: [front]}]}"}, "spec.template.metadata.labels", "must satisfy spec.selector.matchExpressions"},
	{"NotIn with the template's value", fields{"spec.selector": "{matchExpressions: [{key: app, operator: NotIn, values: [web]}]}"}, "spec.template.metadata.labels", "must satisfy spec.selector.matchExpressions"},
	{"Exists on a label that the template lacks", fields{"spec.selector": "{matchExpressions: [{key: tier, operator: Exists}]}"}, "spec.template.metadata.labels", "must satisfy spec.selector.matchExpressions"},
	{"DoesNotExist on a label of the template", fields{"spec.selector": "{matchExpressions: [{key: app, operator: DoesNotExist}]}"}, "spec.template.metadata.labels", "must satisfy spec.selector.matchExpressions"},
	{"an unknown operator", fields{"spec.selector": "{matchExpressions: [{key: app, operator: Gt, values: ['1']}]}"}, "spec.selector.matchExpressions[0].operator", `supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
	{"In without values", fields{"spec.selector": "{matchExpressions: [{key: app, operator: In}]}"}, "spec.selector.matchExpressions[0]", "In and NotIn need values"},
	{"Exists with values", fields{"spec.selector": "{matchExpressions: [{key: app, operator: Exists, values: [web]}]}"}, "spec.selector.matchExpressions[0]", "Exists and DoesNotExist allow none"},
	{"a malformed key in an expression", fields{"spec.selector": "{matchExpressions: [{key: a b, operator: DoesNotExist}]}"}, "spec.selector.matchExpressions[0].key", aLabelKey},
	{"a malformed value in an expression", fields{"spec.selector": "{matchExpressions: [{key: app, operator: In, values: [web, a b]}]}"}, "spec.selector.matchExpressions[0].values", "must be values of labels"},
	{"a malformed key in matchLabels", fields{"spec.selector": "{matchLabels: {a b: c}}"}, "spec.selector.matchLabels", labels},
	{"a malformed value in matchLabels", fields{"spec.selector": "{matchLabels: {app: -web}}"}, "spec.selector.matchLabels", labels},
	{"a selector on the revision label", fields{"spec.selector": "{matchLabels: {app: web}, matchExpressions: [{key: controller-revision-hash, operator: DoesNotExist}]}"}, "spec.selector.matchExpressions[0].key", "must not use labels that the controller sets"},
	{"a selector on a label under rollset.dev", fields{"spec.selector": "{matchLabels: {app: web}, matchExpressions: [{key: apps.rollset.dev/instance-id, operator: DoesNotExist}]}"}, "spec.selector.matchExpressions[0].key", "must not use labels that the controller sets"},
}

var templates = []rejection{
	{"no template", fields{"spec.template": "-"}, "spec.template", "Required value"},
	{"no containers", fields{"spec.template.spec": "{}"}, "spec.template.spec.containers", "Required value"},
	{"two containers of one name", fields{"spec.template.spec.containers": "[{name: a, image: i}, {name: a, image: i}]"}, "spec.template.spec.containers[1]", "Duplicate value"},
	{"a label under rollset.dev", fields{"spec.template.metadata.labels": "{app: web, rollset.dev/x: z}"}, "spec.template.metadata.labels", ourKeys},
	{"a label under apps.rollset.dev", fields{"spec.template.metadata.labels": "{app: web, apps.rollset.dev/instance-id: abcde}"}, "spec.template.metadata.labels", ourKeys},
	{"a lifecycle state", fields{"spec.template.metadata.labels": "{app: web, lifecycle.rollset.dev/state: Normal}"}, "spec.template.metadata.labels", ourKeys},
	{"the revision label", fields{"spec.template.metadata.labels": "{app: web, controller-revision-hash: x}"}, "spec.template.metadata.labels", ourLabels},
	{"the index label", fields{"spec.template.metadata.labels": "{app: web, apps.kubernetes.io/pod-index: '0'}"}, "spec.template.metadata.labels", ourLabels},
	{"the pod name label", fields{"spec.template.metadata.labels": "{app: web, statefulset.kubernetes.io/pod-name: web-0}"}, "spec.template.metadata.labels", ourLabels},
	{"a malformed label", fields{"spec.template.metadata.labels": "{app: web, a b: c}"}, "spec.template.metadata.labels", labels},
	{"a label of 64 characters", fields{"spec.template.metadata.labels": "{app: web, b: " + strings.Repeat("c", 64) + "}"}, "spec.template.metadata.labels.b", "may not be more than 63"},
	{"an annotation under rollset.dev", fields{"spec.template.metadata.annotations": "{a.b.rollset.dev/x: z}"}, "spec.template.metadata.annotations", ourKeys},
	{"a pod that is not restarted", fields{"spec.template.spec.restartPolicy": "OnFailure"}, "spec.template.spec.restartPolicy", "must be Always"},
	{"a pod that ends", fields{"spec.template.spec.activeDeadlineSeconds": "60"}, "spec.template.spec.activeDeadlineSeconds", "must not be set"},
	{"two equal env names", fields{"spec.template.spec.containers": "[{name: a, image: i, env: [{name: E}, {name: E}]}]"}, "spec.template.spec.containers[0].env[1]", "Duplicate value"},
	{"two equal ports", fields{"spec.template.spec.containers": "[{name: a, image: i, ports: [{containerPort: 80}, {containerPort: 80}]}]"}, "spec.template.spec.containers[0].ports[1]", "Duplicate value"},
	{"two equal pull secrets", fields{"spec.template.spec.imagePullSecrets": "[{name: a}, {name: a}]"}, "spec.template.spec.imagePullSecrets[1]", "Duplicate value"},
	{"two equal host aliases", fields{"spec.template.spec.hostAliases": "[{ip: 10.0.0.1}, {ip: 10.0.0.1}]"}, "spec.template.spec.hostAliases[1]", "Duplicate value"},
	{"a malformed quantity", fields{"spec.template.spec.containers": "[{name: a, image: i, resources: {limits: {cpu: 1xyz}}}]"}, "spec.template.spec.containers[0].resources.limits.cpu", "should match"},
	{"a quantity that is an object", fields{"spec.template.spec.containers": "[{name: a, image: i, resources: {limits: {cpu: {}}}}]"}, "spec.template.spec.containers[0].resources.limits.cpu", "should have at least 1 properties"},
	{"a quantity that is a list", fields{"spec.template.spec.containers": "[{name: a, image: i, resources: {limits: {cpu: [1]}}}]"}, "spec.template.spec.containers[0].resources.limits.cpu", "must have at most 0 items"},
	{"a quantity that is a boolean", fields{"spec.template.spec.containers": "[{name: a, image: i, resources: {limits: {cpu: true}}}]"}, "<nil>", `"spec.template.spec.containers[0].resources.limits.cpu" must not validate`},
	{"a negative number", fields{"spec.template.spec.containers": "[{name: a, image: i, resources: {limits: {cpu: -0.5}}}]"}, "spec.template.spec.containers[0].resources.limits.cpu", "should be greater than or equal to 0"},
	{"a quantity with a fractional exponent", fields{"spec.template.spec.containers": "[{name: a, image: i, resources: {limits: {cpu: 1e1.5}}}]"}, "spec.template.spec.containers[0].resources.limits.cpu", "should match"},
	{"a port beyond int32", fields{"spec.template.spec.containers": "[{name: a, image: i, livenessProbe: {httpGet: {port: 4294967296}}}]"}, "spec.template.spec.containers[0].livenessProbe.httpGet.port", "less than or equal to"},
}

var identities = []rejection{
	{"an unknown identity", fields{identity: "Stable"}, identity, `supported values: "Random", "Ordinal"`},
	{"an identity in lower case", fields{identity: "ordinal"}, identity, `supported values: "Random", "Ordinal"`},
	{"an unknown management policy", fields{"spec.podManagementPolicy": "Serial"}, "spec.podManagementPolicy", `supported values: "OrderedReady", "Parallel"`},
	{"OrderedReady for Random", fields{"spec.podManagementPolicy": "OrderedReady"}, "spec.podManagementPolicy", "must be Parallel unless podIdentity is Ordinal"},
	{"ordinals for Random", fields{"spec.ordinals": "{start: 1}"}, "spec.ordinals", ordinalOnly},
	{"empty ordinals for Random", fields{"spec.ordinals": "{}"}, "spec.ordinals", ordinalOnly},
	{"reserveOrdinals for Random", fields{"spec.reserveOrdinals": "[1]"}, "spec.reserveOrdinals", ordinalOnly},
	{"a negative maxSurge for Ordinal", fields{identity: "Ordinal", rolling + ".maxSurge": "-1"}, rolling + ".maxSurge", aSurge},
	{"a maxSurge of 100000% for Ordinal", fields{identity: "Ordinal", rolling + ".maxSurge": "100000%"}, rolling + ".maxSurge", aSurge},
}

var ordinals = []rejection{
	{"a negative start", fields{identity: "Ordinal", "spec.ordinals.start": "-1"}, "spec.ordinals.start", "greater than or equal to 0"},
	{"a start whose end would pass int32", fields{identity: "Ordinal", "spec.ordinals.start": "1000000001"}, "spec.ordinals.start", "less than or equal to 1000000000"},
	{"a negative reserved ordinal", fields{identity: "Ordinal", "spec.reserveOrdinals": "[1, -1]"}, "spec.reserveOrdinals[1]", anOrdinal},
	{"a huge reserved ordinal", fields{identity: "Ordinal", "spec.reserveOrdinals": "[2147483647]"}, "spec.reserveOrdinals[0]", anOrdinal},
	{"a reserved ordinal as a string", fields{identity: "Ordinal", "spec.reserveOrdinals": `["3"]`}, "spec.reserveOrdinals[0]", anOrdinal},
	{"an open range", fields{identity: "Ordinal", "spec.reserveOrdinals": `["3-"]`}, "spec.reserveOrdinals[0]", anOrdinal},
	{"a range of three", fields{identity: "Ordinal", "spec.reserveOrdinals": `["3-5-7"]`}, "spec.reserveOrdinals[0]", anOrdinal},
	{"a range with spaces", fields{identity: "Ordinal", "spec.reserveOrdinals": `["3 - 5"]`}, "spec.reserveOrdinals[0]", anOrdinal},
	{"a range with leading zeros", fields{identity: "Ordinal", "spec.reserveOrdinals": `["03-05"]`}, "spec.reserveOrdinals[0]", anOrdinal},
	{"a range of words", fields{identity: "Ordinal", "spec.reserveOrdinals": `["a-b"]`}, "spec.reserveOrdinals[0]", anOrdinal},
	{"a range that ends before it starts", fields{identity: "Ordinal", "spec.reserveOrdinals": `["5-3"]`}, "spec.reserveOrdinals[0]", aRange},
	{"a range of 10001 ordinals", fields{identity: "Ordinal", "spec.reserveOrdinals": `["0-10000"]`}, "spec.reserveOrdinals[0]", aRange},
	{"a range beyond the bound", fields{identity: "Ordinal", "spec.reserveOrdinals": `["1000000000-1000000001"]`}, "spec.reserveOrdinals[0]", aRange},
	{"1001 entries", fields{identity: "Ordinal", "spec.reserveOrdinals": "[" + strings.Repeat("1,", 1000) + "1]"}, "spec.reserveOrdinals", "must have at most 1000 items"},
}

var claims = []rejection{
	{"a claim template without metadata", fields{"spec.volumeClaimTemplates": "[{spec: {}}]"}, "spec.volumeClaimTemplates[0].metadata", "Required value"},
	{"a claim template without a name", fields{"spec.volumeClaimTemplates": "[{metadata: {}}]"}, "spec.volumeClaimTemplates[0].metadata.name", "Required value"},
	{"a claim template with an empty name", fields{"spec.volumeClaimTemplates": "[{metadata: {name: ''}}]"}, "spec.volumeClaimTemplates[0].metadata.name", aLabel},
	{"a claim template with a dot in its name", fields{"spec.volumeClaimTemplates": "[{metadata: {name: a.b}}]"}, "spec.volumeClaimTemplates[0].metadata.name", aLabel},
	{"a claim template with a name of 64 characters", fields{"spec.volumeClaimTemplates": "[{metadata: {name: " + strings.Repeat("a", 64) + "}}]"}, "spec.volumeClaimTemplates[0].metadata.name", "may not be more than 63"},
	{"two claim templates of one name", fields{"spec.volumeClaimTemplates": "[{metadata: {name: a}}, {metadata: {name: b}}, {metadata: {name: a}}]"}, "spec.volumeClaimTemplates", "no two templates may have the same metadata.name"},
	{"a claim template with a label under rollset.dev", fields{"spec.volumeClaimTemplates": "[{metadata: {name: a, labels: {apps.rollset.dev/set: other}}}]"}, "spec.volumeClaimTemplates[0].metadata.labels", ourKeys},
	{"a claim template with an annotation under rollset.dev", fields{"spec.volumeClaimTemplates": "[{metadata: {name: a, annotations: {rollset.dev/x: z}}}]"}, "spec.volumeClaimTemplates[0].metadata.annotations", ourKeys},
	{"a malformed size", fields{"spec.volumeClaimTemplates": "[{metadata: {name: a}, spec: {resources: {requests: {storage: ten}}}}]"}, "spec.volumeClaimTemplates[0].spec.resources.requests.storage", "should match"},
	{"65 claim templates", fields{"spec.volumeClaimTemplates": manyTemplates(65)}, "spec.volumeClaimTemplates", "must have at most 64 items"},
	{"an unknown retention policy", fields{"spec.persistentVolumeClaimRetentionPolicy": "{whenDeleted: Keep}"}, "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", `supported values: "Retain", "Delete"`},
	{"an unknown retention policy for scaling", fields{"spec.persistentVolumeClaimRetentionPolicy": "{whenScaled: Recycle}"}, "spec.persistentVolumeClaimRetentionPolicy.whenScaled", `supported values: "Retain", "Delete"`},
}

func manyTemplates(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "- {metadata: {name: t%d}}\n", i)
	}
	return b.String()
}

var strategies = []rejection{
	{"an unknown strategy", fields{"spec.updateStrategy.type": "BlueGreen"}, "spec.updateStrategy.type", `supported values: "RollingUpdate", "OnDelete", "Recreate"`},
	{"a CloneSet v1alpha1 strategy", fields{"spec.updateStrategy.type": "InPlaceIfPossible"}, "spec.updateStrategy.type", `supported values: "RollingUpdate", "OnDelete", "Recreate"`},
	{"an unknown pod update policy", fields{rolling + ".podUpdatePolicy": "InPlace"}, rolling + ".podUpdatePolicy", `"InPlaceIfPossible", "InPlaceOnly"`},
	{"an unknown deadline policy", fields{rolling + ".onDeadlineExceeded": "Abort"}, rolling + ".onDeadlineExceeded", `supported values: "Hold", "Rollback"`},
	{"both kinds of priority", fields{rolling + ".priorityStrategy": "{orderPriority: [{orderedKey: a}], weightPriority: [{weight: 1, matchSelector: {matchLabels: {a: b}}}]}"}, rolling + ".priorityStrategy", "weightPriority and orderPriority exclude each other"},
	{"a weight above 100", fields{rolling + ".priorityStrategy": "{weightPriority: [{weight: 101, matchSelector: {matchLabels: {a: b}}}]}"}, rolling + ".priorityStrategy.weightPriority[0].weight", "less than or equal to 100"},
	{"a negative weight", fields{rolling + ".priorityStrategy": "{weightPriority: [{weight: -1, matchSelector: {matchLabels: {a: b}}}]}"}, rolling + ".priorityStrategy.weightPriority[0].weight", "greater than or equal to 0"},
	{"a weight for every pod", fields{rolling + ".priorityStrategy": "{weightPriority: [{weight: 1, matchSelector: {}}]}"}, rolling + ".priorityStrategy.weightPriority[0].matchSelector", "must not be empty"},
	{"a malformed label in a weight", fields{rolling + ".priorityStrategy": "{weightPriority: [{weight: 1, matchSelector: {matchLabels: {a b: c}}}]}"}, rolling + ".priorityStrategy.weightPriority[0].matchSelector.matchLabels", labels},
	{"an unknown operator in a weight", fields{rolling + ".priorityStrategy": "{weightPriority: [{weight: 1, matchSelector: {matchExpressions: [{key: a, operator: Lt, values: ['1']}]}}]}"}, rolling + ".priorityStrategy.weightPriority[0].matchSelector.matchExpressions[0].operator", "supported values"},
	{"a malformed key of an order", fields{rolling + ".priorityStrategy": "{orderPriority: [{orderedKey: a/b/c}]}"}, rolling + ".priorityStrategy.orderPriority[0].orderedKey", aLabelKey},
	{"an empty key of an order", fields{rolling + ".priorityStrategy": "{orderPriority: [{orderedKey: ''}]}"}, rolling + ".priorityStrategy.orderPriority[0].orderedKey", "should be at least 1 chars long"},
	{"a malformed key of a scatter term", fields{rolling + ".scatterStrategy": "[{key: a b, value: c}]"}, rolling + ".scatterStrategy[0].key", aLabelKey},
	{"a malformed value of a scatter term", fields{rolling + ".scatterStrategy": "[{key: a, value: b c}]"}, rolling + ".scatterStrategy[0].value", "must be the value of a label"},
	{"two equal scatter terms", fields{rolling + ".scatterStrategy": "[{key: a, value: b}, {key: a, value: b}]"}, rolling + ".scatterStrategy", "no two terms may be equal"},
	{"an ordinal to delete", fields{"spec.podIdentity": "Ordinal", "spec.scaleStrategy.podsToDelete": "[web-0]"}, "spec.scaleStrategy.podsToDelete", "must be empty when podIdentity is Ordinal"},
	{"a pod to delete twice", fields{"spec.scaleStrategy.podsToDelete": "[web-a, web-a]"}, "spec.scaleStrategy.podsToDelete[1]", "Duplicate value"},
	{"a pod to delete with a malformed name", fields{"spec.scaleStrategy.podsToDelete": "[Web_1]"}, "spec.scaleStrategy.podsToDelete[0]", "must be the name of a pod"},
}

const aStepSize = `must be a number of pods of at least 1, or a percentage of replicas from "1%" to "100%"`

var rolloutSteps = []rejection{
	{"a step of nothing", fields{rolling + ".steps": "[{updated: 0}]"}, rolling + ".steps[0].updated", aStepSize},
	{"a step of 0%", fields{rolling + ".steps": "[{updated: 0%}]"}, rolling + ".steps[0].updated", aStepSize},
	{"a step of 101%", fields{rolling + ".steps": "[{updated: 101%}]"}, rolling + ".steps[0].updated", aStepSize},
	{"a step of half a percent", fields{rolling + ".steps": "[{updated: 0.5%}]"}, rolling + ".steps[0].updated", aStepSize},
	{"a negative step", fields{rolling + ".steps": "[{updated: -1}]"}, rolling + ".steps[0].updated", aStepSize},
	{"a step without a size", fields{rolling + ".steps": "[{pause: true}]"}, rolling + ".steps[0].updated", "Required value"},
	{"a negative soak", fields{rolling + ".steps": "[{updated: 1, soakSeconds: -1}]"}, rolling + ".steps[0].soakSeconds", "greater than or equal to 0"},
	{"numbers that fall", fields{rolling + ".steps": "[{updated: 1}, {updated: 10}, {updated: 9}]"}, rolling + ".steps", "must not fall"},
	{"numbers that fall around a percentage", fields{rolling + ".steps": "[{updated: 10}, {updated: 50%}, {updated: 9}]"}, rolling + ".steps", "must not fall"},
	{"percentages that fall", fields{rolling + ".steps": "[{updated: 5%}, {updated: 100%}, {updated: 20%}]"}, rolling + ".steps", "must not fall"},
	{"percentages that fall around a number", fields{rolling + ".steps": "[{updated: 20%}, {updated: 3}, {updated: 5%}]"}, rolling + ".steps", "must not fall"},
	{"21 steps", fields{rolling + ".steps": "[" + strings.Repeat("{updated: 1}, ", 20) + "{updated: 1}]"}, rolling + ".steps", "must have at most 20 items"},
	{"steps under OnDelete", fields{"spec.updateStrategy.type": "OnDelete", rolling + ".steps": "[{updated: 1}]"}, rolling + ".steps", "must not be set unless type is RollingUpdate"},
	{"domains without a label", fields{rolling + ".domains": "{soakSeconds: 1}"}, rolling + ".domains.labelKey", "Required value"},
	{"domains with an empty label", fields{rolling + ".domains": `{labelKey: ""}`}, rolling + ".domains.labelKey", "at least 1 char"},
	{"domains with no key of a label", fields{rolling + ".domains": "{labelKey: a/b/c}"}, rolling + ".domains.labelKey", `must be the key of a label, such as "topology.kubernetes.io/zone"`},
	{"domains with a key that is too long", fields{rolling + ".domains": "{labelKey: " + strings.Repeat("a", 64) + "}"}, rolling + ".domains.labelKey", "must be the key of a label"},
	{"a negative soak between domains", fields{rolling + ".domains": "{labelKey: zone, soakSeconds: -1}"}, rolling + ".domains.soakSeconds", "greater than or equal to 0"},
	{"domains under OnDelete", fields{"spec.updateStrategy.type": "OnDelete", rolling + ".domains": "{labelKey: zone}"}, rolling + ".domains", "must not be set unless type is RollingUpdate"},
	{"domains under Recreate", fields{"spec.updateStrategy.type": "Recreate", rolling + ".domains": "{labelKey: zone}"}, rolling + ".domains", "must not be set unless type is RollingUpdate"},
	{"steps under Recreate", fields{"spec.updateStrategy.type": "Recreate", rolling + ".steps": "[{updated: 1}]"}, rolling + ".steps", "must not be set unless type is RollingUpdate"},
	{"a gate without a type", fields{rolling + ".steps": "[{updated: 1, gates: [{timeoutSeconds: 1}]}]"}, rolling + ".steps[0].gates[0].conditionType", "Required value"},
	{"a gate with an empty type", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: ''}]}]"}, rolling + ".steps[0].gates[0].conditionType", "should be at least 1 chars long"},
	{"a gate of a type of the controller's", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: Ready}]}]"}, rolling + ".steps[0].gates[0].conditionType", "the controller writes those conditions itself"},
	{"a gate that is there for all sets", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: Available}]}]"}, rolling + ".steps[0].gates[0].conditionType", "the controller writes those conditions itself"},
	{"a gate that says how far it is", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: Progressing}]}]"}, rolling + ".steps[0].gates[0].conditionType", "the controller writes those conditions itself"},
	{"a gate that means trouble", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: ReplicaFailure}]}]"}, rolling + ".steps[0].gates[0].conditionType", "the controller writes those conditions itself"},
	{"a gate of 317 characters", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: " + strings.Repeat("a", 317) + "}]}]"}, rolling + ".steps[0].gates[0].conditionType", "may not be more than 316"},
	{"a gate that means no progress", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: Stalled}]}]"}, rolling + ".steps[0].gates[0].conditionType", "the controller writes those conditions itself"},
	{"a gate of a type that may be the controller's later", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: DatabaseReady}]}]"}, rolling + ".steps[0].gates[0].conditionType", "the controller writes those conditions itself"},
	{"a gate under our own prefix", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: apps.rollset.dev/ErrorRate}]}]"}, rolling + ".steps[0].gates[0].conditionType", "the controller writes those conditions itself"},
	{"a gate about disruption", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: DisruptionReady}]}]"}, rolling + ".steps[0].gates[0].conditionType", "the controller writes those conditions itself"},
	{"a gate of a malformed type", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: error rate}]}]"}, rolling + ".steps[0].gates[0].conditionType", "must be the type of a condition"},
	{"one gate twice", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: A}, {conditionType: A}]}]"}, rolling + ".steps[0].gates[1]", "Duplicate value"},
	{"a gate without time", fields{rolling + ".steps": "[{updated: 1, gates: [{conditionType: A, timeoutSeconds: 0}]}]"}, rolling + ".steps[0].gates[0].timeoutSeconds", "greater than or equal to 1"},
	{"nine gates", fields{rolling + ".steps": "[{updated: 1, gates: [" + manyGates(9) + "]}]"}, rolling + ".steps[0].gates", "must have at most 8 items"},
	{"an unknown policy for a step that failed", fields{rolling + ".onStepFailed": "Abort"}, rolling + ".onStepFailed", `supported values: "Hold", "Rollback"`},
}

func manyGates(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{conditionType: G%d}, ", i)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

var hooks = []rejection{
	{"a hook with a malformed label key", fields{"spec.lifecycle.preDelete": "{labelsHandler: {a b: c}}"}, "spec.lifecycle.preDelete.labelsHandler", labels},
	{"a hook with a malformed label value", fields{"spec.lifecycle.preNormal": "{labelsHandler: {a: b c}}"}, "spec.lifecycle.preNormal.labelsHandler", labels},
	{"a hook on the revision label", fields{"spec.lifecycle.inPlaceUpdate": "{labelsHandler: {controller-revision-hash: x}}"}, "spec.lifecycle.inPlaceUpdate.labelsHandler", "must not use labels that the controller sets"},
	{"a hook on a label under rollset.dev", fields{"spec.lifecycle.preDelete": "{labelsHandler: {lifecycle.rollset.dev/state: x}}"}, "spec.lifecycle.preDelete.labelsHandler", "must not use labels that the controller sets"},
	{"a hook on a finalizer without a domain", fields{"spec.lifecycle.preDelete": "{finalizersHandler: [foregroundDeletion]}"}, "spec.lifecycle.preDelete.finalizersHandler[0]", `must be a finalizer such as "example.com/hook"`},
	{"a hook on a finalizer under rollset.dev", fields{"spec.lifecycle.preDelete": "{finalizersHandler: [apps.rollset.dev/x]}"}, "spec.lifecycle.preDelete.finalizersHandler[0]", "must not be under rollset.dev"},
	{"a hook on one finalizer twice", fields{"spec.lifecycle.preDelete": "{finalizersHandler: [example.com/x, example.com/x]}"}, "spec.lifecycle.preDelete.finalizersHandler[1]", "Duplicate value"},
	{"a hook with a limit of no time", fields{"spec.lifecycle.preDelete": "{timeoutSeconds: 0}"}, "spec.lifecycle.preDelete.timeoutSeconds", "should be greater than or equal to 1"},
	{"a hook with an unknown policy for its limit", fields{"spec.lifecycle.preDelete": "{timeoutSeconds: 1, onTimeout: Rollback}"}, "spec.lifecycle.preDelete.onTimeout", `supported values: "Hold", "Proceed"`},
	{"a hook that proceeds without a limit", fields{"spec.lifecycle.inPlaceUpdate": "{labelsHandler: {a: b}, onTimeout: Proceed}"}, "spec.lifecycle.inPlaceUpdate.onTimeout", "must be Hold unless timeoutSeconds is set"},
	{"a hook that proceeds past finalizers", fields{"spec.lifecycle.preNormal": "{finalizersHandler: [example.com/x], timeoutSeconds: 1, onTimeout: Proceed}"}, "spec.lifecycle.preNormal.onTimeout", "must be Hold if finalizersHandler is set"},
	{"a hook on 17 labels", fields{"spec.lifecycle.preDelete": "{labelsHandler: {" + manyLabels(17) + "}}"}, "spec.lifecycle.preDelete.labelsHandler", "must have at most 16 items"},
}

func manyLabels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "l%d: v, ", i)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

var disruptions = []rejection{
	{"an unknown drain policy", fields{"spec.disruption": "{onDrain: Evict}"}, "spec.disruption.onDrain", `supported values: "Ignore", "Replace"`},
	{"an unknown budget policy", fields{"spec.disruption": "{podDisruptionBudget: Always}"}, "spec.disruption.podDisruptionBudget", `supported values: "None", "Auto"`},
	{"taints of drains without drains", fields{"spec.disruption": "{drainTaints: [example.com/leaving]}"}, "spec.disruption.drainTaints", "must not be set unless onDrain is Replace"},
	{"a taint with its value", fields{"spec.disruption": "{onDrain: Replace, drainTaints: ['example.com/leaving=yes']}"}, "spec.disruption.drainTaints[0]", "must be the key of a taint"},
}
