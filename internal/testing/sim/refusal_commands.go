// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// refusalCommands returns the commands about policies that refuse the managers one object, or one verb of it.
func refusalCommands() []command {
	return []command{
		{"refuse", 2, refuseWrites},
		{"permit", 0, permitWrites},
	}
}

// refusals are why writes of managers fail: a policy refuses them, or they get no answer.
type refusals struct {
	policies []policy
	// hung is true once a request of the running reconcile got no answer.
	hung bool
}

// policy refuses writes of managers.
type policy struct {
	// verb is the refused verb; "any" means all.
	verb string
	// object is a pod's name, or the word for an object that is not a pod.
	object string
	// answer is the kind of refusal.
	answer string
}

// kindNamed returns the kind that a word stands for; empty for the name of a pod.
func kindNamed(word string) apiserver.Kind {
	switch word {
	case "status":
		return apiserver.RollSets
	case "revision":
		return apiserver.Revisions
	case "claims":
		return apiserver.Claims
	case "budgets":
		return apiserver.Budgets
	case "pods", "resizes":
		return apiserver.Pods
	default:
		return ""
	}
}

// refuseWrites lets a policy refuse a verb to managers: "refuse patch a", "refuse any 3", "refuse create claims". The
// third word chooses the answer: "forbidden" is the default, others are "quota", "conflict", "invalid", "throttled", "rights" for a
// manager that lacks them, "webhook" for one that times out, and "hang" for one that never answers.
func refuseWrites(_ context.Context, w *World, args []string) error {
	p := policy{verb: args[0], object: args[1], answer: "forbidden"}
	if len(args) > 2 {
		p.answer = args[2]
	}
	if kindNamed(p.object) == "" {
		name, known := w.nameOf(p.object)
		if !known {
			return nil // in a replay the user was too early
		}
		p.object = name
	}
	w.note("refuse " + strings.Join(args, " "))
	w.refusals.policies = append(w.refusals.policies, p)
	return nil
}

// permitWrites ends all such policies, or those about one object.
func permitWrites(_ context.Context, w *World, args []string) error {
	w.note(strings.Join(append([]string{"permit"}, args...), " "))
	w.refusals.policies = slices.DeleteFunc(w.refusals.policies, func(p policy) bool {
		return len(args) == 0 || p.object == args[0] || strings.HasSuffix(p.object, "-"+args[0])
	})
	return nil
}

// of returns the error with which a policy refuses a manager's write; nil if no policy does.
func (r *refusals) of(write apiserver.Write) error {
	if write.Key.Namespace != Namespace && write.Key.Kind == apiserver.Pods {
		return r.hang(write)
	}
	for _, p := range r.policies {
		switch {
		case !p.refuses(write):
		case p.answer == "hang":
			return r.hang(write)
		default:
			return p.err(write)
		}
	}
	return nil
}

// hang returns the error of a write that never gets an answer.
func (r *refusals) hang(write apiserver.Write) error {
	r.hung = true
	return &url.Error{Op: string(write.Verb), URL: write.Key.String(), Err: context.DeadlineExceeded}
}

func (p policy) refuses(w apiserver.Write) bool {
	resizes := w.Subresource == "resize"
	if p.verb != "any" && p.verb != string(w.Verb) && (p.verb != "resize" || !resizes) {
		return false
	}
	if p.object == "resizes" {
		return resizes
	}
	if kind := kindNamed(p.object); kind != "" {
		return w.Key.Kind == kind
	}
	return w.Key.Kind == apiserver.Pods && w.Key.Name == p.object
}

// err returns the error that the managers receive.
func (p policy) err(w apiserver.Write) error {
	gr, name := apiserver.GroupResource(w.Key.Kind), w.Key.Name
	denied := errors.New(`admission webhook "policy.example.com" denied the request: not this one`)
	switch p.answer {
	case "quota":
		return apierrors.NewForbidden(gr, name, errors.New("exceeded quota: storage, requested: count=1, used: count=1, limited: count=1"))
	case "conflict":
		return apierrors.NewConflict(gr, name, denied)
	case "invalid":
		err := apierrors.NewInvalid(schema.GroupKind{Group: gr.Group, Kind: string(w.Key.Kind)}, name, nil)
		err.ErrStatus.Message += denied.Error()
		return err
	case "throttled":
		return apierrors.NewTooManyRequests(denied.Error(), 1)
	case "rights":
		return apiserver.ErrNoRights(w)
	case "webhook":
		return apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "policy.example.com": %w`, context.DeadlineExceeded))
	default:
		return apierrors.NewForbidden(gr, name, denied)
	}
}
