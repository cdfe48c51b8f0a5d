// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// quiet is how long nothing may happen after a manager has looked at all sets.
const quiet = 3 * time.Second

var copies = flag.Int("copies", 1, "Number of sets of each shape")

// TestUpgradeAndBack lets the manager of each earlier release bring sets of every shape into the middle of a change. This
// one takes over, completes the changes, and begins others, and the earlier release takes the sets back. The short form has only the
// last release.
func TestUpgradeAndBack(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no release in testdata: %v", err)
	}
	if testing.Short() {
		files = files[len(files)-1:]
	}
	to := tip(t)
	for _, file := range files {
		from := release(t, file)
		t.Run(from.name, func(t *testing.T) {
			b := newBench(t)
			p := b.take(t, from)
			all := repeated(shapes(), *copies)
			for _, s := range all {
				if err := b.Create(t.Context(), newSet(b.namespace, s.name, s.make)); err != nil {
					t.Fatal(err)
				}
			}
			b.ended(t, all)
			for _, next := range []version{to, from} {
				p = b.changeManagers(t, p, next, all)
			}
		})
	}
}

// repeated returns so many copies of each shape.
func repeated(shapes []shape, n int) (all []shape) {
	for i := range n {
		for _, s := range shapes {
			if i > 0 {
				s.name += "-" + strconv.Itoa(i)
			}
			all = append(all, s)
		}
	}
	return all
}

// changeManagers begins the changes of the shapes, lets another version take over, and completes them.
func (b *bench) changeManagers(t *testing.T, p *manager.Process, to version, all []shape) *manager.Process {
	t.Helper()
	b.begun(t, all, false)
	before := b.look(t)
	b.begun(t, all, true) // the moving ones last, and nothing in between: they go on until the manager has stopped
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	atStop := b.look(t)
	p = b.take(t, to)
	for _, s := range all { // another number here changes no pod, and shows when the manager has looked
		b.edit(t, s.name, o(func(set *v1beta1.RollSet) { *set.Spec.RevisionHistoryLimit++ }))
	}
	for _, s := range all {
		b.eventually(t, s.name+" to be looked at by "+to.name, func() error { return seen(b.get(t, s.name)) })
	}
	time.Sleep(quiet)
	after := b.look(t)
	for _, s := range all {
		if s.moves {
			continue
		}
		if diff := cmp.Diff(before[s.name], after[s.name]); diff != "" {
			says := condition(&b.get(t, s.name).Status, v1beta1.ConditionProgressing).Message
			t.Errorf("%s is another when %s has taken over, and says %q (-before +after):\n%s", s.name, to.name, says, diff)
		}
	}
	for _, s := range all {
		b.edit(t, s.name, s.end)
	}
	b.ended(t, all)
	last := b.look(t)
	for _, s := range all {
		if s.moves {
			atStop[s.name].stayed(t, s.name+" under "+to.name, last[s.name])
		}
	}
	return p
}

// begun brings the sets that move, or those that do not, into the middle of their changes. A moving one that completes before all are
// there begins again.
func (b *bench) begun(t *testing.T, all []shape, moves bool) {
	t.Helper()
	some := slices.DeleteFunc(slices.Clone(all), func(s shape) bool { return s.moves != moves })
	for _, s := range some {
		b.edit(t, s.name, s.begin)
	}
	b.eventually(t, "sets in the middle", func() (err error) {
		for _, s := range some {
			set := b.get(t, s.name)
			switch {
			case seen(set) != nil:
				err = fmt.Errorf("%s: %w", s.name, seen(set))
			case moves && complete(&set.Status):
				b.edit(t, s.name, s.begin)
				err = fmt.Errorf("%s is through", s.name)
			case !s.there(&set.Status):
				err = fmt.Errorf("%s: the status is %+v", s.name, set.Status)
			}
		}
		return err
	})
}

// ended waits until all sets are complete.
func (b *bench) ended(t *testing.T, all []shape) {
	t.Helper()
	for _, s := range all {
		b.eventually(t, s.name+" to be complete", func() error {
			set := b.get(t, s.name)
			if err := seen(set); err != nil {
				return err
			}
			if n := *set.Spec.Replicas; !complete(&set.Status) || set.Status.UpdatedAvailableReplicas != n || set.Status.Replicas != n {
				return fmt.Errorf("the status is %+v", set.Status)
			}
			return nil
		})
	}
}

// seen checks that a status is about the current spec.
func seen(set *v1beta1.RollSet) error {
	if set.Status.ObservedGeneration != set.Generation {
		return fmt.Errorf("observedGeneration is %d, not %d", set.Status.ObservedGeneration, set.Generation)
	}
	return nil
}

// complete reports whether nothing is left to do. A set without pods has a reason of its own, which earlier versions do not know.
func complete(s *v1beta1.RollSetStatus) bool {
	reason := condition(s, v1beta1.ConditionProgressing).Reason
	return reason == v1beta1.ReasonComplete || reason == v1beta1.ReasonNoReplicas
}

func condition(s *v1beta1.RollSetStatus, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// waitsForHook checks that a set waits for a lifecycle hook.
func waitsForHook(s *v1beta1.RollSetStatus) bool {
	return strings.Contains(condition(s, v1beta1.ConditionProgressing).Message, "lifecycle hook")
}

func (b *bench) get(t *testing.T, name string) *v1beta1.RollSet {
	t.Helper()
	set := &v1beta1.RollSet{}
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// edit changes a set.
func (b *bench) edit(t *testing.T, name string, options []option) {
	t.Helper()
	set := b.get(t, name)
	patch := client.MergeFrom(set.DeepCopy())
	for _, option := range options {
		option(set)
	}
	if err := b.Patch(t.Context(), set, patch); err != nil {
		t.Fatal(err)
	}
}

// picture has everything that a change of managers must not change.
type picture struct {
	Pods   map[string]pod
	Claims map[string]types.UID
	Status v1beta1.RollSetStatus
}

type pod struct {
	UID      types.UID
	Revision string
	State    string
	Leaving  bool
	Restarts int32
	Due      int32 // restarts that are to come, because an image was patched that does not run yet
	Claims   []string
}

// look takes pictures of all sets.
func (b *bench) look(t *testing.T) map[string]picture {
	t.Helper()
	sets, pods, claims := &v1beta1.RollSetList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	for _, list := range []client.ObjectList{sets, pods, claims} {
		if err := b.List(t.Context(), list, client.InNamespace(b.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]picture{}
	for i := range sets.Items {
		s := sets.Items[i].Status.DeepCopy()
		s.ObservedGeneration, s.IssuedIDs, s.Images = 0, 0, nil // not all versions keep the latter two
		for i := range s.Conditions {
			c := &s.Conditions[i]
			c.ObservedGeneration, c.LastTransitionTime, c.Message = 0, metav1.Time{}, "" // messages may change
			if c.Reason == v1beta1.ReasonNoReplicas {                                    // earlier versions call that complete
				c.Reason = v1beta1.ReasonComplete
			}
		}
		all[sets.Items[i].Name] = picture{Pods: map[string]pod{}, Claims: map[string]types.UID{}, Status: *s}
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		all[p.Labels["app"]].Pods[p.Name] = podOf(p)
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		all[c.Labels["app"]].Claims[c.Name] = c.UID
	}
	return all
}

func podOf(p *corev1.Pod) pod {
	one := pod{
		UID: p.UID, Revision: p.Labels[v1beta1.RevisionLabel], State: p.Labels[v1beta1.LifecycleStateLabel],
		Leaving: p.DeletionTimestamp != nil,
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		one.Restarts += c.RestartCount
		if !slices.ContainsFunc(p.Spec.Containers, func(s corev1.Container) bool { return s.Name == c.Name && strings.HasSuffix(c.Image, s.Image) }) {
			one.Due++
		}
	}
	for i := range p.Spec.Volumes {
		if claim := p.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			one.Claims = append(one.Claims, claim.ClaimName)
		}
	}
	return one
}

// stayed fails unless the end of a rollout, under either manager, has left alone the pods that were updated before, and all
// claims.
func (before picture) stayed(t *testing.T, what string, after picture) {
	t.Helper()
	updated := 0
	for name, was := range before.Pods {
		if was.Revision != after.Status.UpdateRevision || was.Leaving {
			continue
		}
		updated++
		if is := after.Pods[name]; is.UID != was.UID || is.Restarts != was.Restarts+was.Due {
			t.Errorf("%s: updated pod %s was %+v and is %+v", what, name, was, is)
		}
	}
	if updated == 0 || updated == len(after.Pods) {
		t.Errorf("%s: %d of %d pods were updated when the managers changed, which is not the middle", what, updated, len(after.Pods))
	}
	if !maps.Equal(before.Claims, after.Claims) {
		t.Errorf("%s: the claims were %v and are %v", what, before.Claims, after.Claims)
	}
}
