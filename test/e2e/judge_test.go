// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/sim/invariants"
	auditlog "rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// judge fails the spec if a write of the manager breaks an invariant of the simulator. It needs the audit log, which says who
// wrote what, and a record without gaps.
func (f *fixture) judge() {
	GinkgoHelper()
	if cluster.local == nil {
		return
	}
	writes, err := f.audit.log.Writes(manager.User, f.namespace)
	Expect(err).NotTo(HaveOccurred())
	known := newAnswers(writes)
	r := f.record
	entries := read(r, func() []apiserver.Entry {
		if max(r.sets.lists, r.pods.lists, r.claims.lists, r.revisions.lists) > 1 {
			return nil
		}
		return slices.Concat(entriesOf(&r.sets, known), entriesOf(&r.pods, known), entriesOf(&r.claims, known), entriesOf(&r.revisions, known))
	})
	if entries == nil {
		AddReportEntry("invariants", "not judged: nothing happened, or a watch was cut", ReportEntryVisibilityFailureOrVerbose)
		return
	}
	var sets []apiserver.Key
	slices.SortFunc(entries, func(a, b apiserver.Entry) int { return cmp.Compare(a.Version, b.Version) })
	for i := range entries {
		if e := &entries[i]; e.Key.Kind == apiserver.RollSets && !slices.Contains(sets, e.Key) {
			sets = append(sets, e.Key)
		}
	}
	lag := patience.For(invariants.Lag)
	for _, set := range sets {
		judged, err := invariants.Replay(entries, set, manager.User, lag)
		Expect(err).NotTo(HaveOccurred(), "set %s", set)
		AddReportEntry("invariants", fmt.Sprintf("%d writes of the manager for set %s break none", judged, set.Name), ReportEntryVisibilityFailureOrVerbose)
	}
}

// answers finds the write of the manager that made a version of an object, or deleted one.
type answers struct {
	versions map[string]auditlog.Write
	deleted  map[types.UID]auditlog.Write
}

func newAnswers(writes []auditlog.Write) answers {
	GinkgoHelper()
	a := answers{versions: map[string]auditlog.Write{}, deleted: map[types.UID]auditlog.Write{}}
	for _, w := range writes {
		var stored struct {
			Metadata metav1.ObjectMeta
			Details  struct{ UID types.UID }
		}
		Expect(json.Unmarshal(w.Stored, &stored)).To(Succeed())
		if stored.Metadata.ResourceVersion != "" {
			a.versions[stored.Metadata.ResourceVersion] = w
		}
		if w.Verb == "delete" {
			a.deleted[cmp.Or(stored.Metadata.UID, stored.Details.UID)] = w
		}
	}
	return a
}

// entriesOf returns what happened to the objects of a kind as entries of a log.
func entriesOf[T client.Object](t *timeline[T], known answers) (entries []apiserver.Entry) {
	GinkgoHelper()
	last := map[types.UID]client.Object{}
	for _, c := range t.changes {
		version, err := strconv.ParseInt(c.object.GetResourceVersion(), 10, 64)
		Expect(err).NotTo(HaveOccurred())
		key, old := apiserver.KeyOf(c.object), last[c.object.GetUID()]
		e := apiserver.Entry{Write: apiserver.Write{Actor: invariants.User, Verb: apiserver.Update, Key: key}, Version: version, At: c.at, Old: old, New: c.object}
		w, mine := known.versions[c.object.GetResourceVersion()]
		switch {
		case c.gone:
			if w, mine = known.deleted[c.object.GetUID()]; mine && old != nil && old.GetDeletionTimestamp() != nil {
				mine = false // it was deleted before, and ends now
			}
			e.Verb, e.Old, e.New = apiserver.Delete, cmp.Or[client.Object](old, c.object), nil
			delete(last, c.object.GetUID())
		case old == nil:
			e.Verb = apiserver.Create
			fallthrough
		default:
			last[c.object.GetUID()] = c.object
		}
		if mine {
			writtenBy(&e, w)
		}
		entries = append(entries, e)
	}
	return entries
}

// writtenBy says in an entry how the manager wrote it.
func writtenBy(e *apiserver.Entry, w auditlog.Write) {
	GinkgoHelper()
	e.Actor, e.Verb, e.At = manager.User, apiserver.Verb(w.Verb), w.At
	if _, subresource, ok := strings.Cut(w.Resource, "/"); ok {
		e.Subresource = subresource
	}
	switch e.Verb {
	case apiserver.Patch:
		e.Body = w.Sent
	case apiserver.Delete:
		options := metav1.DeleteOptions{}
		Expect(json.Unmarshal(w.Sent, &options)).To(Succeed())
		e.DeleteOptions = client.DeleteOptions{Preconditions: options.Preconditions, GracePeriodSeconds: options.GracePeriodSeconds}
	default:
	}
}
