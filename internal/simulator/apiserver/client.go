// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Client is the client of one manager. It reads from the manager's view and writes to the store, unless the plan of
// faults prevents it. Every write of a manager passes through do.
type Client struct {
	*View

	// Actor is the name under which the manager writes.
	Actor string
	// Faults chooses the fault of each write; nil means no faults.
	Faults FaultPlan
	// Refused returns the error with which a policy refuses a write; nil refuses none.
	Refused func(Write) error
	// Attempts counts the writes that were tried, dry runs included.
	Attempts int
	// Network, if not nil, chooses the faults of writes that the plan spares.
	Network FaultPlan
	// Tried, if not nil, receives the outcome of each write, unless the manager crashed.
	Tried func(Write, error)
	// NoChange, if not nil, receives patches that changed nothing.
	NoChange func(Write)
	// Rewritten, if not nil, receives writes whose metadata admission changed, and the answer.
	Rewritten func(Write, client.Object)
	// Later carries out a write that is still under way when the client gives up waiting for it.
	Later func(commit func())

	scheme *runtime.Scheme
	dead   bool
}

var _ client.Client = (*Client)(nil)

// NewClient returns the client of one life of a manager.
func NewClient(view *View, actor string, scheme *runtime.Scheme) *Client {
	return &Client{View: view, Actor: actor, scheme: scheme}
}

// do carries out a write as far as the plan of faults lets it.
func (c *Client) do(w Write, obj client.Object, commit func(Write) (client.Object, error)) error {
	w.Actor = c.Actor
	fault := NoFault
	if c.dead {
		fault = CrashBefore // a deferred call of a process that has ended
	} else if c.Attempts++; c.Faults != nil {
		fault = c.Faults(w)
	}
	if fault == NoFault && c.Network != nil {
		fault = c.Network(w)
	}
	var answer client.Object
	err := c.refuses(w, fault)
	switch {
	case err != nil:
	case fault.commits():
		answer, err = c.commit(w, commit)
	case fault == TimeoutLate:
		c.Later(func() {
			if c.Refused == nil || c.Refused(w) == nil {
				_, _ = commit(w) // the client has given up on the answer
			}
		})
	}
	if fault.Crashes() {
		c.dead = true
		panic(Crash{}) //nolint:forbidigo // unwinds the reconcile of a process that dies; the world recovers it
	}
	err = cmp.Or(fault.err(w), err) // a client whose request times out does not learn whether it took effect
	if c.Tried != nil {
		c.Tried(w, err)
	}
	if err != nil {
		return err
	}
	if answer != nil {
		assign(obj, Clone(answer))
	}
	return nil
}

// refuses returns why a policy refuses a write that reaches the API server.
func (c *Client) refuses(w Write, fault Fault) error {
	if fault.commits() && !c.dead && c.Refused != nil {
		return c.Refused(w)
	}
	return nil
}

// commit carries out a write, and reports one that changed nothing or was rewritten.
func (c *Client) commit(w Write, commit func(Write) (client.Object, error)) (answer client.Object, err error) {
	before, rewritten := c.store.Version(), c.store.rewritten
	answer, err = commit(w)
	switch {
	case err != nil || w.DryRun:
	case c.store.rewritten > rewritten && c.Rewritten != nil:
		c.Rewritten(w, answer)
	case w.Verb == Patch && c.store.Version() == before && c.NoChange != nil:
		c.NoChange(w)
	}
	return answer, err
}

// Create implements client.Writer.
func (c *Client) Create(_ context.Context, obj client.Object, opts ...client.CreateOption) error {
	var options client.CreateOptions
	options.ApplyOptions(opts)
	w := Write{Verb: Create, Key: KeyOf(obj), DryRun: len(options.DryRun) > 0}
	return c.do(w, obj, func(w Write) (client.Object, error) { return c.store.Create(w, obj) })
}

// Update implements client.Writer.
func (c *Client) Update(_ context.Context, obj client.Object, opts ...client.UpdateOption) error {
	var options client.UpdateOptions
	options.ApplyOptions(opts)
	return c.update(obj, Write{DryRun: len(options.DryRun) > 0})
}

// Patch implements client.Writer.
func (c *Client) Patch(_ context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	var options client.PatchOptions
	options.ApplyOptions(opts)
	return c.patch(obj, patch, Write{DryRun: len(options.DryRun) > 0})
}

// Delete implements client.Writer.
func (c *Client) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	w := Write{Verb: Delete, Key: KeyOf(obj), DeleteOptions: options, DryRun: len(options.DryRun) > 0}
	return c.do(w, obj, func(w Write) (client.Object, error) { return nil, c.store.Delete(w) })
}

// Apply implements client.Writer. It is not modeled.
func (c *Client) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return c.do(Write{Verb: "apply"}, nil, refuse)
}

// DeleteAllOf implements client.Writer. It is not modeled.
func (c *Client) DeleteAllOf(_ context.Context, obj client.Object, _ ...client.DeleteAllOfOption) error {
	return c.do(Write{Verb: "delete all of", Key: KeyOf(obj)}, obj, refuse)
}

// refuse ends the test at a write that is not modeled.
func refuse(w Write) (client.Object, error) {
	Unmodeled("%s", w)
	return nil, nil
}

func (c *Client) update(obj client.Object, w Write) error {
	w.Verb, w.Key = Update, KeyOf(obj)
	return c.do(w, obj, func(w Write) (client.Object, error) { return c.store.Update(w, obj) })
}

func (c *Client) patch(obj client.Object, patch client.Patch, w Write) error {
	body, err := patch.Data(obj)
	if err != nil {
		return err
	}
	w.Verb, w.Key, w.Body = Patch, KeyOf(obj), body
	return c.do(w, obj, func(w Write) (client.Object, error) { return c.store.Patch(w, patch.Type()) })
}

// Status implements client.Client.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.Client.
func (c *Client) SubResource(name string) client.SubResourceClient {
	return &subresource{Client: c, name: name}
}

// Scheme implements client.Client.
func (c *Client) Scheme() *runtime.Scheme { return c.scheme }

// RESTMapper implements client.Client. It is not modeled.
func (c *Client) RESTMapper() meta.RESTMapper {
	Unmodeled("the REST mapper")
	return nil
}

// GroupVersionKindFor implements client.Client.
func (c *Client) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.scheme)
}

// IsObjectNamespaced implements client.Client.
func (c *Client) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return kindOf(obj) != StorageClasses, nil
}

// Live reads from the store itself, past every cache.
type Live struct {
	store *Store
	// Reads counts the requests.
	Reads int
	// Network, if not nil, returns why reads fail now.
	Network func() error
}

var _ client.Reader = (*Live)(nil)

// NewLive returns a reader of a store.
func NewLive(store *Store) *Live { return &Live{store: store} }

// read begins a request.
func (l *Live) read() error {
	l.Reads++
	if l.Network == nil {
		return nil
	}
	return l.Network()
}

// Get implements client.Reader.
func (l *Live) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if err := l.read(); err != nil {
		return err
	}
	kind := kindOf(obj)
	found, err := l.store.find(Key{Kind: kind, Namespace: key.Namespace, Name: key.Name})
	if err == nil {
		assign(obj, Clone(found))
	}
	return err
}

// List implements client.Reader.
func (l *Live) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := l.read(); err != nil {
		return err
	}
	fresh := NewView(l.store)
	fresh.Relist(kindOf(list), l.store.Version())
	return fresh.List(ctx, list, opts...)
}

func labelsOf(obj client.Object) labels.Set { return obj.GetLabels() }
