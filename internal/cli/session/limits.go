// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// answerLimit is how long the API server may take to begin an answer, and to go on with it, unless --request-timeout says
// otherwise. A connection may be accepted by something that never answers.
const answerLimit = 30 * time.Second

// completionLimit is the same for the completion of a command line, for which a user waits with the hands on the keyboard.
const completionLimit = 5 * time.Second

// noAnswerError means that the API server accepted a connection, and did not answer in time.
type noAnswerError struct{ limit time.Duration }

// Error returns how long it was waited for.
func (e noAnswerError) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }

// Timeout implements net.Error.
func (noAnswerError) Timeout() bool { return true }

// Temporary implements net.Error.
func (noAnswerError) Temporary() bool { return true }

// impatient returns a configuration whose requests end when the answer makes no progress.
func (s *Session) impatient(config *rest.Config) *rest.Config { return s.limited(config, false) }

// forStreams returns a configuration for watches and logs: the answer must begin in time, and may then go on without end.
func (s *Session) forStreams(config *rest.Config) *rest.Config {
	streams := s.limited(config, true)
	streams.Timeout = 0
	return streams
}

func (s *Session) limited(config *rest.Config, streams bool) *rest.Config {
	config = rest.CopyConfig(config)
	limit := answerLimit
	if config.Timeout > 0 {
		limit = config.Timeout
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &limiter{next: next, clock: s.Clock, limit: limit, streams: streams}
	})
	return config
}

// limiter ends requests whose answer does not begin in time or, unless they are streams, makes no progress.
type limiter struct {
	next    http.RoundTripper
	clock   clock.Clock
	limit   time.Duration
	streams bool
}

// RoundTrip implements http.RoundTripper.
func (l *limiter) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := l.clock.NewTimer(l.limit)
	go func() {
		select {
		case <-timer.C():
			cancel(noAnswerError{l.limit})
		case <-ctx.Done():
		}
	}()
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		timer.Stop()
		err = because(ctx, err)
		cancel(nil)
		return nil, err
	}
	if l.streams {
		timer.Stop()
	}
	response.Body = &body{ReadCloser: response.Body, ctx: ctx, cancel: cancel, timer: timer, limiter: l}
	return response, nil
}

// because returns the error of a request, or that no answer came if that ended it.
func because(ctx context.Context, err error) error {
	if late, ok := errors.AsType[noAnswerError](context.Cause(ctx)); ok {
		return late
	}
	return err
}

// body is the body of an answer.
type body struct {
	io.ReadCloser

	ctx     context.Context //nolint:containedctx // it is the context of the request that the body belongs to
	cancel  context.CancelCauseFunc
	timer   clock.Timer
	limiter *limiter
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, because(b.ctx, err)
	}
	if n > 0 && !b.limiter.streams {
		b.timer.Reset(b.limiter.limit)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// Within returns a context that ends after a time; 0 is no limit.
func Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// Late returns the failure of a command, which is late if its time is over. What says what did not happen in time.
func Late(ctx context.Context, err error, what string) error {
	if _, ok := errors.AsType[*ExitError](err); ok || err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return &ExitError{Code: ExitTimeout, Err: errors.New(what)}
}
