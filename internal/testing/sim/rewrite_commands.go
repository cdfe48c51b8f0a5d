// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// rewriteCommands returns the commands about admission policies that change what is written.
func rewriteCommands() []command {
	return []command{{"rewrite", 2, rewriteObjects}}
}

// rewriteObjects lets an admission policy change the metadata of a kind of objects whenever they are created or changed:
// "rewrite pods app=other", "rewrite claims apps.rollset.dev/set-", "rewrite pods owner-". "create" as the third word lets it change
// only new ones. "rewrite status selector-" lets it take the selector out of statuses, as an API server does that has an older CRD. "allow" ends all such policies.
func rewriteObjects(_ context.Context, w *World, args []string) error {
	kind, create := kindNamed(args[0]), len(args) > 2 && args[2] == "create"
	change, err := rewriting(args[1])
	if err != nil || kind == "" {
		return fmt.Errorf("rewrite %s: no such kind or change: %w", strings.Join(args, " "), err)
	}
	w.note("rewrite " + strings.Join(args, " "))
	w.Store.Admission = append(w.Store.Admission, func(verb apiserver.Verb, obj client.Object) error {
		if apiserver.KeyOf(obj).Kind == kind && verb != apiserver.Delete && (verb == apiserver.Create || !create) {
			change(obj)
		}
		return nil
	})
	return nil
}

// rewriting returns what a policy does to an object: key=value sets a label, and key- removes it, or the owner.
func rewriting(text string) (func(client.Object), error) {
	key, value, sets := strings.Cut(text, "=")
	key, removes := strings.CutSuffix(key, "-")
	switch {
	case sets == removes:
		return nil, fmt.Errorf("neither key=value nor key-: %s", text)
	case key == "owner":
		return func(obj client.Object) { obj.SetOwnerReferences(nil) }, nil
	case key == "selector":
		return func(obj client.Object) {
			if set, ok := obj.(*v1beta1.RollSet); ok {
				set.Status.LabelSelector = ""
			}
		}, nil
	}
	return func(obj client.Object) {
		labels := map[string]string{}
		maps.Copy(labels, obj.GetLabels())
		if delete(labels, key); sets {
			labels[key] = value
		}
		obj.SetLabels(labels)
	}, nil
}
