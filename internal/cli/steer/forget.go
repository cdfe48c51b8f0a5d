// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/cli/view"
	"rollset.dev/rollset/internal/model/revision"
)

const (
	// noticePoll is how often a set is read while waiting until the controller notices that an annotation is gone.
	noticePoll = 200 * time.Millisecond
	// noticeLimit is how long that is waited for.
	noticeLimit = 30 * time.Second
)

// forget removes an annotation with a request that the controller has handled, and waits until the controller has noticed that.
// Each request acts once, so the same one made again would do nothing while the first is there. It returns the set as it is
// then.
func forget(ctx context.Context, s *session.Session, c client.Client, set set, request string) (set, error) {
	value := set.Annotations[request]
	if request == "" || value == "" {
		return set, nil
	}
	handled, err := isHandled(ctx, c, set, request, value)
	if err != nil || !handled {
		return set, err
	}
	path := "/metadata/annotations/" + strings.ReplaceAll(request, "/", "~1")
	body, err := json.Marshal([]map[string]string{{"op": "test", "path": path, "value": value}, {"op": "remove", "path": path}})
	if err != nil {
		return set, err
	}
	err = c.Patch(ctx, set.raw.DeepCopy(), client.RawPatch(types.JSONPatchType, body))
	if err != nil && !apierrors.IsInvalid(err) { // invalid: another client has changed it
		return set, err
	}
	limited, cancel := session.Within(ctx, noticeLimit)
	defer cancel()
	set, err = noticed(limited, s, c, set, request)
	if errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		return set, fmt.Errorf("annotation %s=%s was removed, because it was acted upon before, and the controller has not noticed within %v; does it run? Try again", request, value, noticeLimit)
	}
	return set, err
}

// noticed waits until the controller no longer remembers the request of a set, and returns the set as it is then.
func noticed(ctx context.Context, s *session.Session, c client.Client, set set, request string) (now set, err error) {
	for {
		handled := false
		if now, err = read(ctx, c, client.ObjectKeyFromObject(set.raw)); err == nil {
			handled, err = isHandled(ctx, c, now, request, set.Annotations[request])
		}
		if err != nil || !handled {
			return now, err
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-s.Clock.After(noticePoll):
		}
	}
}

// observed waits until the controller has observed the spec of a set, and returns the set as it is then: before, its status is about
// an older one.
func observed(ctx context.Context, s *session.Session, c client.Client, set set) (set, error) {
	limited, cancel := session.Within(ctx, noticeLimit)
	defer cancel()
	for set.Status.ObservedGeneration < set.Generation {
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return set, ctx.Err()
			}
			return set, fmt.Errorf("the controller has not observed the spec of rollset %s within %v; nothing was done; does it run?", set.Name, noticeLimit)
		case <-s.Clock.After(noticePoll):
		}
		var err error
		if set, err = read(ctx, c, client.ObjectKeyFromObject(set.raw)); err != nil {
			return set, err
		}
	}
	return set, nil
}

// isHandled reports whether the controller remembers that it handled a request.
func isHandled(ctx context.Context, c client.Client, set set, request, value string) (bool, error) {
	if request == v1beta1.PromoteAnnotation {
		return set.Status.Rollout != nil && set.Status.Rollout.IgnoredPromotion == value, nil
	}
	mark := map[string]string{v1beta1.AbortAnnotation: revision.AbortedAnnotation, v1beta1.RetryAnnotation: revision.RetriedAnnotation}[request]
	revisions, err := view.Revisions(ctx, c, set.RollSet)
	for _, r := range revisions {
		if r.Name == value {
			return r.Annotations[mark] != "", nil
		}
	}
	return false, err
}
