// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// mutated returns the folders whose code is changed, with those below them: the planners and the model.
func mutated() []string {
	return []string{"internal/model", "internal/plan", "internal/scale", "internal/update", "internal/claims", "internal/lifecycle"}
}

// mutantPackage is the folder of the package that chooses the mutant. Only the overlay has it.
const mutantPackage = "internal/mutant"

//go:embed mutant.go.txt
var mutantSource string

// mutant is one change of one expression or statement, made by a rule and not by a person.
type mutant struct {
	// number chooses the mutant when the tests run.
	number int
	file   string
	line   int
	// in is the function, was the code in it, and now what it becomes. They name the mutant whatever moves around it.
	in, was, now string
	// nth is 2 for the second mutant of a function that changes the same code into the same, and so on.
	nth int
}

// pkg returns the folder of the package that has the mutant.
func (m mutant) pkg() string { return filepath.Dir(m.file) }

// key names the mutant.
func (m mutant) key() string {
	key := fmt.Sprintf("%s %s: %s => %s", m.file, m.in, m.was, m.now)
	if m.nth > 1 {
		key += fmt.Sprintf(" #%d", m.nth)
	}
	return key
}

// mutator writes all mutants of a module into one source. Each changed place asks which mutant is in force, so that the tests
// of all mutants are compiled once.
type mutator struct {
	root string
	fset *token.FileSet
	from types.Importer
	all  []mutant
	// keys counts the mutants by their keys without a number.
	keys map[string]int
	// overlaid has the contents of the files with mutants, by their paths.
	overlaid map[string]string
}

// mutate returns the mutants of all folders.
func mutate(root string) (*mutator, error) {
	find, err := exports(root)
	if err != nil {
		return nil, err
	}
	m := &mutator{root: root, fset: token.NewFileSet(), keys: map[string]int{}, overlaid: map[string]string{filepath.Join(root, mutantPackage, "mutant.go"): mutantSource}}
	m.from = importer.ForCompiler(m.fset, "gc", find)
	for _, top := range mutated() {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.IsDir() || strings.HasSuffix(path, "test") {
				return err
			}
			return m.folder(path)
		})
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// exports finds the export data of the packages that the module needs.
func exports(root string) (importer.Lookup, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./internal/...")
	list.Env = append(os.Environ(), "CGO_ENABLED=0") // as most of the module is built already, also where the race detector needs cgo
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		files[p.ImportPath] = p.Export
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }, nil
}

// folder mutates the package in a folder, if there is one.
func (m *mutator) folder(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	var files []*ast.File
	sources := map[*ast.File][]byte{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(m.fset, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files, sources[file] = append(files, file), source
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: m.from}
	if _, err := config.Check(dir, m.fset, files, info); err != nil {
		return err
	}
	for _, file := range files {
		path := m.fset.Position(file.Pos()).Filename
		name, err := filepath.Rel(m.root, path)
		if err != nil {
			return err
		}
		c := &changer{mutator: m, info: info, file: name, base: m.fset.File(file.Pos()).Base(), source: sources[file], edits: map[int]*edit{}}
		astutil.Apply(file, c.visit, nil)
		m.overlaid[path] = c.changed(file)
	}
	return nil
}

// edit is the text to write at an offset: the ends of the mutants that stop there, the beginnings of those that start there, and
// the replacement of so many bytes.
type edit struct {
	ends, begins, instead string
	length                int
}

// changer writes the mutants of one file. No line moves.
type changer struct {
	*mutator
	info   *types.Info
	file   string
	base   int
	source []byte
	edits  map[int]*edit
	// in is the function that is visited.
	in string
}

// changed returns the source with all edits.
func (c *changer) changed(file *ast.File) string {
	c.at(file.Name.End()).ends = fmt.Sprintf("; import mutant_ %q", "rollset.dev/rollset/"+mutantPackage)
	used := false
	var b strings.Builder
	for i := 0; i < len(c.source); i++ {
		if e := c.edits[i]; e != nil {
			b.WriteString(e.ends + e.begins + e.instead)
			used = used || e.begins != "" || e.instead != ""
			if e.length > 0 {
				i += e.length - 1
				continue
			}
		}
		b.WriteByte(c.source[i])
	}
	if !used {
		return string(c.source)
	}
	return b.String()
}

// at returns the edit at a position.
func (c *changer) at(pos token.Pos) *edit {
	i := int(pos) - c.base
	if c.edits[i] == nil {
		c.edits[i] = &edit{}
	}
	return c.edits[i]
}

// around writes text around a node. What is written around a node later is inside of it.
func (c *changer) around(n ast.Node, before, behind string) {
	c.at(n.Pos()).begins += before
	e := c.at(n.End())
	e.ends = behind + e.ends
}

// text returns the source of a node in one line.
func (c *changer) text(n ast.Node) string {
	return strings.Join(strings.Fields(string(c.source[int(n.Pos())-c.base:int(n.End())-c.base])), " ")
}

// mutant notes one change and returns its number.
func (c *changer) mutant(n ast.Node, now string) int {
	m := mutant{number: len(c.all) + 1, file: c.file, line: c.fset.Position(n.Pos()).Line, in: c.in, was: c.text(n), now: now}
	c.keys[m.key()]++
	m.nth = c.keys[m.key()]
	c.all = append(c.all, m)
	return m.number
}
