// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package audit reads an API server's audit log of a user's requests.
package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Log is an audit log from some point on.
type Log struct {
	path   string
	offset int64
}

// From returns the log in a file, from its present end on.
func From(path string) (Log, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Log{}, fmt.Errorf("read audit log: %w", err)
	}
	return Log{path: path, offset: info.Size()}, nil
}

// Whole returns the log in a file, from its beginning on.
func Whole(path string) Log { return Log{path: path} }

// Request is one that was answered.
type Request struct {
	// Verb is that of authorization, so that list and get differ; what only asks whether a write would succeed has
	// " (dry run)" after it. Resource has the subresource after a slash.
	Verb, Resource, Namespace, Name string
	Code                            int32
	At                              time.Time
}

// String makes failures readable.
func (r Request) String() string {
	return fmt.Sprintf("%s %s %s %s/%s: %d", r.At.Format("15:04:05.000"), r.Verb, r.Resource, r.Namespace, r.Name, r.Code)
}

// Requests returns the user's requests without watches.
func (l Log) Requests(user string) ([]Request, error) {
	var list []Request
	err := l.read(user, func(e *auditv1.Event) {
		if e.Stage == auditv1.StageResponseComplete && e.Verb != "watch" {
			list = append(list, requestOf(e))
		}
	})
	return list, err
}

// Write is a request to write that succeeded.
type Write struct {
	Request

	// Sent is what was sent: an object, a patch, or options. Stored is the object that the API server answered with.
	Sent, Stored []byte
}

// Writes returns the user's writes in a namespace, in the order of their answers. It needs a log with what was sent and answered.
func (l Log) Writes(user, namespace string) ([]Write, error) {
	var list []Write
	err := l.read(user, func(e *auditv1.Event) {
		r := requestOf(e)
		if e.Stage == auditv1.StageResponseComplete && e.RequestObject != nil && e.ResponseObject != nil && r.Namespace == namespace && r.Code < http.StatusMultipleChoices && !strings.HasSuffix(r.Verb, dryRun) {
			list = append(list, Write{Request: r, Sent: e.RequestObject.Raw, Stored: e.ResponseObject.Raw})
		}
	})
	return list, err
}

// dryRun marks the verb of a request that only asks whether a write would succeed.
const dryRun = " (dry run)"

// Rights returns the user's requests as "verb group/resource", and whether each was ever forbidden.
func (l Log) Rights(user string) (map[string]bool, error) {
	forbidden := map[string]bool{}
	err := l.read(user, func(e *auditv1.Event) {
		right := e.Verb + " " + e.ObjectRef.APIGroup + "/" + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			right += "/" + e.ObjectRef.Subresource
		}
		forbidden[right] = forbidden[right] || e.Annotations["authorization.k8s.io/decision"] == "forbid"
	})
	return forbidden, err
}

// beginning is how each line of the log begins. If the API server is killed while it writes a line, the next one follows in the same line.
const beginning = `{"kind":"Event","apiVersion":"audit.k8s.io/`

// read reads the entries about the user's requests for objects.
func (l Log) read(user string, note func(*auditv1.Event)) error {
	file, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	if l.offset > 0 { // a line that was half written then belongs to what was before
		if _, err := file.Seek(l.offset-1, io.SeekStart); err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		if _, err := lines.ReadBytes('\n'); err != nil {
			return ignoreEnd(err)
		}
	}
	mark := []byte(`"username":"` + user + `"`)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return ignoreEnd(err) // the API server may be writing the last line
		}
		line = line[max(0, bytes.LastIndex(line, []byte(beginning))):]
		if !bytes.Contains(line, mark) {
			continue // most lines belong to other users; decoding them all takes long
		}
		event := &auditv1.Event{}
		if err := json.Unmarshal(line, event); err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		if event.ObjectRef != nil {
			note(event)
		}
	}
}

// ignoreEnd returns no error at the end of the log.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("read audit log: %w", err)
}

func requestOf(e *auditv1.Event) Request {
	r := Request{
		Verb: e.Verb, Resource: e.ObjectRef.Resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		At: e.RequestReceivedTimestamp.Time,
	}
	if e.ObjectRef.Subresource != "" {
		r.Resource += "/" + e.ObjectRef.Subresource
	}
	if _, query, _ := strings.Cut(e.RequestURI, "?"); query != "" {
		if values, err := url.ParseQuery(query); err == nil && values.Get("dryRun") != "" {
			r.Verb += dryRun
		}
	}
	if e.ResponseStatus != nil {
		r.Code = e.ResponseStatus.Code
	}
	return r
}

// Count counts requests by verb and resource.
func Count(requests []Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Verb+" "+r.Resource]++
	}
	return counts
}
