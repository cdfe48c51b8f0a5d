// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// ordinal gives the pods ordinals and a governing service of the set's name, like the pods of a StatefulSet.
func ordinal() option {
	return func(s *v1beta1.RollSet) { s.Spec.PodIdentity, s.Spec.ServiceName = v1beta1.OrdinalIdentity, s.Name }
}

// parallel lets pods with ordinals be created and deleted all at once.
func parallel() option {
	return func(s *v1beta1.RollSet) { s.Spec.PodManagementPolicy = v1beta1.ParallelPodManagement }
}

// startingAt sets the first ordinal.
func startingAt(ordinal int32) option {
	return func(s *v1beta1.RollSet) { s.Spec.Ordinals = &v1beta1.Ordinals{Start: ordinal} }
}

// reserving sets the ordinals that no pod may have: numbers, and ranges such as "3-5".
func reserving(ordinals ...string) option {
	return func(s *v1beta1.RollSet) {
		s.Spec.ReserveOrdinals = nil
		for _, o := range ordinals {
			s.Spec.ReserveOrdinals = append(s.Spec.ReserveOrdinals, intstr.Parse(o))
		}
	}
}

// claiming adds a claim template of 1Gi, with the cluster's default storage class.
func claiming(name string) option {
	return func(s *v1beta1.RollSet) {
		template := corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		}}
		template.Name = name
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, template)
	}
}

// claimTemplate changes the claim template of a name.
func claimTemplate(name string, change func(*corev1.PersistentVolumeClaimSpec)) option {
	return func(s *v1beta1.RollSet) {
		for i := range s.Spec.VolumeClaimTemplates {
			if t := &s.Spec.VolumeClaimTemplates[i]; t.Name == name {
				change(&t.Spec)
			}
		}
	}
}

// storage sets the size that a claim template asks for.
func storage(name, size string) option {
	return claimTemplate(name, func(c *corev1.PersistentVolumeClaimSpec) {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	})
}

// storageClass sets the class of a claim template.
func storageClass(name, class string) option {
	return claimTemplate(name, func(c *corev1.PersistentVolumeClaimSpec) { c.StorageClassName = &class })
}

// attributes sets the volume attributes class of a claim template; nil for none.
func attributes(name string, class *string) option {
	return claimTemplate(name, func(c *corev1.PersistentVolumeClaimSpec) { c.VolumeAttributesClassName = class })
}

// keeping sets what happens to claims when the set is deleted, and when it is scaled down.
func keeping(whenDeleted, whenScaled v1beta1.ClaimRetentionPolicy) option {
	return func(s *v1beta1.RollSet) {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{
			WhenDeleted: whenDeleted, WhenScaled: whenScaled,
		}
	}
}

// strategy sets the type of the update strategy.
func strategy(kind v1beta1.UpdateStrategyType) option {
	return func(s *v1beta1.RollSet) { s.Spec.UpdateStrategy.Type = kind }
}

// minReady sets minReadySeconds, and a deadline that is long enough.
func minReady(seconds int32) option {
	return func(s *v1beta1.RollSet) {
		s.Spec.MinReadySeconds, s.Spec.ProgressDeadlineSeconds = seconds, new(seconds+600)
	}
}

// names returns the names of objects, uids their UIDs by name.
func names[T client.Object](objects []T) []string {
	all := make([]string, len(objects))
	for i, o := range objects {
		all[i] = o.GetName()
	}
	return all
}

// numbered returns the names that a set's pods have with these ordinals.
func numbered(set *v1beta1.RollSet, ordinals ...int) []string {
	all := make([]string, len(ordinals))
	for i, o := range ordinals {
		all[i] = fmt.Sprintf("%s-%d", set.Name, o)
	}
	return all
}

// awaitNames waits until the set has pods with these names and no others, including terminating ones.
func (f *fixture) awaitNames(ctx context.Context, set *v1beta1.RollSet, wanted ...string) []*corev1.Pod {
	GinkgoHelper()
	slices.Sort(wanted)
	return f.awaitPods(ctx, set, fmt.Sprintf("pods %v", wanted), func(pods []*corev1.Pod) bool {
		return slices.Equal(names(pods), wanted)
	})
}

// openGate waits for a pod of a set made with gated, and opens its gate.
func (f *fixture) openGate(ctx context.Context, set *v1beta1.RollSet, name string) {
	GinkgoHelper()
	f.awaitPods(ctx, set, name, func([]*corev1.Pod) bool { return f.pod(name) != nil && isLive(f.pod(name)) })
	f.setGate(ctx, f.pod(name), corev1.ConditionTrue)
	f.awaitPods(ctx, set, name+" to be ready", func([]*corev1.Pod) bool { return f.pod(name) != nil && isReady(f.pod(name)) })
}

// awaitMessage waits until the message of a condition has all these parts.
func (f *fixture) awaitMessage(ctx context.Context, set *v1beta1.RollSet, kind string, parts ...string) {
	GinkgoHelper()
	f.awaitStatus(ctx, set, fmt.Sprintf("%s to say %q", kind, parts), func(s *v1beta1.RollSetStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, kind)
		return c != nil && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(c.Message, part) })
	})
}

// comings returns the names of the set's pods since the mark, in the order in which the record first showed them. goings
// returns them in the order in which it first showed them as terminating or gone.
func (f *fixture) comings(set *v1beta1.RollSet, from mark) []string {
	return f.firsts(set, from, func(change[*corev1.Pod]) bool { return true })
}

func (f *fixture) goings(set *v1beta1.RollSet, from mark) []string {
	return f.firsts(set, from, func(c change[*corev1.Pod]) bool { return c.gone || !isLive(c.object) })
}

func (f *fixture) firsts(set *v1beta1.RollSet, from mark, is func(change[*corev1.Pod]) bool) (order []string) {
	seen := map[types.UID]bool{}
	changes := read(f.record, func() []change[*corev1.Pod] { return slices.Clone(f.record.pods.changes) })
	for i, c := range changes {
		if !metav1.IsControlledBy(c.object, set) || !is(c) || seen[c.object.UID] {
			continue
		}
		seen[c.object.UID] = true
		if i >= int(from) {
			order = append(order, c.object.Name)
		}
	}
	return order
}

// claimNamed returns the claim of a name; nil if there is none.
func (f *fixture) claimNamed(name string) *corev1.PersistentVolumeClaim {
	for _, claim := range f.claims() {
		if claim.Name == name {
			return claim
		}
	}
	return nil
}

// awaitClaims waits until the claims of the namespace are as wanted, and returns them.
func (f *fixture) awaitClaims(ctx context.Context, what string, holds func([]*corev1.PersistentVolumeClaim) bool) (claims []*corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	f.await(ctx, what, func() error {
		if claims = f.claims(); !holds(claims) {
			return fmt.Errorf("the claims are:\n%s", describeClaims(claims))
		}
		return nil
	})
	return claims
}

// awaitClaimNames waits until there are claims of these names and no others.
func (f *fixture) awaitClaimNames(ctx context.Context, wanted ...string) []*corev1.PersistentVolumeClaim {
	GinkgoHelper()
	slices.Sort(wanted)
	return f.awaitClaims(ctx, fmt.Sprintf("claims %v", wanted), func(claims []*corev1.PersistentVolumeClaim) bool {
		return slices.Equal(names(claims), wanted)
	})
}

// changeClaim changes a claim.
func (f *fixture) changeClaim(ctx context.Context, name string, by func(*corev1.PersistentVolumeClaim)) {
	GinkgoHelper()
	claim := f.claimNamed(name)
	Expect(claim).NotTo(BeNil(), "claim %s", name)
	now := &corev1.PersistentVolumeClaim{}
	update(ctx, claim, now, func() { by(now) })
}

func describeClaims(claims []*corev1.PersistentVolumeClaim) string {
	var b strings.Builder
	for _, c := range claims {
		fmt.Fprintf(&b, "%s  %s, asks for %s, has %s, deleted %v, owners %v\n", c.Name, c.Status.Phase,
			c.Spec.Resources.Requests.Storage(), c.Status.Capacity.Storage(), c.DeletionTimestamp, c.OwnerReferences)
	}
	return b.String()
}

func uids[T client.Object](objects []T) map[string]types.UID {
	all := map[string]types.UID{}
	for _, o := range objects {
		all[o.GetName()] = o.GetUID()
	}
	return all
}
