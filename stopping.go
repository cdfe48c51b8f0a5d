// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/go-logr/logr"
)

// leaseLost is the error of controller-runtime's manager when it no longer holds its lease.
const leaseLost = "leader election lost"

// stopSink leaves out of a log the one error that every clean stop has: a manager that was asked to end gives its lease
// back, and reports that it lost it. A lease that is lost without that is an error, and logged.
type stopSink struct {
	logr.LogSink
	stopping func() bool
}

// quietStop returns a logger that does not call the end of ctx an error.
func quietStop(ctx context.Context, log logr.Logger) logr.Logger {
	return log.WithSink(stopSink{LogSink: log.GetSink(), stopping: func() bool { return ctx.Err() != nil }})
}

// Error logs an error, unless it is the one of a clean stop.
func (s stopSink) Error(err error, message string, keysAndValues ...any) {
	if err != nil && err.Error() == leaseLost && s.stopping() {
		return
	}
	s.LogSink.Error(err, message, keysAndValues...)
}

// WithName keeps the rule for loggers made from this one.
func (s stopSink) WithName(name string) logr.LogSink {
	s.LogSink = s.LogSink.WithName(name)
	return s
}

// WithValues keeps the rule for loggers made from this one.
func (s stopSink) WithValues(keysAndValues ...any) logr.LogSink {
	s.LogSink = s.LogSink.WithValues(keysAndValues...)
	return s
}
