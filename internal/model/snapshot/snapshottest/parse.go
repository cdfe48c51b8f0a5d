// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package snapshottest writes observations in one line, for tests.
//
// A state is a list of identity:revision and a mark: + available, r ready but not yet available, . not ready since a moment
// ago, ',' not ready for an hour, ~ taken out of service for an update in place, x terminating, X terminating and overdue, ! finished;
// "a:-" are claims without a pod. A * at the very end marks what surge made and what goes again. An @ at the end marks a pod that a
// user named for deletion, a > before it one whose node leaves, a $ one that has claims. With the word hooked, a & marks a pod that carries the mark of the hook preDelete, a ^ one that is in PreparingDelete and carries it, a % one that is in
// PreparingDelete and does not, a = one that is in PreparingDelete and has carried it for an hour. For example "0:v1+ 1:v1. 2:v2x". A pod
// in a zone has its name before the identity: "a/0:v1+". A pod in the zone ? has no node, and in the zone ! none can be found for it.
package snapshottest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Zone is the label with the zones of pods.
const Zone = "topology.kubernetes.io/zone"

// Now returns the time of every parsed observation.
func Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Parse reads a configuration and a state. The configuration is a list of words:
//
//	random | ordinal (Parallel) | ordered (OrderedReady)
//	R=3 p=1 mu=1 surge=1 scalemu=2 start=5      numbers as resolved; mu is 1 unless it is said
//	reached=3                                   how many pods the set has had; at least those that there are
//	v1>v2 | v1                                  current and update revision
//	paused ondelete recreate rejected refused   switches
//	hooked                                      the set uses the hook preDelete
//	limited                                     behind hooked: for a minute, and then it proceeds
//	claims                                      the set has a claim template
//	claimless                                   the current revision has none
//	unasked                                     the API server was not asked about the revisions
//	forgotten                                   the template of the current revision is gone
//	wait=60                                     seconds until ended pods may be replaced
//	soak=60                                     zones are failure domains, with so many seconds between them
//	nowhere                                     every node leaves
//	reserve=3-5                                 an entry of reserveOrdinals
//
// It panics on anything else: a test's input is wrong, not what it tests.
func Parse(config, state string) *snapshot.Set {
	snap := &snapshot.Set{
		Settings: snapshot.Settings{
			Name:    "web",
			UID:     "uid-web",
			Spec:    &v1beta1.RollSetSpec{PodIdentity: v1beta1.RandomIdentity},
			Numbers: snapshot.Numbers{Limits: snapshot.Limits{MaxUnavailable: 1, ScaleMaxUnavailable: -1}},
		},
		Now: Now(),
	}
	c := configuration{snap: snap}
	for word := range strings.FieldsSeq(config) {
		c.read(word)
	}
	c.finish()
	for i, word := range strings.Fields(state) {
		snap.Replicas = append(snap.Replicas, replica(snap, word, i))
		snap.Claimed = snap.Claimed || len(snap.Replicas[i].Claims) > 0
	}
	FindNone(snap)
	snap.Reached = min(max(snap.Reached, snap.Placed()), snap.Limits.Replicas)
	snap.Unseen = max(0, snap.Reached-snap.Placed())
	return snap
}

// FindNone sets since when no pod has been available, as the pods show it.
func FindNone(snap *snapshot.Set) {
	snap.NoneSince = time.Time{}
	if !snap.Serves() {
		snap.NoneSince = snap.UnavailableSince()
	}
}

// replica parses one word of a state. Each pod is a minute older than the next one.
func replica(snap *snapshot.Set, word string, index int) snapshot.Replica {
	id, rest, ok := strings.Cut(word, ":")
	if !ok || rest == "" {
		panic(fmt.Sprintf("state %q: want identity:revision and a mark", word))
	}
	zone, id, zoned := strings.Cut(id, "/")
	if !zoned {
		id = zone
	}
	r := snapshot.Replica{Content: snapshot.Content{Identity: snapshot.Identity{ID: id, Ordinal: -1}}}
	rest, r.Surge = strings.CutSuffix(rest, "*")
	if n, err := strconv.Atoi(id); err == nil {
		r.Ordinal = n
	}
	if strings.HasSuffix(rest, "$") || rest == "-" {
		rest = strings.TrimSuffix(rest, "$")
		r.Claims = []*corev1.PersistentVolumeClaim{claim(snap, id)}
	}
	if rest == "-" {
		return r
	}
	rest, r.Specified = strings.CutSuffix(rest, "@")
	rest, leaves := strings.CutSuffix(rest, ">")
	if leaves {
		r.Leaving = "node node-" + id + " is cordoned"
	}
	hook := rest[strings.LastIndexAny(rest, "+r.,~xX!")+1:]
	rest = strings.TrimSuffix(rest, hook)
	mark := rest[len(rest)-1]
	r.Revision = rest[:len(rest)-1]
	r.Pod, r.Scheduled = running(snap.PodName(id), id, snap.Now.Add(time.Duration(index)*time.Minute-24*time.Hour)), true
	setMark(snap, &r, mark)
	if zoned {
		setZone(&r, zone)
	}
	if hook != "" {
		setHook(snap, &r, hook)
	}
	if r.Surge {
		metav1.SetMetaDataLabel(&r.Pod.ObjectMeta, v1beta1.SurgeLabel, "true")
	}
	r.Node, r.Phase, r.Created = r.Pod.Spec.NodeName, r.Pod.Status.Phase, r.Pod.CreationTimestamp.Unix()
	return r
}

// running returns a pod that runs on a node of its own.
func running(name, id string, created time.Time) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + id), CreationTimestamp: metav1.NewTime(created)}}
	pod.Status.Phase = corev1.PodRunning
	pod.Spec.NodeName = "node-" + id
	return pod
}

// claim returns a claim that the default retention policy does not change.
func claim(snap *snapshot.Set, id string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-" + snap.PodName(id)}}
	if !snap.Ordinal() {
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "RollSet", Name: snap.Name, UID: snap.UID, Controller: new(true)}}
	}
	return c
}

// setHook gives a pod the mark of the hook preDelete, or the state that it prepares for, or both.
func setHook(snap *snapshot.Set, r *snapshot.Replica, hook string) {
	if hook != "%" {
		r.Pod.Labels = maps.Clone(snap.Spec.Lifecycle.PreDelete.LabelsHandler)
	}
	if hook != "&" {
		r.State, r.Updating, r.Available = v1beta1.LifecyclePreparingDelete, true, false
		metav1.SetMetaDataLabel(&r.Pod.ObjectMeta, v1beta1.LifecycleStateLabel, string(r.State))
		since := snap.Now
		if hook == "=" {
			since = since.Add(-time.Hour)
		}
		metav1.SetMetaDataAnnotation(&r.Pod.ObjectMeta, v1beta1.LifecycleSinceAnnotation, string(r.State)+" "+since.Format(time.RFC3339))
	}
}

// setZone puts a pod into a zone, or takes its node away.
func setZone(r *snapshot.Replica, zone string) {
	switch zone {
	case "!":
		r.Pod.Status.Conditions = append(r.Pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse})
		fallthrough
	case "?":
		r.Pod.Spec.NodeName, r.Scheduled = "", false
	default:
		r.Pod.Labels = map[string]string{Zone: zone}
	}
}

func setMark(snap *snapshot.Set, r *snapshot.Replica, mark byte) {
	switch mark {
	case '+':
		r.Ready, r.Available, r.ReadySince = true, true, snap.Now.Add(-time.Hour)
	case 'r':
		r.Ready, r.ReadySince = true, snap.Now.Add(-time.Second)
	case '.', ',':
		since := snap.Now
		if mark == ',' {
			since = since.Add(-time.Hour)
		}
		r.Pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(since),
		}}
	case '~':
		r.Updating, r.Gate = true, inplace.Gate{Declared: true, Status: corev1.ConditionFalse, Since: snap.Now.Add(-time.Second)}
	case 'x':
		r.Terminating = true
		r.Pod.DeletionTimestamp = &metav1.Time{Time: snap.Now.Add(time.Second)}
	case 'X':
		r.Terminating = true
		r.Pod.DeletionTimestamp = &metav1.Time{Time: snap.Now.Add(-time.Hour)}
	case '!':
		r.Finished = true
		r.Pod.Status.Phase, r.Pod.Status.StartTime = corev1.PodFailed, &metav1.Time{Time: snap.Now} // and soon
	default:
		panic(fmt.Sprintf("state of %s: no mark %q", r.ID, mark))
	}
}
