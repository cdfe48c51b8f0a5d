// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/controller/informer"
)

// View holds the caches of one manager: for each kind, the store as it was at some point of the log.
type View struct {
	store  *Store
	caches map[Kind]*cache
	// Listed counts the objects that were listed.
	Listed map[Kind]int
	// Trim, if not nil, changes objects on their way into the cache.
	Trim func(any) (any, error)
	// Order puts the results of a list into another order; a real cache has none. Nil leaves them sorted by name.
	Order func(n int, swap func(i, j int))
}

// cache holds the objects of one kind up to a place in the log.
type cache struct {
	kind    Kind
	objects map[Key]client.Object
	indexes map[string]*index
	// ever holds the keys and controllers of all objects that it has shown together with their controllers.
	ever map[controlled]bool
	// next is the first entry of the kind's log that was not delivered. version is the resource version of the last
	// event delivered, or of the list.
	next    int
	version int64
}

// controlled is an object of a controller.
type controlled struct {
	key        Key
	controller types.UID
}

// index finds objects by the values that a function derives from them.
type index struct {
	extract client.IndexerFunc
	keys    map[string]map[Key]struct{}
}

// Event is one delivery to the handlers of a kind. Old is nil for a new object, New for one that has gone.
type Event struct {
	Kind     Kind
	Old, New client.Object
	// Unknown is true for a deleted object if Old is not its last state.
	Unknown bool
	// Initial is true for a new object that came with the first list.
	Initial bool
}

// NewView returns empty caches.
func NewView(store *Store) *View {
	v := &View{store: store, caches: make(map[Kind]*cache), Listed: make(map[Kind]int)}
	for _, kind := range Kinds() {
		v.caches[kind] = &cache{kind: kind, objects: make(map[Key]client.Object), indexes: make(map[string]*index), ever: make(map[controlled]bool)}
	}
	return v
}

// IndexField implements client.FieldIndexer, so that the controller's own registration can be used.
func (v *View) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	c := v.caches[kindOf(obj)]
	ix := &index{extract: extract, keys: make(map[string]map[Key]struct{})}
	for key, o := range c.objects {
		ix.add(key, o)
	}
	c.indexes[field] = ix
	return nil
}

// Next returns the next write of a kind to be delivered; nil if there is none.
func (v *View) Next(kind Kind) *Entry { return v.store.entry(kind, v.caches[kind].next) }

// Unseen yields the writes of a kind that were not delivered yet, oldest first.
func (v *View) Unseen(kind Kind) iter.Seq[*Entry] { return v.store.from(kind, v.caches[kind].next) }

// Cached returns an object as it is in the cache, untrimmed; nil if it is not there. It must not be changed.
func (v *View) Cached(key Key) client.Object { return v.caches[key.Kind].objects[key] }

// Cache yields the objects of a kind in the cache, untrimmed and in no order.
func (v *View) Cache(kind Kind) iter.Seq[client.Object] { return maps.Values(v.caches[kind].objects) }

// HasShown reports whether the caches have ever shown an object of that name together with that set as its controller.
func (v *View) HasShown(key Key, controller types.UID) bool {
	return v.caches[key.Kind].ever[controlled{key, controller}]
}

// Lag returns the number of events of a kind that were not delivered.
func (v *View) Lag(kind Kind) int { return len(v.store.byKind[kind]) - v.caches[kind].next }

// Deliver applies the next event of a kind to the cache and returns it. There must be one.
func (v *View) Deliver(kind Kind) Event {
	c := v.caches[kind]
	e := v.store.entry(kind, c.next)
	c.next++
	c.version = e.Version
	old := c.objects[e.Key]
	if e.Gone() {
		old = e.Old // the watch sends the last state with it
	}
	v.note(c, old, e.New)
	c.set(e.Key, e.New)
	return Event{Kind: kind, Old: old, New: e.New}
}

// Relist brings the cache of a kind to the state at a resource version in one go, as after a broken watch. Objects that
// came and went in between are never seen, and an object recreated under its name looks like a change.
func (v *View) Relist(kind Kind, version int64) []Event {
	c := v.caches[kind]
	first := c.version == 0
	state, next := v.store.at(kind, version)
	var events []Event
	for _, key := range sortedKeys(state, c.objects) {
		old, obj := c.objects[key], state[key]
		switch {
		case old == obj:
			continue
		case obj == nil:
			events = append(events, Event{Kind: kind, Old: old, Unknown: true})
		default:
			events = append(events, Event{Kind: kind, Old: old, New: obj, Initial: first})
		}
		v.note(c, old, obj)
		c.set(key, obj)
	}
	c.next, c.version = next, version
	return events
}

// Synced returns the resource version that the cache of a kind has reached; empty before the first list.
func (v *View) Synced(gk schema.GroupKind) string {
	c, ok := v.caches[kindFor(gk)]
	if !ok {
		Unmodeled("the watermark of %s", gk)
	}
	if c.version == 0 {
		return ""
	}
	return strconv.FormatInt(c.version, 10)
}

// Get implements client.Reader.
func (v *View) Get(_ context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	var options client.GetOptions
	options.ApplyOptions(opts)
	kind := kindOf(obj)
	found, ok := v.caches[kind].objects[Key{Kind: kind, Namespace: key.Namespace, Name: key.Name}]
	if !ok {
		return apierrors.NewNotFound(GroupResource(kind), key.Name)
	}
	if options.UnsafeDisableDeepCopy == nil || !*options.UnsafeDisableDeepCopy {
		found = Clone(found)
	}
	assign(obj, v.trimmed(found))
	return nil
}

// List implements client.Reader.
func (v *View) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	kind := kindOf(list)
	fill(list, v.find(kind, &options))
	list.SetResourceVersion(strconv.FormatInt(v.caches[kind].version, 10))
	return nil
}

// Pods returns the pods of the cache themselves, as the indexer of a cache does.
func (v *View) Pods() informer.Pods { return cachedPods{v} }

type cachedPods struct{ view *View }

// With implements informer.Pods.
func (p cachedPods) With(_ context.Context, namespace, controller string) ([]*corev1.Pod, error) {
	found := p.find(client.InNamespace(namespace), client.MatchingFields{informer.ControllerIndex: controller})
	pods := make([]*corev1.Pod, len(found))
	for i := range found {
		pods[i] = MustBe[*corev1.Pod](found[i])
	}
	return pods, nil
}

// All implements informer.Pods.
func (p cachedPods) All(_ context.Context, namespace string) ([]client.Object, error) {
	return p.find(client.InNamespace(namespace)), nil
}

// Named implements informer.Pods.
func (p cachedPods) Named(_ context.Context, name types.NamespacedName) (client.Object, error) {
	found, ok := p.view.caches[Pods].objects[Key{Kind: Pods, Namespace: name.Namespace, Name: name.Name}]
	if !ok {
		return nil, nil
	}
	return p.view.trimmed(found), nil
}

func (p cachedPods) find(asked ...client.ListOption) []client.Object {
	options := &client.ListOptions{}
	options.ApplyOptions(append(asked, client.UnsafeDisableDeepCopy))
	return p.view.find(Pods, options)
}

// find returns the objects of a kind that a list asks for.
func (v *View) find(kind Kind, options *client.ListOptions) []client.Object {
	found := matching(v.caches[kind].candidates(options), options)
	if v.Order != nil {
		v.Order(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	}
	if options.UnsafeDisableDeepCopy == nil || !*options.UnsafeDisableDeepCopy {
		for i := range found {
			found[i] = Clone(found[i])
		}
	}
	for i := range found {
		found[i] = v.trimmed(found[i])
	}
	v.Listed[kind] += len(found)
	return found
}

// trimmed returns an object as the cache has it.
func (v *View) trimmed(obj client.Object) client.Object {
	if v.Trim == nil {
		return obj
	}
	out, err := v.Trim(Clone(obj))
	trimmed, ok := out.(client.Object)
	if err != nil || !ok {
		Unmodeled("a cache that has %T, %v", out, err)
	}
	return trimmed
}

// candidates returns the objects that match the index of a list, or all if it names none, sorted by name.
func (c *cache) candidates(options *client.ListOptions) []client.Object {
	var keys []Key
	if options.FieldSelector == nil || options.FieldSelector.Empty() {
		keys = sortedKeys(c.objects, nil)
	} else {
		requirements := options.FieldSelector.Requirements()
		ix, ok := c.indexes[requirements[0].Field]
		if !ok || len(requirements) > 1 {
			Unmodeled("a list of %s by %s", c.kind, options.FieldSelector)
		}
		keys = sortedKeys(ix.keys[requirements[0].Value], nil)
	}
	found := make([]client.Object, len(keys))
	for i, key := range keys {
		found[i] = c.objects[key]
	}
	return found
}

func matching(objs []client.Object, options *client.ListOptions) []client.Object {
	if options.Continue != "" {
		Unmodeled("lists in pieces")
	}
	found := slices.DeleteFunc(objs, func(obj client.Object) bool {
		if options.Namespace != "" && obj.GetNamespace() != options.Namespace {
			return true
		}
		return options.LabelSelector != nil && !options.LabelSelector.Matches(labelsOf(obj))
	})
	if options.Limit > 0 {
		found = found[:min(int64(len(found)), options.Limit)]
	}
	return found
}

// set puts an object into the cache, or removes it if it is nil.
func (c *cache) set(key Key, obj client.Object) {
	old := c.objects[key]
	for _, ix := range c.indexes {
		if old != nil {
			ix.remove(key, old)
		}
		if obj != nil {
			ix.add(key, obj)
		}
	}
	if obj == nil {
		delete(c.objects, key)
		return
	}
	c.objects[key] = obj
}

// note records the objects of an event that it shows together with the sets that control them.
func (v *View) note(c *cache, objects ...client.Object) {
	for _, obj := range objects {
		if obj == nil {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(obj)
		if owner == nil {
			continue
		}
		set := v.Cached(Key{Kind: RollSets, Namespace: obj.GetNamespace(), Name: owner.Name})
		if set != nil && set.GetUID() == owner.UID {
			c.ever[controlled{KeyOf(obj), owner.UID}] = true
		}
	}
}

func (ix *index) add(key Key, obj client.Object) {
	for _, value := range ix.extract(obj) {
		if ix.keys[value] == nil {
			ix.keys[value] = make(map[Key]struct{})
		}
		ix.keys[value][key] = struct{}{}
	}
}

func (ix *index) remove(key Key, obj client.Object) {
	for _, value := range ix.extract(obj) {
		delete(ix.keys[value], key)
	}
}

// sortedKeys returns the keys of one or two maps in the order of namespaces and names.
func sortedKeys[V any](a, b map[Key]V) []Key {
	keys := make([]Key, 0, len(a)+len(b))
	for key := range a {
		keys = append(keys, key)
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return keys
}
