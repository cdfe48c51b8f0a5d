// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// shown is how many domains a message lists.
const shown = 8

// domainWords says what a set waits for in its failure domains.
type domainWords struct{ *domains }

// explain returns what a pod waits for that another domain holds, and how far each domain is.
func (d domainWords) explain(m desired.Candidate) string {
	own := d.of(m.Replica)
	return fmt.Sprintf("%s waits for %s; %s", own.In(d.spec.LabelKey), d.cause(d.obstacle(m, own)), d.progress())
}

// cause returns an obstacle in words.
func (d domainWords) cause(o obstacle) string {
	switch o.kind {
	case turn:
		return o.other.In(d.spec.LabelKey)
	case unavailable:
		return fmt.Sprintf("%s in %s, which %s", o.other.waits.pod, o.other.In(d.spec.LabelKey), o.other.waits.why)
	case missing:
		return fmt.Sprintf("%s, which %s", d.lost.pod, d.lost.why)
	case soak:
		return "soakSeconds to pass until " + clockTime(o.began, d.soak())
	case nothing:
	}
	return "nothing"
}

// lack returns why a domain waits for one of its pods.
func lack(r *snapshot.Replica) string {
	switch {
	case r.Terminating:
		return "is terminating"
	case r.Finished:
		return "has ended"
	case r.Node == "":
		return "has no node yet"
	case !r.Available:
		return "is not available"
	default:
		return "is being changed in place"
	}
}

// progress returns how far each domain is.
func (d domainWords) progress() string {
	var parts []string
	unlabeled := true
	for _, own := range d.inTurn {
		unlabeled = unlabeled && own.Pod != ""
		switch name := own.In(d.spec.LabelKey); {
		case len(d.excess) == 0 && own.left > 0:
			parts = append(parts, fmt.Sprintf("%s: %d to replace", name, own.left))
		case own.moved+own.left > 0 && len(d.excess) > 0:
			parts = append(parts, fmt.Sprintf("%s: %d of %d pods moved", name, own.moved, own.moved+own.left))
		}
	}
	if more := len(parts) - shown; more > 0 {
		parts = append(slices.Clip(parts[:shown]), fmt.Sprintf("and %d more", more))
	}
	text := strings.Join(parts, ", ")
	if unlabeled {
		text += "; no pod has the label " + d.spec.LabelKey + ", so each is a domain of its own"
	}
	return text
}

// rest records in a plan when time alone lets a pod wait no longer.
func (d domainWords) rest(m desired.Candidate, p *action.Plan) {
	if o := d.obstacle(m, d.of(m.Replica)); o.kind == soak {
		p.Soak(o.began.Add(d.soak()), d.snap.Now)
	}
}

// clockTime returns when a soak ends, to the second: with its date unless it ends on the day on which it began.
func clockTime(began time.Time, lasts time.Duration) string {
	began = began.UTC()
	end := began.Add(lasts)
	if end.Truncate(24 * time.Hour).Equal(began.Truncate(24 * time.Hour)) {
		return end.Format("15:04:05Z")
	}
	return end.Format(time.RFC3339)
}
