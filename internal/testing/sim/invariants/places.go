// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// places records whose place each pod of a set with failure domains takes. It follows the writes of everybody, and reads nothing
// that managers write about it.
type places struct {
	// set is the set whose places these are, and key the label of its domains; empty while it has none.
	set types.UID
	key string
	// vacant are the places of pods that have gone, or are about to, and that no new pod takes yet, the oldest first.
	vacant []vacancy
	// homes are the failure domains of the pods whose places those took that have not been available yet. An empty one is not known
	// to the manager.
	homes map[types.UID]home
	// added are the pods that took no place and have not been available yet.
	added map[types.UID]bool
	// settled are the versions of the pods in homes and added at which they became available. A manager may know an earlier one.
	settled map[types.UID]int64
	// served are the pods that each manager has seen available since it started, and atWork is the manager that looks.
	served map[string]map[types.UID]bool
	atWork string
	// dropped is the second in which a place was last dropped.
	dropped time.Time
	// bound are the pods that the manager at work has seen on a node.
	bound map[types.UID]bool
}

// home is a failure domain under the key of a label.
type home struct{ key, domain string }

// vacancy is the place of a pod that goes or is gone.
type vacancy struct {
	pod    apiserver.Key
	uid    types.UID
	domain string
	// since is the version of the store at which the pod was last as it stood in its place.
	since int64
}

func newPlaces() places {
	return places{homes: map[types.UID]home{}, added: map[types.UID]bool{}, settled: map[types.UID]int64{}, served: map[string]map[types.UID]bool{}, bound: map[types.UID]bool{}}
}

// look notes which pods a manager sees on nodes, and which available.
func (p *places) look(r *Reconcile) {
	p.atWork = r.Manager
	set := r.set()
	if p.key == "" || set == nil {
		return
	}
	if p.served[r.Manager] == nil {
		p.served[r.Manager] = map[types.UID]bool{}
	}
	for obj := range r.View.Cache(apiserver.Pods) {
		pod := apiserver.MustBe[*corev1.Pod](obj)
		if pod.Spec.NodeName != "" {
			p.bound[pod.UID] = true
		}
		if IsAvailable(pod, set.Spec.MinReadySeconds, r.Clock.Now()) && !IsUpdating(pod) && !preparing(pod) && !restarts(pod) {
			p.served[r.Manager][pod.UID] = true
		}
	}
}

// home returns the failure domain of the pod whose place a pod took that has not been available yet, as its manager knows it.
func (p *places) home(pod *corev1.Pod) (domain string, moved bool) {
	h, moved := p.homes[pod.UID]
	return h.domain, moved && h.key == p.key && p.starts(pod)
}

// adds reports whether a pod took no place and has not been available yet, as its manager knows it.
func (p *places) adds(pod *corev1.Pod) bool { return p.added[pod.UID] && p.starts(pod) }

// starts reports whether a version of a pod is from before it became available. A pod that is ready again and not available yet
// looks like one that is ready for the first time, unless the manager has seen it available.
func (p *places) starts(pod *corev1.Pod) bool {
	switch {
	case p.served[p.atWork][pod.UID]:
		return false
	case IsReady(pod) && !IsUpdating(pod) && !preparing(pod):
		return true
	}
	settled, ok := p.settled[pod.UID]
	version, err := strconv.ParseInt(pod.ResourceVersion, 10, 64)
	return !ok || err == nil && version < settled
}

// see follows a write.
func (p *places) see(c *Checker, e *apiserver.Entry) {
	set := c.world.Set()
	if set == nil || set.UID != p.set {
		*p = newPlaces()
	}
	key := domainKey(set)
	if key != "" {
		p.set = set.UID
	}
	if key != p.key { // pods say what they replaced, or that they replaced none, also after the key was another one for a while
		p.key, p.vacant, p.dropped = key, nil, time.Time{}
	}
	if key == "" {
		return
	}
	before, _ := e.Old.(*corev1.Pod)
	after, _ := e.New.(*corev1.Pod)
	stood := before != nil && stands(set, before)
	stands := after != nil && stands(set, after)
	switch {
	case stood && !stands && c.reconcile.scalesDown(e, set):
	case stood && !stands:
		p.leaves(before, e)
	case stands && before == nil && c.managers[e.Actor]:
		p.takes(c, e.Actor, set, after)
	case stands && IsAvailable(after, set.Spec.MinReadySeconds, c.world.now()):
		if _, settled := p.settled[after.UID]; !settled {
			p.settled[after.UID] = e.Version
		}
	}
	p.forget(c.world, set, e.At)
}

// stands reports whether a pod has a place of a set. One that the selector does not match is to be released.
func stands(set *v1beta1.RollSet, pod *corev1.Pod) bool {
	return OwnerOf(pod) == set.UID && pod.DeletionTimestamp == nil && matches(set, pod)
}

// scalesDown reports whether a manager writes for a spec with fewer replicas than the set has by now.
func (r *Reconcile) scalesDown(e *apiserver.Entry, now *v1beta1.RollSet) bool {
	known := r.set()
	return r.isBy(e.Actor) && known != nil && *known.Spec.Replicas < *now.Spec.Replicas
}

// forget drops the oldest vacancies when fewer pods are missing than there are: a scale-down has done without them.
func (p *places) forget(world *Cluster, set *v1beta1.RollSet, now time.Time) {
	if len(p.vacant) == 0 {
		return
	}
	if n := max(0, len(p.vacant)-max(0, missing(world, set))); n > 0 {
		p.vacant, p.dropped = p.vacant[n:], now.Truncate(time.Second)
	}
}

// missing returns how many pods a set lacks; negative if it has too many.
func missing(world *Cluster, set *v1beta1.RollSet) int {
	n := int(*set.Spec.Replicas)
	for pod := range apiserver.Each[*corev1.Pod](world.Store) {
		if stands(set, pod) && !isSurge(pod) {
			n--
		}
	}
	return n
}

// leaves notes that the place of a pod becomes vacant.
func (p *places) leaves(pod *corev1.Pod, e *apiserver.Entry) {
	home, moved := p.home(pod)
	added := p.adds(pod)
	delete(p.homes, pod.UID)
	switch {
	case pod.Labels[v1beta1.SurgeLabel] == "true", added:
		return
	case e.At.Truncate(time.Second).Equal(p.dropped): // the one that was dropped may have the place, and this one not
		home = ""
	case p.bound[pod.UID] && !moved:
		home = domainOf(pod, p.key)
	}
	p.vacant = append(p.vacant, vacancy{apiserver.KeyOf(pod), pod.UID, home, e.Version})
}

// takes notes that a pod was created: in a vacant place, or beside all others.
func (p *places) takes(c *Checker, manager string, set *v1beta1.RollSet, pod *corev1.Pod) {
	own := func(v vacancy) bool { return v.pod == apiserver.KeyOf(pod) }
	i := slices.IndexFunc(p.vacant, own)
	known := true
	if i < 0 && len(p.vacant) > 0 && set.Spec.PodIdentity != v1beta1.OrdinalIdentity {
		i, known = 0, missing(c.world, set) < len(p.vacant) // otherwise another one may be the successor, and this one is added
		p.blur()
	}
	switch {
	case !c.reconcile.knows(manager, p.key):
		if i >= 0 {
			p.vacant = slices.Delete(p.vacant, i, i+1) // the pod says nothing of it, and is where its node is
		}
	case pod.Labels[v1beta1.SurgeLabel] == "true", i < 0:
		p.added[pod.UID] = true
	default:
		domain := p.vacant[i].domain
		if !known || !c.remembers(manager, p.vacant[i]) {
			domain = ""
		}
		p.homes[pod.UID] = home{p.key, domain}
		p.vacant = slices.Delete(p.vacant, i, i+1)
	}
}

// blur forgets the domains of the vacant places if there are several: nothing says which of them a pod takes, and which are left.
func (p *places) blur() {
	if slices.ContainsFunc(p.vacant, func(v vacancy) bool { return v.domain != p.vacant[0].domain }) {
		for i := range p.vacant {
			p.vacant[i].domain = ""
		}
	}
}

// knows reports whether a manager writes for a spec with failure domains under the key of a label.
func (r *Reconcile) knows(manager, key string) bool {
	return !r.isBy(manager) || domainKey(r.set()) == key
}

// domainKey returns the key of the label of a set's failure domains; empty if it has none.
func domainKey(set *v1beta1.RollSet) string {
	if set == nil || set.Spec.UpdateStrategy.RollingUpdate.Domains == nil {
		return ""
	}
	return set.Spec.UpdateStrategy.RollingUpdate.Domains.LabelKey
}

// remembers reports whether a manager has seen a pod in the place that it left.
func (l *lives) remembers(manager string, v vacancy) bool {
	return len(l.managers) == 1 && l.born[manager] < v.since
}

// awaits returns a failure domain other than a pod's in which a place is vacant, as far as the manager knows; empty if there is
// none.
func (p *places) awaits(v *verdict, pod *corev1.Pod) string {
	missing := int(*v.set.Spec.Replicas) - v.count(IsActive)
	for _, place := range p.vacant {
		known, there := v.view.Cached(place.pod).(*corev1.Pod)
		gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: place.pod.Name}}
		if v.outside(gone) || there && known.UID == place.uid && v.selects(known) || !v.checker.remembers(v.Actor, place) || place.domain == "" || missing <= 0 {
			continue
		}
		if missing--; place.domain != domainOf(pod, p.key) {
			return place.domain
		}
	}
	return ""
}
