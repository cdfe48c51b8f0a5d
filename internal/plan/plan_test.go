// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
)

func TestNext(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config, state string
		want          []string
	}{
		"a new set gets all its pods": {
			config: "random R=5 v1", state: "",
			want: []string{
				"create qkmvw at v1 (missing)",
				"create 7w6p2 at v1 (missing)",
				"create tgg5d at v1 (missing)",
				"create jhhtq at v1 (missing)",
				"create 95fw8 at v1 (missing)",
			},
		},
		"missing pods are created": {
			config: "random R=4 v1", state: "a:v1+ b:v1+",
			want: []string{
				"create qkmvw at v1 (missing)",
				"create 7w6p2 at v1 (missing)",
			},
		},
		"a scale-down takes the broken pod, then the newest": {
			config: "random R=2 v1", state: "a:v1+ b:v1. c:v1+ d:v1+",
			want: []string{
				"delete web-b (scale down to 2)",
				"delete web-d (scale down to 2)",
			},
		},
		"one in the middle of a rollout takes the old pods": {
			config: "random R=3 v1>v2", state: "a:v1+ b:v2+ c:v2+ d:v2+",
			want: []string{
				"delete web-a (scale down to 3)",
			},
		},
		"a rolling update moves maxUnavailable pods": {
			config: "random R=3 v1>v2", state: "a:v1+ b:v1+ c:v1+",
			want: []string{
				"delete web-c (recreate at v2)",
				"hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"a surge pod comes first": {
			config: "random R=3 mu=0 surge=1 v1>v2", state: "a:v1+ b:v1+ c:v1+",
			want: []string{
				"create qkmvw at v2 (surge for update)",
				"hold web-c and 2 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"a surge pod must be available before a pod goes": {
			config: "random R=3 mu=0 surge=1 v1>v2", state: "a:v1+ b:v1+ c:v1+ d:v2.",
			want: []string{
				"hold web-c and 2 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"then one pod goes": {
			config: "random R=3 mu=0 surge=1 v1>v2", state: "a:v1+ b:v1+ c:v1+ d:v2+",
			want: []string{
				"delete web-c (recreate at v2)",
				"hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"broken pods that are to change places do not wait for each other": {
			config: "random R=3 p=1 mu=0 surge=2 v1>v2", state: "a:v1. b:v1. c:v2+ d:v2. e:v2.",
			want: []string{
				"delete web-e (recreate at v1)",
				"hold web-b: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"the last old pod waits for the last new one": {
			config: "random R=3 mu=0 surge=1 v1>v2", state: "c:v1+ d:v2+ e:v2+ f:v2.",
			want: []string{
				"hold web-c: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"and goes without a successor": {
			config: "random R=3 mu=0 surge=1 v1>v2", state: "c:v1+ d:v2+ e:v2+ f:v2+",
			want: []string{
				"delete web-c (recreate at v2)",
			},
		},
		"surge and maxUnavailable are used together": {
			config: "random R=4 mu=1 surge=1 v1>v2", state: "a:v1+ b:v1+ c:v1+ d:v1+",
			want: []string{
				"create qkmvw at v2 (surge for update)",
				"delete web-d (recreate at v2)",
				"hold web-c and 2 more: 2 unavailable at revision v2, no more are moved to it",
			},
		},
		"broken pods are moved one by one, so that a bad correction breaks no more": {
			config: "random R=3 v1>v2", state: "a:v1. b:v1. c:v1.",
			want: []string{
				"delete web-c (recreate at v2)",
				"hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"a terminating pod without claims is replaced at once": {
			config: "random R=3 v1>v2", state: "a:v1. b:v1. c:v1x",
			want: []string{
				"create qkmvw at v2 (missing)",
				"hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"with claims it keeps its identity": {
			config: "random R=3 v1>v2", state: "a:v1. b:v1. c:v1x$",
			want: []string{
				"hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"a bad template breaks maxUnavailable pods and no more": {
			config: "random R=6 mu=2 v1>v2", state: "a:v1+ b:v1+ c:v1+ d:v1+ e:v2. f:v2.",
			want: []string{
				"hold web-d and 3 more: 2 unavailable at revision v2, no more are moved to it",
			},
		},
		"the partition is a number of pods": {
			config: "random R=4 p=2 v1>v2", state: "a:v1+ b:v1+ c:v2+ d:v2+",
		},
		"raising the partition moves pods back": {
			config: "random R=4 p=3 v1>v2", state: "a:v1+ b:v1+ c:v2+ d:v2+",
			want: []string{
				"delete web-d (recreate at v1)",
			},
		},
		"a broken pod that the partition keeps is told of": {
			config: "random R=4 p=2 v1>v2", state: "a:v1+ b:v1. c:v2+ d:v2+",
			want: []string{
				"hold web-b: it is not ready, and the partition keeps it at revision v1",
			},
		},
		"strays go before pods at the current revision": {
			config: "random R=4 v1>v3", state: "a:v1+ b:v1+ c:v2+ d:v2+",
			want: []string{
				"delete web-d (recreate at v3)",
				"hold web-c and 2 more: 1 unavailable at revision v3, no more are moved to it",
			},
		},
		"a paused set makes lost pods at the current revision": {
			config: "random R=4 paused v1>v3", state: "a:v1+ b:v1+ c:v2+",
			want: []string{
				"create qkmvw at v1 (missing)",
				"hold web-a and 2 more: the rollout is paused",
			},
		},
		"a scale-down in a bad rollout keeps the good old pods": {
			config: "random R=2 v1>v2", state: "a:v1+ b:v1+ c:v2. d:v2.",
			want: []string{
				"delete web-d (scale down to 2)",
				"delete web-c (scale down to 2)",
			},
		},
		"ready but not available counts as unavailable, once": {
			config: "random R=3 v1>v2", state: "a:v1r b:v1+ c:v1+",
			want: []string{
				"delete web-a (recreate at v2)",
				"hold web-c and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"a set of one pod takes a new template before that is available": {
			config: "ordinal R=1 v1>v2", state: "0:v1r", want: []string{"delete web-0 (recreate at v2)"},
		},
		"and two pods do where both may be unavailable": {
			config: "random R=2 mu=2 v1>v2", state: "a:v1r b:v1r",
			want: []string{"delete web-b (recreate at v2)", "delete web-a (recreate at v2)"},
		},
		"where more are not available yet than may be unavailable all wait": {
			config: "random R=4 v1>v2", state: "a:v1r b:v1r c:v1r d:v1r",
			want: []string{
				"hold web-d and 3 more: maxUnavailable 1: 0 of 4 pods are available, web-a and 3 more are not",
			},
		},
		"a missing pod is told of where no other is unavailable": {
			config: "random R=3 v1", state: "a:v1+@ b:v1+",
			want: []string{
				"create qkmvw at v1 (missing)",
				"hold web-a: maxUnavailable 1: 2 of 3 pods are available, 1 missing",
			},
		},
		"where no pod is available broken pods pass the guard that has held for a minute": {
			config: "random R=3 v1>v2", state: "a:v1, b:v1, c:v2,",
			want: []string{"delete web-b (recreate at v2)", "delete web-a (recreate at v2)"},
		},
		"they wait for the minute": {
			config: "random R=3 v1>v2", state: "a:v1. b:v1. c:v2.",
			want: []string{
				"hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"counted from the moment at which the last available one ceased to be": {
			config: "random R=3 v1>v2", state: "a:v1, b:v1. c:v2,",
			want: []string{
				"hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"and as long as a pod is available": {
			config: "random R=3 v1>v2", state: "a:v1+ b:v1. c:v2,",
			want: []string{
				"hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"they do whatever scaleStrategy.maxUnavailable is, because it does not limit replacements": {
			config: "random R=3 scalemu=1 v1>v2", state: "a:v1, b:v1, c:v2,",
			want: []string{
				"delete web-b (recreate at v2)",
				"delete web-a (recreate at v2)",
			},
		},
		"what was deleted as broken comes back without waiting for scaleStrategy.maxUnavailable": {
			config: "random R=6 mu=3 scalemu=1 reached=6 v1>v2", state: "a:v1+ b:v1+ c:v1+ g:v2.",
			want: []string{
				"create qkmvw at v2 (missing)",
				"create 7w6p2 at v2 (missing)",
				"hold web-c and 2 more: 3 unavailable at revision v2, no more are moved to it",
			},
		},
		"whatever is broken at the revision that the partition keeps": {
			config: "random R=4 p=2 scalemu=1 v1>v2", state: "a:v1, b:v1, c:v2+",
			want: []string{
				"create qkmvw at v2 (missing)",
				"hold web-a and 1 more: it is not ready, and the partition keeps it at revision v1",
			},
		},
		"and a named one that is going as well": {
			config: "random R=3 scalemu=1 reached=3 v1", state: "a:v1+ b:v1x@ c:v1x@",
			want: []string{
				"create qkmvw at v1 (missing)",
				"create 7w6p2 at v1 (missing)",
			},
		},
		"a scale-down that a hook holds makes no update rest": {
			config: "ordinal hooked R=4 p=2 v1>v2", state: "0:v2+ 1:v2+ 2:v1+ 3:v1+ 4:v1+&",
			want: []string{
				"set web-4 to PreparingDelete (lifecycle hook preDelete waits until label example.com/hook=on is gone)",
				"delete web-3 (recreate at v2)",
				"hold web-4: lifecycle hook preDelete waits until label example.com/hook=on is gone",
				"hold web-2: 1 unavailable at revision v2, no more are moved to it",
				"hold web-1 and 1 more: maxUnavailable 1: 3 of 4 pods are available, web-3 is not",
			},
		},
		"and keeps no broken pod from its correction": {
			config: "ordinal hooked R=2 v1>v2", state: "0:v1+ 1:v1. 2:v1+^",
			want: []string{
				"delete web-1 (recreate at v2)",
				"hold web-2: lifecycle hook preDelete waits until label example.com/hook=on is gone",
				"hold web-0: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"OnDelete moves nothing and makes lost pods new": {
			config: "random R=3 ondelete v1>v2", state: "a:v1+ b:v1+",
			want: []string{
				"create qkmvw at v2 (missing)",
				"hold web-a and 1 more: updateStrategy OnDelete: it is updated when it is deleted",
			},
		},
		"a named pod is replaced within the budget": {
			config: "random R=3 v1", state: "a:v1+ b:v1+ c:v1+@",
			want: []string{
				"delete web-c (replacement requested)",
			},
		},
		"a named pod is replaced after its surge": {
			config: "random R=3 surge=1 mu=0 v1", state: "a:v1+ b:v1+ c:v1+@",
			want: []string{
				"create qkmvw at v1 (surge for update)",
				"hold web-c: maxUnavailable 0: 3 of 3 pods are available",
			},
		},
		"and goes when that is available": {
			config: "random R=3 surge=1 mu=0 v1", state: "a:v1+ b:v1+ c:v1+@ d:v1+",
			want: []string{
				"delete web-c (replacement requested)",
			},
		},
		"a named pod goes first in a scale-down": {
			config: "random R=2 v1", state: "a:v1+@ b:v1+ c:v1.",
			want: []string{
				"delete web-a (scale down to 2)",
			},
		},
		"a failed pod goes, and free claims are used first": {
			config: "random R=3 v1", state: "a:v1+ b:v1! c:-",
			want: []string{
				"delete web-b (ended: Failed)",
				"create c at v1 (missing)",
			},
		},
		"a rejected revision is given up": {
			config: "random R=3 rejected v1>v2", state: "a:v1+ b:v2. c:v1+",
			want: []string{
				"delete web-b (recreate at v1)",
			},
		},
		"scaleStrategy.maxUnavailable limits creation": {
			config: "random R=5 scalemu=2 v1", state: "a:v1+ b:v1.",
			want: []string{
				"create qkmvw at v1 (missing)",
				"hold web-7w6p2 and 1 more: scaleStrategy.maxUnavailable: 2 pods may be unavailable while pods are created",
			},
		},
		"but not the replacement of broken pods": {
			config: "random R=5 scalemu=1 v1>v2", state: "a:v1. b:v1. c:v1. d:v1+",
			want: []string{
				"create qkmvw at v2 (missing)",
				"hold web-c and 3 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"refused creations do not keep broken pods from being replaced": {
			config: "random R=5 refused v1>v2", state: "a:v1. b:v1. c:v1.",
			want: []string{
				"create qkmvw at v2 (missing)",
				"create 7w6p2 at v1 (missing)",
				"delete web-c (recreate at v2)",
				"hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"ordinals are created all at once": {
			config: "ordinal R=3 v1", state: "1:v1+",
			want: []string{
				"create 0 at v1 (missing)",
				"create 2 at v1 (missing)",
			},
		},
		"or one after the other": {
			config: "ordered R=3 v1", state: "",
			want: []string{
				"create 0 at v1 (missing)",
			},
		},
		"when those before are available": {
			config: "ordered R=3 v1", state: "0:v1+ 1:v1r",
			want: []string{
				"hold web-2: podManagementPolicy OrderedReady: web-1 is not available: not started yet on node node-1",
			},
		},
		"broken ordinals go from the highest": {
			config: "ordinal R=3 v1>v2", state: "0:v1. 1:v1. 2:v1.",
			want: []string{
				"delete web-2 (recreate at v2)",
				"hold web-1 and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"each waits for the one before it": {
			config: "ordinal R=3 v1>v2", state: "0:v1. 1:v1. 2:v1x",
			want: []string{
				"hold web-1 and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"unless that one is stuck": {
			config: "ordinal R=3 v1>v2", state: "0:v1. 1:v1. 2:v1X",
			want: []string{
				"delete web-1 (recreate at v2)",
				"hold web-0: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"in order the only pod of a set that hangs is replaced": {
			config: "ordered R=3 v1>v2", state: "0:v1.",
			want: []string{
				"delete web-0 (recreate at v2)",
				"hold web-1: podManagementPolicy OrderedReady: web-0 is not available: not started yet on node node-0",
			},
		},
		"in order the lowest broken pod goes first": {
			config: "ordered R=3 v1>v2", state: "0:v1+ 1:v1. 2:v1.",
			want: []string{
				"delete web-1 (recreate at v2)",
				"hold web-2 and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"a missing pod does not keep the broken one before it": {
			config: "ordered R=3 v1>v2", state: "0:v1. 2:v1+",
			want: []string{
				"delete web-0 (recreate at v2)",
				"hold web-1: podManagementPolicy OrderedReady: web-0 is not available: not started yet on node node-0",
				"hold web-2: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"the partition keeps the broken pod below it, and the one above goes": {
			config: "ordered R=3 p=1 v1>v2", state: "0:v1. 1:v1. 2:v1+",
			want: []string{
				"delete web-1 (recreate at v2)",
				"hold web-2: 1 unavailable at revision v2, no more are moved to it",
				"hold web-0: it is not ready, and the partition keeps it at revision v1",
			},
		},
		"ordinals are updated from the highest": {
			config: "ordered R=3 v1>v2", state: "0:v1+ 1:v1+ 2:v1+",
			want: []string{
				"delete web-2 (recreate at v2)",
				"hold web-1 and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"several at once where maxUnavailable allows it": {
			config: "ordered R=4 mu=2 v1>v2", state: "0:v1+ 1:v1+ 2:v1+ 3:v1+",
			want: []string{
				"delete web-3 (recreate at v2)",
				"delete web-2 (recreate at v2)",
				"hold web-1 and 1 more: 2 unavailable at revision v2, no more are moved to it",
			},
		},
		"a lost pod below the partition comes back as it was": {
			config: "ordinal R=3 p=1 v1>v2", state: "1:v2+ 2:v2+",
			want: []string{
				"create 0 at v1 (missing)",
			},
		},
		"in order the highest goes first when scaling down": {
			config: "ordered R=3 v1", state: "0:v1+ 1:v1+ 2:v1+ 3:v1+ 4:v1+",
			want: []string{
				"delete web-4 (its ordinal is not in use)",
			},
		},
		"and is gone before the next": {
			config: "ordered R=3 v1", state: "0:v1+ 1:v1+ 2:v1+ 3:v1+ 4:v1x",
			want: []string{
				"hold web-3: podManagementPolicy OrderedReady: web-4 is still terminating",
			},
		},
		"and waits for the pods below": {
			config: "ordered R=3 v1", state: "0:v1. 1:v1+ 2:v1+ 3:v1+",
			want: []string{
				"hold web-3: podManagementPolicy OrderedReady: web-0 is not available: not started yet on node node-0",
			},
		},
		"a broken surplus pod waits for nothing": {
			config: "ordered R=3 v1", state: "0:v1. 1:v1+ 2:v1+ 3:v1. 4:v1+",
			want: []string{
				"delete web-3 (its ordinal is not in use)",
			},
		},
		"in parallel all go": {
			config: "ordinal R=1 v1", state: "0:v1. 1:v1+ 2:v1+",
			want: []string{
				"delete web-2 (its ordinal is not in use)",
				"delete web-1 (its ordinal is not in use)",
			},
		},
		"a moved range gives up as many pods as the budget allows": {
			config: "ordinal R=2 start=2 v1", state: "0:v1+ 1:v1+",
			want: []string{
				"delete web-1 (its ordinal is not in use)",
				"hold web-0: its ordinal is out of range; it is deleted when enough other pods are available",
				"hold web-1: its ordinal is out of range; it must be deleted before another pod is created",
			},
		},
		"a moved range gives up the pod that a hook has prepared first": {
			config: "ordered hooked R=2 start=2 v1", state: "0:v1+% 1:v1+",
			want: []string{
				"delete web-0 (its ordinal is not in use)",
				"hold web-1: its ordinal is out of range; it must be deleted before another pod is created",
			},
		},
		"and fills the places they leave": {
			config: "ordinal R=2 start=2 v1", state: "0:v1+ 1:v1x",
			want: []string{
				"create 2 at v1 (missing)",
				"hold web-0: its ordinal is out of range; it is deleted when enough other pods are available",
				"hold web-0: its ordinal is out of range; it must be deleted before another pod is created",
			},
		},
		"a member that is lost comes back, although surplus pods wait for enough available ones": {
			config: "ordinal R=3 v1", state: "1:v1, 2:v1+ 3:v1+",
			want: []string{
				"create 0 at v1 (missing)",
				"hold web-3: its ordinal is out of range; it is deleted when enough other pods are available",
			},
		},
		"but one that is about to be available is waited for": {
			config: "ordinal R=3 v1", state: "1:v1. 2:v1+ 3:v1+",
			want: []string{
				"hold web-3: its ordinal is out of range; it is deleted when enough other pods are available",
				"hold web-3: its ordinal is out of range; it must be deleted before another pod is created",
			},
		},
		"a reserved ordinal gives way": {
			config: "ordinal R=3 reserve=1 v1", state: "0:v1+ 1:v1+ 2:v1+",
			want: []string{
				"delete web-1 (its ordinal is not in use)",
				"hold web-1: its ordinal is out of range; it must be deleted before another pod is created",
			},
		},
		"Recreate deletes all at once": {
			config: "ordinal R=3 recreate v1>v2", state: "0:v1+ 1:v1+ 2:v1+",
			want: []string{
				"delete web-2 (recreate at v2)",
				"delete web-1 (recreate at v2)",
				"delete web-0 (recreate at v2)",
			},
		},
		"and creates when all are gone": {
			config: "ordinal R=3 recreate v1>v2", state: "0:v1x",
			want: []string{
				"hold web-0: updateStrategy Recreate: no new pod before the last at revision v1 is gone",
			},
		},
		"a scale-down takes no more available pods than are too many, the named one among them": {
			config: "random R=1 v1>v2", state: "a:v1+@ b:v2r c:v1+",
			want: []string{
				"delete web-a (scale down to 1)",
				"delete web-b (scale down to 1)",
			},
		},
		"where no pod is wanted none is moved": {
			config: "random R=0 surge=1 mu=0 rejected v1>v2", state: "a:v1+",
			want: []string{
				"delete web-a (scale down to 0)",
			},
		},
		"surge made before a pause is not kept at the cost of an old pod": {
			config: "random R=2 surge=1 paused v1>v2", state: "a:v1+ b:v1. c:v2+",
			want: []string{
				"hold web-a and 1 more: the rollout is paused",
			},
		},
		"it is deleted when it is not needed for availability": {
			config: "random R=2 surge=1 paused v1>v2", state: "a:v1+ b:v1+ c:v2+",
			want: []string{
				"delete web-c (scale down to 2)",
			},
		},
		"a named pod's successor is not mistaken for one too many": {
			config: "random R=2 p=1 surge=1 mu=0 v1>v2", state: "a:v1+ b:v2+@ c:v2.",
			want: []string{
				"hold web-b: maxUnavailable 0: 2 of 2 pods are available",
			},
		},
		"needed surge does not go in the place of surge that a user named": {
			config: "random claims R=2 mu=0 surge=2 v1>v2", state: "a:v2+@$* b:v2.$* c:v1r$ d:v1r$",
			want: []string{
				"hold web-a: it is to be deleted when enough other pods are available",
				"hold web-d and 1 more: maxUnavailable 0: 1 of 2 pods are available, web-b is not",
			},
		},
		"a pod named in a pause is replaced at its own revision": {
			config: "random R=2 paused v1>v2", state: "a:v1+@ b:v2+@",
			want: []string{
				"delete web-b (replacement requested)",
				"hold web-a: maxUnavailable 1: 1 of 2 pods are available, web-b is not",
			},
		},
		"strays go where pods are lacking, under the guard of that revision": {
			config: "random R=3 p=3 v1>v2", state: "a:v1. b:v0+ c:v0+",
			want: []string{
				"hold web-c and 1 more: 1 unavailable at revision v1, no more are moved to it",
				"hold web-a: it is not ready, and the partition keeps it at revision v1",
			},
		},
		"no pod goes back to a revision that is forgotten": {
			config: "random R=2 p=1 forgotten v1>v2", state: "a:v2+ b:v2+",
		},
		"nor is one that has it taken from it": {
			config: "ordinal R=3 p=2 forgotten v1>v2", state: "0:v1+ 1:v2+ 2:v2+",
		},
		"Recreate comes to an end when the new revision is rejected": {
			config: "ordinal R=2 recreate rejected v1>v2", state: "0:v1+",
			want: []string{
				"create 1 at v1 (missing)",
			},
		},
		"and does not keep a paused set from its lost pods": {
			config: "random R=2 recreate paused v1>v2", state: "a:v1+",
			want: []string{
				"create qkmvw at v1 (missing)",
				"hold web-a: the rollout is paused",
			},
		},
		"Recreate also takes old pods whose ordinal is not in use": {
			config: "ordinal R=2 recreate v1>v2", state: "2:v1+",
			want: []string{
				"delete web-2 (its ordinal is not in use)",
				"hold web-2: updateStrategy Recreate: no new pod before the last at revision v1 is gone",
			},
		},
		"but none that are only misplaced": {
			config: "ordinal R=2 recreate rejected v1>v2", state: "2:v1+",
			want: []string{
				"create 0 at v1 (missing)",
				"hold web-2: its ordinal is out of range; it is deleted when enough other pods are available",
				"hold web-2: its ordinal is out of range; it must be deleted before another pod is created",
			},
		},
		"Recreate takes old pods before their turn, or the others would wait for them": {
			config: "ordered R=3 start=1 recreate v1>v2", state: "0:v1+ 4:v2+",
			want: []string{
				"delete web-0 (its ordinal is not in use)",
				"hold web-0: updateStrategy Recreate: no new pod before the last at revision v1 is gone",
			},
		},
		"Recreate takes old pods in their turn if the highest is too many and can go": {
			config: "ordered R=1 start=1 recreate v1>v2", state: "0:v1+ 1:v2+ 4:v2+",
			want: []string{
				"delete web-4 (its ordinal is not in use)",
			},
		},
		"Recreate has a budget for pods that are named and not old": {
			config: "random R=2 recreate v1>v2", state: "a:v2+@ b:v2+@",
			want: []string{
				"delete web-b (replacement requested)",
				"hold web-a: maxUnavailable 1: 1 of 2 pods are available, web-b is not",
			},
		},
		"broken pods that change places do not wait for one another": {
			config: "ordinal R=2 p=1 v1>v2", state: "0:v2. 1:v1.",
			want: []string{
				"delete web-1 (recreate at v2)",
				"delete web-0 (recreate at v1)",
			},
		},
		"no update is made while pods are scaled down one after the other": {
			config: "ordered R=3 v1>v2", state: "0:v1+ 1:v1+ 2:v1+ 3:v1+ 4:v1x",
			want: []string{
				"hold web-3: podManagementPolicy OrderedReady: web-4 is still terminating",
				"hold web-2 and 2 more: scaling down; pods in service are not updated until the pods that are too many are gone",
			},
		},
		"but while one is stuck, and those that wait for it are not taken for members": {
			config: "ordered R=3 v1>v2", state: "0:v1+ 1:v2. 2:v1+ 3:v1+ 4:v1X",
			want: []string{
				"hold web-3: podManagementPolicy OrderedReady: web-4 is still terminating",
				"hold web-2 and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"a stuck one fills no guard": {
			config: "ordered R=1 v1>v2", state: "0:v1+ 1:v2. 2:v2X",
			want: []string{
				"delete web-0 (recreate at v2)",
				"hold web-1: podManagementPolicy OrderedReady: web-2 is still terminating",
			},
		},
		"of those whose ordinal is not in use the broken ones are the ones too many": {
			config: "ordinal R=3 start=3 v1", state: "0:v1+ 1:v1. 3:v1+ 4:v1.",
			want: []string{
				"delete web-1 (its ordinal is not in use)",
				"hold web-0: its ordinal is out of range; it is deleted when enough other pods are available",
				"hold web-1: its ordinal is out of range; it must be deleted before another pod is created",
			},
		},
		"an ended pod that would come back as it was waits": {
			config: "random R=2 p=1 wait=60 v1>v2", state: "a:v1! b:v2+",
			want: []string{
				"hold web-a: the pod has ended (Failed) and is replaced after a back-off",
			},
		},
		"one of the outdated revision does not": {
			config: "random R=2 wait=60 v1>v2", state: "a:v1! b:v2+",
			want: []string{
				"delete web-a (ended: Failed)",
			},
		},
		"a failed ordinal keeps its place until it is deleted": {
			config: "ordered R=2 v1", state: "0:v1! 1:v1+",
			want: []string{
				"delete web-0 (ended: Failed)",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan.Next(snapshottest.Parse(tt.config, tt.state))
			want := strings.Join(append(tt.want, ""), "\n")
			if diff := cmp.Diff(want, p.String()); diff != "" {
				t.Errorf("plan for %q in %q (-want +got):\n%s", tt.state, tt.config, diff)
			}
		})
	}
}

// TestNextWithoutClaimTemplates plans for revisions whose claim templates are lost. Existing claims are used. Where a claim
// cannot be created, no pod is created, and no pod is deleted that could not come back.
func TestNextWithoutClaimTemplates(t *testing.T) {
	t.Parallel()
	lost := func(claim string) string {
		return claim + " does not exist, and the claim template data of revision v1 is lost; " +
			"put it back into spec.volumeClaimTemplates, or create the claim"
	}
	tests := map[string]struct {
		config, state string
		want          string
	}{
		"a lost pod comes back to its claim": {
			config: "ordinal R=2 p=2 v1>v2", state: "0:- 1:v1+",
			want: "create 0 at v1 (missing)\n",
		},
		"not without it": {
			config: "ordinal R=2 p=2 v1>v2", state: "1:v1+",
			want: "hold web-0: claim " + lost("data-web-0") + "\n",
		},
		"no pod goes for one that cannot come": {
			config: "ordinal R=2 p=2 v1>v2", state: "0:v1+ 1:v2+",
			want: "hold web-1: claim " + lost("data-web-1") + "\n",
		},
		"nor for a rollback": {
			config: "random R=2 v1>v2 rejected", state: "a:v1+ b:v2.",
			want: "hold web-b: claim " + lost("data-web-b") + "\n",
		},
		"nor because a user wants it replaced": {
			config: "ordinal R=1 p=1 v1>v2", state: "0:v1+@",
			want: "hold web-0: claim " + lost("data-web-0") + "\n",
		},
		"the others go on": {
			config: "random R=2 v1>v2", state: "a:v1+ b:v1+",
			want: "delete web-b (recreate at v2)\nhold web-a: 1 unavailable at revision v2, no more are moved to it\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse(tt.config, tt.state)
			snap.Current.Claims = []snapshot.ClaimTemplate{{Name: "data"}}
			snap.Known["v1"] = snap.Current
			p := plan.Next(snap)
			if diff := cmp.Diff(tt.want, p.String()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNextUnmarks checks that a pod whose name was removed from podsToDelete loses its mark.
func TestNextUnmarks(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=2 claims v1", "a:v1+$ b:v1+$")
	snap.Spec.ScaleStrategy = &v1beta1.ScaleStrategy{PodsToDelete: []string{"web-a"}}
	for i := range snap.Replicas {
		snap.Replicas[i].Replaced = true
	}
	p := plan.Next(snap)
	if diff := cmp.Diff("unmark web-b (podsToDelete no longer names it)\n", p.String()); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestNextNamed checks that the successor of a pod that podsToDelete names gets the claims of that pod.
func TestNextNamed(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=2 claims v1", "a:- b:v1+$")
	snap.Spec.ScaleStrategy = &v1beta1.ScaleStrategy{PodsToDelete: []string{"web-a"}}
	p := plan.Next(snap)
	if diff := cmp.Diff("create a at v1 (missing)\n", p.String()); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestNextWaitsForAdoption creates no pod for a place while it is not known whether one was adopted. A refusal holds nothing up.
func TestNextWaitsForAdoption(t *testing.T) {
	t.Parallel()
	for unsettled, want := range map[bool]string{true: "hold web-b and 1 more: no answer\n", false: "create qkmvw at v1 (missing)\nhold web-b and 1 more: no answer\n"} {
		snap := snapshottest.Parse("random R=2 v1", "a:v1+")
		snap.Refusals = map[attempt.Key]snapshot.Refusal{}
		for _, id := range []string{"b", "c"} {
			orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-" + id, UID: types.UID(id), Labels: map[string]string{"app": "web"}}}
			snap.Orphans = append(snap.Orphans, orphan)
			snap.Refusals[attempt.OfPod(attempt.Adopting, orphan)] = snapshot.Refusal{Message: "no answer", Unsettled: unsettled, Retry: time.Minute}
		}
		p := plan.Next(snap)
		if got := p.String(); got != want {
			t.Errorf("unsettled %t: plan:\n%s\nwant:\n%s", unsettled, got, want)
		}
	}
}
