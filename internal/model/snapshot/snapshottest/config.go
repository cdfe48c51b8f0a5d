// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshottest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// configuration holds the parsed words of a configuration.
type configuration struct {
	snap    *snapshot.Set
	start   int32
	reserve []intstr.IntOrString
	// unasked is true if the API server was not yet asked about the revisions.
	unasked bool
	// forgotten is true if the template of the current revision is lost.
	forgotten bool
	// claimless is true if the current revision, where it is not the update revision, has no claim templates.
	claimless bool
}

func (c *configuration) read(word string) {
	if from, to, ok := strings.Cut(word, ">"); ok {
		c.snap.Current, c.snap.Update = revision(from), revision(to)
		return
	}
	if key, value, ok := strings.Cut(word, "="); ok {
		c.readNumber(key, value)
		return
	}
	c.readSwitch(word)
}

func revision(name string) snapshot.Revision {
	return snapshot.Revision{Name: name, Template: &corev1.PodTemplateSpec{}}
}

func (c *configuration) readNumber(key, value string) {
	if key == "reserve" {
		c.reserve = append(c.reserve, intstr.Parse(value))
		return
	}
	number, err := strconv.ParseInt(value, 10, 32)
	n := int(number)
	if err != nil {
		panic(fmt.Sprintf("configuration %s=%s: want a number", key, value))
	}
	switch l := &c.snap.Limits; key {
	case "R":
		l.Replicas = n
	case "p":
		l.Partition = n
	case "mu":
		l.MaxUnavailable = n
	case "surge":
		l.MaxSurge = n
	case "scalemu":
		l.ScaleMaxUnavailable = n
	case "reached":
		c.snap.Reached = n
	case "start":
		c.start = int32(number)
	case "soak":
		c.snap.Spec.UpdateStrategy.RollingUpdate.Domains = &v1beta1.FailureDomains{LabelKey: Zone, SoakSeconds: int32(number)}
	case "wait":
		c.snap.FinishedWait = time.Duration(n) * time.Second
	default:
		panic(fmt.Sprintf("configuration: no number %q", key))
	}
}

func (c *configuration) readSwitch(word string) {
	spec := c.snap.Spec
	switch word {
	case "random":
	case "claims":
		spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	case "unasked":
		c.unasked = true
	case "nowhere":
		c.snap.Nowhere = true
	case "ordinal":
		spec.PodIdentity, spec.PodManagementPolicy = v1beta1.OrdinalIdentity, v1beta1.ParallelPodManagement
	case "ordered":
		spec.PodIdentity, spec.PodManagementPolicy = v1beta1.OrdinalIdentity, v1beta1.OrderedReadyPodManagement
	case "paused":
		spec.UpdateStrategy.RollingUpdate.Paused = true
	case "ondelete":
		spec.UpdateStrategy.Type = v1beta1.OnDeleteStrategy
	case "recreate":
		spec.UpdateStrategy.Type = v1beta1.RecreateStrategy
	case "hooked":
		hook := &v1beta1.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "on"}}
		spec.Lifecycle = &v1beta1.Lifecycle{PreDelete: hook}
	case "limited":
		hook := spec.Lifecycle.PreDelete
		hook.TimeoutSeconds, hook.OnTimeout = new(int32(60)), v1beta1.ProceedOnTimeout
	case "rejected":
		c.snap.Rejected = true
	case "claimless":
		c.claimless = true
	case "forgotten":
		c.forgotten = true
	case "refused":
		c.snap.Refusals = map[attempt.Key]snapshot.Refusal{attempt.AnyCreate(): {Message: "exceeded quota: pods", Definite: true}}
	default:
		c.snap.Current, c.snap.Update = revision(word), revision(word)
	}
}

func (c *configuration) finish() {
	for i := range c.snap.Spec.VolumeClaimTemplates {
		template := &c.snap.Spec.VolumeClaimTemplates[i]
		claim := snapshot.ClaimTemplate{Name: template.Name, Template: template}
		c.snap.Update.Claims = append(c.snap.Update.Claims, claim)
	}
	if !c.claimless || c.snap.Current.Name == c.snap.Update.Name {
		c.snap.Current.Claims = c.snap.Update.Claims
	}
	c.snap.Known = map[string]snapshot.Revision{c.snap.Current.Name: c.snap.Current, c.snap.Update.Name: c.snap.Update}
	for i := range 10 { // strays; pods at revisions with other names are from somewhere else
		if name := fmt.Sprintf("v%d", i); c.snap.Known[name].Template == nil {
			c.snap.Known[name] = snapshot.Revision{Name: name, Template: &corev1.PodTemplateSpec{}, Claims: c.snap.Update.Claims}
		}
	}
	if !c.unasked {
		c.snap.Preflights = map[string]snapshot.Preflight{c.snap.Current.Name: {}, c.snap.Update.Name: {}}
	}
	var err error
	if c.snap.Ordinals, err = identity.NewOrdinals(c.start, c.reserve); err != nil {
		panic(err)
	}
	if c.forgotten {
		c.snap.Current.Template = nil
	}
	replicas := int32(c.snap.Limits.Replicas)
	c.snap.Spec.Replicas = &replicas
}
