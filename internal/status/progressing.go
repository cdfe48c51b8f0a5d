// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
)

// verdict is the status and reason of a condition.
type verdict struct {
	status metav1.ConditionStatus
	reason string
}

// progressing makes the condition Progressing: its verdict, and its message.
type progressing struct{ *facts }

// verdict returns the condition Progressing. A pause makes it Unknown, as in Deployment, because a paused rollout
// neither moves nor fails to. A step that failed before the pause has still failed.
func (f progressing) verdict(t timing) verdict {
	switch {
	case f.in.Invalid != "":
		return verdict{metav1.ConditionFalse, v1beta1.ReasonInvalidSpec}
	case f.in.Deleting:
		return verdict{metav1.ConditionTrue, v1beta1.ReasonDeleting}
	case f.empty() && f.settled:
		return verdict{metav1.ConditionTrue, v1beta1.ReasonNoReplicas}
	case f.empty():
		return verdict{metav1.ConditionTrue, v1beta1.ReasonScaling}
	case f.snap.Rejected:
		return verdict{metav1.ConditionFalse, v1beta1.ReasonRolledBack}
	case f.refusesTemplate():
		return verdict{metav1.ConditionFalse, v1beta1.ReasonInvalidTemplate}
	case f.stepHolds():
		return verdict{metav1.ConditionFalse, v1beta1.ReasonStepFailed}
	case f.snap.Paused() && f.outdated > 0:
		return verdict{metav1.ConditionUnknown, v1beta1.ReasonPaused}
	case t.exceeded:
		return verdict{metav1.ConditionFalse, v1beta1.ReasonProgressDeadlineExceeded}
	case f.stepping():
		return stepper(f).stepVerdict()
	default:
		return verdict{metav1.ConditionTrue, f.phase()}
	}
}

// phase returns the reason of Progressing for a set without failures.
func (f progressing) phase() string {
	updated := f.revision(f.snap.Update.Name).active
	switch {
	case f.settled && f.outdated == 0:
		return v1beta1.ReasonComplete
	case f.settled && f.snap.Strategy() != v1beta1.OnDeleteStrategy:
		return v1beta1.ReasonPartitionReached
	case f.settled: // the rest follows when a user deletes it
		return v1beta1.ReasonRollingUpdate
	case f.finished():
		return f.reason
	case f.atPartition():
		return v1beta1.ReasonPartitionReached
	case updated == 0 && f.snap.Limits.Replicas > 0 && f.beginning():
		return v1beta1.ReasonNewRevision
	case f.snap.Rolling(), f.moving > 0:
		return v1beta1.ReasonRollingUpdate
	default:
		return v1beta1.ReasonScaling
	}
}

// beginning reports whether every status so far was about a new revision.
func (f progressing) beginning() bool {
	return f.reason == "" || f.reason == v1beta1.ReasonNewRevision || f.reason == v1beta1.ReasonInvalidTemplate || f.previous.UpdateRevision != f.snap.Update.Name
}

// message says in numbers how far the set has come, and what it waits for.
func (f progressing) message(v verdict, b blocker) string {
	s := f.headline(v) + f.lostRevision() + f.unheard()
	switch {
	case b.text != "":
		s += "; " + b.text
	case f.settled:
		s += f.mismatch()
	}
	return s + f.passed()
}

// passed names the pods that went on without a lifecycle hook, as long as they show that.
func (f progressing) passed() string {
	var passed snapshot.Passed
	first, more := "", 0
	for r := range f.snap.Unsteady() {
		switch {
		case r.Passed.Hook == "":
		case first == "":
			first, passed = r.Pod.Name, r.Passed
		default:
			more++
		}
	}
	switch {
	case first == "":
		return ""
	case more > 0:
		first += fmt.Sprintf(" and %d more", more)
	}
	passed.Why = "" // it may no longer be so
	return "; " + first + " went on " + passed.String()
}

// lostRevision names the ControllerRevision of the current revision if no pod can be made from it.
func (f progressing) lostRevision() string {
	if f.in.Invalid != "" || !f.snap.Rolling() || f.snap.Current.Template != nil {
		return ""
	}
	return "; ControllerRevision " + f.snap.Current.Name + " is missing or was edited, and no pod can be made from it"
}

// unheard says why a rollout continues that a user aborts.
func (f progressing) unheard() string {
	switch {
	case !f.in.Aborts || f.snap.Rejected || f.in.Invalid != "" || !f.snap.Rolling():
		return ""
	case f.snap.Unproven:
		return "; the rollout cannot be aborted, because no other revision was ever complete"
	case f.snap.Current.Template == nil:
		return "; the rollout cannot be aborted: change the template instead"
	default:
		return ""
	}
}

// mismatch returns which claim differs from its template, if there is nothing else to report.
func (f progressing) mismatch() string {
	for _, c := range f.in.VolumeClaims {
		if c.Message != "" {
			return "; claim " + c.Message
		}
	}
	return ""
}

func (f progressing) headline(v verdict) string {
	replicas := f.snap.Limits.Replicas
	switch v.reason {
	case v1beta1.ReasonInvalidSpec:
		return "the spec is invalid and nothing is done: " + f.in.Invalid
	case v1beta1.ReasonDeleting:
		return fmt.Sprintf("the set is being deleted; %d pods are left", f.left())
	case v1beta1.ReasonNoReplicas:
		return "scaled to 0" + f.rejected()
	case v1beta1.ReasonRolledBack:
		back := f.members(f.snap.Current.Name).active
		return strings.TrimPrefix(f.rejected(), "; ") + "; " + share(back, replicas, "at revision "+f.snap.Current.Name)
	case v1beta1.ReasonProgressDeadlineExceeded:
		deadline, _ := f.snap.ProgressDeadline()
		return fmt.Sprintf("no progress for %d seconds%s; %s", int64(deadline.Seconds()), f.nowhereToGo(), f.numbers())
	case v1beta1.ReasonPaused:
		return "paused; " + f.numbers()
	case v1beta1.ReasonPartitionReached:
		if f.revision(f.snap.Update.Name).active > f.want[f.snap.Update.Name] {
			return f.numbers() // the current revision is lost, and no pod can go back to it
		}
		return f.numbers() + ", as the partition wants it"
	default:
		return f.numbers()
	}
}

// rejected returns the verdict on the update revision as a clause; empty if there is none.
func (f progressing) rejected() string {
	if !f.snap.Rejected {
		return ""
	}
	return fmt.Sprintf("; revision %s %s and is rolled back", f.snap.Update.Name, revision.Sentence(f.snap.Verdict))
}

// left returns how many pods the set has, in whatever state.
func (f progressing) left() int {
	n := f.total.active
	for _, gone := range f.gone {
		n += gone
	}
	return n
}

// nowhereToGo returns why a set is not rolled back although it asks for that.
func (f progressing) nowhereToGo() string {
	switch {
	case f.snap.Spec.UpdateStrategy.RollingUpdate.OnDeadlineExceeded != v1beta1.RollbackOnDeadline, f.snap.Rejected:
		return ""
	case f.canRollBack() && f.failed():
		return ""
	case f.canRollBack():
		return ", and nothing is rolled back, because no pod of revision " + f.snap.Update.Name + " failed"
	case f.snap.Unproven:
		return ", and no revision was ever complete that the pods could go back to"
	case !f.snap.Rolling():
		return ", and there is no other revision that the pods could go back to"
	default:
		return ", and the pods cannot go back"
	}
}

// numbers returns how many pods are updated, or once they are, how many are available.
func (f progressing) numbers() string {
	replicas := f.snap.Limits.Replicas
	update, expected := f.members(f.snap.Update.Name), f.want[f.snap.Update.Name]
	current, stay := f.members(f.snap.Current.Name), f.want[f.snap.Current.Name]
	rolling := f.snap.Rolling() || f.outdated > 0
	switch {
	case f.atWork():
		return stepper(f).stepNumbers()
	case f.settled && f.outdated == 0:
		return share(f.serving, replicas, "updated and available")
	case f.outdated > 0 && f.moving == 0: // the others stay where they are
		return share(update.active, max(replicas, f.total.active), "updated")
	case rolling && update.active > expected && current.active < stay: // the partition was raised
		return share(current.active, stay, "moved back")
	case f.total.active > replicas && f.moving == 0:
		return fmt.Sprintf("%d pods, %d wanted", f.total.active, replicas)
	case rolling && update.active != expected:
		return share(update.active, expected, "updated")
	case rolling:
		return share(update.active, expected, "updated") + fmt.Sprintf(", %d available", update.available)
	default:
		return share(f.serving, replicas, "available")
	}
}

// share formats how many of the wanted pods are in a state. There can be more than are wanted, because of surge and of pods
// that are yet to be deleted.
func share(pods, wanted int, state string) string {
	if pods > wanted {
		return fmt.Sprintf("%d pods %s, %d wanted", pods, state, wanted)
	}
	return fmt.Sprintf("%d of %d pods %s", pods, wanted, state)
}
