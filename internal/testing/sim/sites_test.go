// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// writing are the methods of client.Writer and client.SubResourceWriter.
var writing = []string{"Create", "Update", "Patch", "Delete", "Apply", "DeleteAllOf"}

// writingPackages are the packages that write, as folders of internal.
var writingPackages = []string{"controller", "controller/revisions", "podcontrol"}

// siteBook notes which lines of the controller were interrupted, and by which faults.
type siteBook struct {
	mu           sync.Mutex
	sites, drawn map[string]map[apiserver.Fault]bool
	plans        int
}

// site returns the line of the controller that writes now. It is called from within the write.
func site() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		dir, file := filepath.Split(frame.File)
		for _, pkg := range writingPackages {
			if strings.HasSuffix(dir, "/internal/"+pkg+"/") {
				return fmt.Sprintf("%s/%s:%d", pkg, file, frame.Line)
			}
		}
		if !more {
			apiserver.Unmodeled("a write from nowhere")
		}
	}
}

// note notes that a line was interrupted.
func (b *siteBook) note(site string, fault apiserver.Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sites = with(b.sites, site, fault)
}

// draws reports whether a crash at a line is played independently of the sample: the first one is.
func (b *siteBook) draws(site string, p crashPoint) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !p.fault.Crashes() || p.late != "" || b.drawn[site][p.fault] {
		return false
	}
	b.drawn = with(b.drawn, site, p.fault)
	return true
}

func with(book map[string]map[apiserver.Fault]bool, site string, fault apiserver.Fault) map[string]map[apiserver.Fault]bool {
	if book == nil {
		book = map[string]map[apiserver.Fault]bool{}
	}
	if book[site] == nil {
		book[site] = map[apiserver.Fault]bool{}
	}
	book[site][fault] = true
	return book
}

// count notes that one plan was played to its end.
func (b *siteBook) count() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plans++
}

// compare fails for every line that writes and was not interrupted both before and after.
func (b *siteBook) compare(t *testing.T) {
	written := callSites(t)
	for _, site := range written {
		for _, fault := range []apiserver.Fault{apiserver.CrashBefore, apiserver.CrashAfter} {
			if !b.sites[site][fault] {
				t.Errorf("%s was never interrupted by a %s", site, fault)
			}
		}
	}
	for site := range b.sites {
		if !slices.Contains(written, site) {
			t.Errorf("%s writes, and is not among the calls found in the source", site)
		}
	}
	t.Logf("%d plans, %d places that write", b.plans, len(written))
}

// callSites returns all lines of the controller that call a method by which a client writes.
func callSites(t *testing.T) []string {
	t.Helper()
	var sites []string
	for _, pkg := range writingPackages {
		paths, err := filepath.Glob("../../" + pkg + "/*.go")
		if err != nil || len(paths) == 0 {
			t.Fatalf("no sources of %s: %v", pkg, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && writes(call) {
					sites = append(sites, fmt.Sprintf("%s/%s:%d", pkg, filepath.Base(path), files.Position(call.Pos()).Line))
				}
				return true
			})
		}
	}
	return sites
}

// writes reports whether a call is one of a method by which clients write. Plans are applied, and events handled, by methods
// of the same names; those belong to no client.
func writes(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(writing, method.Sel.Name) || len(call.Args) == 0 {
		return false
	}
	ctx, ok := call.Args[0].(*ast.Ident)
	return ok && ctx.Name == "ctx" && writesWith(method.X)
}

// writesWith reports whether an expression is a client: r.Client, or the subresource of one.
func writesWith(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name == "Client"
	case *ast.CallExpr:
		sub, ok := x.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains([]string{"Status", "SubResource"}, sub.Sel.Name)
	default:
		return false
	}
}
