// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package claims_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
)

// classed returns a bound claim that asks for a volume attributes class and has another, both empty for none. Its storage driver
// answers with a status and a message.
func classed(id, asks, has string, answer corev1.PersistentVolumeClaimModifyVolumeStatus, words string) *corev1.PersistentVolumeClaim {
	c := claim(id, "1Gi")
	if asks != "" {
		c.Spec.VolumeAttributesClassName = &asks
	}
	if has != "" {
		c.Status.CurrentVolumeAttributesClassName = &has
	}
	if answer != "" {
		c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: asks, Status: answer}
		c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimVolumeModifyVolumeError, Status: corev1.ConditionTrue, Message: words,
		}}
	}
	return c
}

// given returns a claim to which the set gave its class.
func given(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c.Annotations = map[string]string{v1beta1.AttributesClassAnnotation: *c.Spec.VolumeAttributesClassName}
	return c
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	const infeasible, pending, inProgress = corev1.PersistentVolumeClaimModifyVolumeInfeasible, corev1.PersistentVolumeClaimModifyVolumePending, corev1.PersistentVolumeClaimModifyVolumeInProgress
	unbound := classed("1", "", "", "", "")
	unbound.Status.Phase = corev1.ClaimPending
	asks := classed("1", "gold", "", "", "")
	asks.Status.Phase = corev1.ClaimPending
	older := classed("1", "gold", "silver", infeasible, "no such type")
	older.Status.ModifyVolumeStatus.TargetVolumeAttributesClassName = "bronze"
	for name, tt := range map[string]struct {
		config, class string
		zero, one     *corev1.PersistentVolumeClaim
		want, message string
	}{
		"the highest ordinal's claim is first": {
			class: "gold", zero: classed("0", "", "", "", ""), one: classed("1", "", "", "", ""),
			want:    "give claim data-web-1 the volume attributes class gold",
			message: "data-web-0: it gets the volume attributes class gold when its pod's turn comes",
		},
		"the next waits for the driver": {
			class: "gold", zero: classed("0", "", "", "", ""), one: classed("1", "gold", "", inProgress, ""),
			message: "data-web-1: it is getting the volume attributes class gold",
		},
		"and for one that does not answer": {
			class: "gold", zero: classed("0", "", "", "", ""), one: classed("1", "gold", "", "", ""),
			message: "data-web-1: the storage driver has not answered to the volume attributes class gold; drivers that know no such classes never do",
		},
		"an answer to another class is none": {
			class: "gold", zero: classed("0", "gold", "gold", "", ""), one: older,
			message: "data-web-1: the storage driver has not answered to the volume attributes class gold; drivers that know no such classes never do",
		},
		"a class that may not exist": {
			class: "gold", zero: classed("0", "", "", "", ""), one: classed("1", "gold", "", pending, ""),
			message: "data-web-1: the volume attributes class gold is pending: it may not exist",
		},
		"nor another reason to wait": {
			class: "gold", zero: classed("0", "", "", "", ""), one: classed("1", "gold", "", pending, "quota of classes"),
			message: "data-web-1: the volume attributes class gold is pending: quota of classes",
		},
		"a class that is refused goes to no other claim": {
			class: "gold", zero: classed("0", "silver", "silver", "", ""), one: classed("1", "gold", "silver", infeasible, "no such type"),
			message: "data-web-1: the volume attributes class gold is infeasible: no such type; name the class before (silver), or another",
		},
		"the class before comes back at once": {
			class: "silver", zero: classed("0", "silver", "silver", "", ""), one: given(classed("1", "gold", "silver", infeasible, "no such type")),
			want:    "give claim data-web-1 the volume attributes class silver",
			message: "data-web-1: it gets the volume attributes class silver when its pod's turn comes",
		},
		"no class before is a class before, too": {
			zero: classed("0", "", "", "", ""), one: given(classed("1", "gold", "", infeasible, "no such type")),
			want:    "take the volume attributes class off claim data-web-1",
			message: "data-web-1: the volume attributes class gold, which was not applied, is taken off when its pod's turn comes",
		},
		"a class that was applied stays": {
			zero: classed("0", "", "", "", ""), one: given(classed("1", "gold", "gold", "", "")),
			message: "data-web-1: it has the volume attributes class gold and the template names none; a class that was applied cannot be taken off, only new claims come without one",
		},
		"what users gave stays": {zero: classed("0", "", "", "", ""), one: classed("1", "gold", "", infeasible, "no such type")},
		"the partition keeps claims back": {
			config: "ordinal R=2 p=2 v1", class: "gold", zero: classed("0", "", "", "", ""), one: classed("1", "", "", "", ""),
			message: "data-web-0: it gets the volume attributes class gold when its pod's turn comes",
		},
		"a pause keeps claims back": {
			config: "ordinal R=2 paused v1", class: "gold", zero: classed("0", "gold", "gold", "", ""), one: given(classed("1", "silver", "", infeasible, "")),
			message: "data-web-1: it gets the volume attributes class gold when its pod's turn comes",
		},
		"one that is not bound keeps no other from it": {
			class: "gold", zero: classed("0", "", "", "", ""), one: asks,
			want:    "give claim data-web-0 the volume attributes class gold",
			message: "data-web-0: it gets the volume attributes class gold when its pod's turn comes",
		},
		"a claim that is not bound cannot have it": {
			class: "gold", zero: classed("0", "gold", "gold", "", ""), one: unbound,
			message: "data-web-1: it cannot get the volume attributes class gold: it is not bound",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := tt.config
			if config == "" {
				config = "ordinal R=2 v1"
			}
			snap := observe(config, "0:v1+ 1:v1+", "1Gi", map[string]*corev1.PersistentVolumeClaim{"0": tt.zero, "1": tt.one})
			if tt.class != "" {
				snap.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName = &tt.class
			}
			if diff := cmp.Diff(tt.want, plan(snap)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.message, claims.Status(snap)[0].Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGrowthBesideAttributes grows a claim although the storage driver does not answer to the attributes class of another.
func TestGrowthBesideAttributes(t *testing.T) {
	t.Parallel()
	unanswered := claim("1", "2Gi")
	unanswered.Spec.VolumeAttributesClassName = new("gold")
	snap := observe("ordinal R=2 v1", "0:v1+ 1:v1+", "2Gi", map[string]*corev1.PersistentVolumeClaim{"0": classed("0", "gold", "gold", "", ""), "1": unanswered})
	snap.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName = new("gold")
	if diff := cmp.Diff("grow claim data-web-0 to 2Gi", plan(snap)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestGrowthTakenBack lowers a size that one of two claims asks for and does not get.
func TestGrowthTakenBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ size, want, message string }{
		"to more than it has": {
			size: "2Gi", want: "take the growth of claim data-web-1 back to 2Gi",
			message: "data-web-0: it grows from 1Gi to 2Gi when its pod's turn comes",
		},
		"to even more": {
			size: "8Gi", want: "grow claim data-web-1 to 8Gi",
			message: "data-web-0: it grows from 1Gi to 8Gi when its pod's turn comes",
		},
		"to what it has": {
			size:    "1Gi",
			message: "data-web-1: it requests 4Gi and has 1Gi, and the API server takes a growth back only to more than that; set the template to more than 1Gi",
		},
		"to less": {
			size:    "500Mi",
			message: "data-web-0: it requests 1Gi and the template 500Mi; a claim cannot shrink, only new claims get the smaller size",
		},
		"not at all": {
			size:    "4Gi",
			message: "data-web-1: it does not grow from 1Gi to 4Gi: the pool is full; a smaller size of more than 1Gi takes the growth back",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := claim("1", "4Gi")
			failed.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("1Gi")
			failed.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
				Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, Message: "the pool is full",
			}}
			snap := observe("ordinal R=2 v1", "0:v1+ 1:v1+", tt.size, map[string]*corev1.PersistentVolumeClaim{"0": claim("0", "1Gi"), "1": failed})
			if diff := cmp.Diff(tt.want, plan(snap)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.message, claims.Status(snap)[0].Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGrowthOfALostVolume takes no growth back of a claim that has lost its volume.
func TestGrowthOfALostVolume(t *testing.T) {
	t.Parallel()
	for phase, want := range map[corev1.PersistentVolumeClaimPhase]string{corev1.ClaimBound: "take the growth of claim data-web-0 back to 2Gi", corev1.ClaimLost: ""} {
		lost := claim("0", "4Gi")
		lost.Status.Phase, lost.Status.Capacity[corev1.ResourceStorage] = phase, resource.MustParse("1Gi")
		snap := observe("ordinal R=1 v1", "0:v1+", "2Gi", map[string]*corev1.PersistentVolumeClaim{"0": lost})
		if diff := cmp.Diff(want, plan(snap)); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", phase, diff)
		}
	}
}
