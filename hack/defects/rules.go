// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// visit writes the mutants of one node: a condition is always or never true, a bound is off by one, a sum is a difference, an
// order is reversed, a number is one more, a statement is left out, a loop does nothing, and a value is its type's zero.
func (c *changer) visit(at *astutil.Cursor) bool {
	switch n := at.Node().(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.FuncDecl:
		c.in = n.Name.Name
	case *ast.RangeStmt:
		c.loop(n.Body)
	case *ast.ForStmt:
		if n.Cond != nil {
			c.loop(n.Body)
		}
	case *ast.ReturnStmt:
		for _, result := range n.Results {
			c.zero(result)
		}
	case *ast.KeyValueExpr:
		c.zero(n.Value)
	case ast.Stmt:
		if at.Index() >= 0 {
			c.leftOut(n)
		}
	case ast.Expr:
		return c.expression(at, n)
	}
	return true
}

// leftOut lets a statement be left out, if what stands behind it still compiles.
func (c *changer) leftOut(n ast.Stmt) {
	switch n := n.(type) {
	case *ast.ExprStmt:
		if strings.HasPrefix(c.text(n), "panic(") {
			return
		}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return
		}
	case *ast.IncDecStmt:
	case *ast.BranchStmt:
		if n.Tok != token.CONTINUE && n.Tok != token.BREAK {
			return
		}
	default:
		return
	}
	c.around(n, fmt.Sprintf("if !mutant_.On(%d) { ", c.mutant(n, "nothing")), " }")
}

// loop lets a loop do nothing.
func (c *changer) loop(body *ast.BlockStmt) {
	if len(body.List) > 0 {
		first := body.List[0]
		c.at(first.Pos()).begins += fmt.Sprintf("if mutant_.On(%d) { break }; ", c.mutant(first, "break"))
	}
}

// zero lets a value be the zero of its type.
func (c *changer) zero(n ast.Expr) {
	t := c.info.Types[n]
	if _, several := t.Type.(*types.Tuple); !t.IsValue() || t.Value != nil || t.IsNil() || several || isBool(t.Type) {
		return
	}
	if literal, ok := n.(*ast.CompositeLit); ok && (len(literal.Elts) == 0 || literal.Type == nil) {
		return
	}
	c.around(n, fmt.Sprintf("mutant_.Zero(%d, ", c.mutant(n, "zero")), ")")
}

// expression writes the mutants of an expression, and reports whether there may be others inside.
func (c *changer) expression(at *astutil.Cursor, n ast.Expr) bool {
	switch at.Name() {
	case "Sel", "Key", "Lhs", "Type":
		return at.Name() == "Lhs" && isPath(n)
	}
	switch parent := at.Parent().(type) {
	case *ast.ExprStmt: // what it returns is not used
		if call, ok := n.(*ast.CallExpr); ok {
			c.call(call)
		}
		return true
	case *ast.UnaryExpr:
		if parent.Op == token.AND {
			return true
		}
	case *ast.IncDecStmt:
		return false
	case *ast.RangeStmt:
		if at.Name() == "Value" {
			return false
		}
	}
	t := c.info.Types[n]
	switch {
	case t.IsType(), t.IsBuiltin():
		return false
	case t.Value != nil:
		c.constant(n, t.Type)
		return false
	case isBool(t.Type):
		c.condition(n)
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		c.arithmetic(n, t.Type)
	case *ast.CallExpr:
		c.call(n)
	}
	return true
}

// isPath reports whether the parts of what is assigned to are expressions of their own.
func isPath(n ast.Expr) bool {
	_, ok := n.(*ast.IndexExpr)
	return ok
}

func isBool(t types.Type) bool {
	return t == types.Typ[types.Bool] || t == types.Typ[types.UntypedBool]
}

func isInteger(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}

// constant lets a number be one more.
func (c *changer) constant(n ast.Expr, t types.Type) {
	literal, ok := n.(*ast.BasicLit)
	if basic, plain := t.(*types.Basic); !ok || literal.Kind != token.INT || !plain || basic.Info()&types.IsUntyped != 0 || !isInteger(t) {
		return
	}
	c.around(n, fmt.Sprintf("mutant_.Next[%s](%d, ", t, c.mutant(n, "one more")), ")")
}

// bounds returns the comparisons that are off by one.
func bounds() map[token.Token]token.Token {
	return map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}
}

// condition lets what is true or false always be so. Of several that are joined, each is changed by itself, and only what they
// cannot be together is left.
func (c *changer) condition(n ast.Expr) {
	switch n := n.(type) {
	case *ast.ParenExpr:
		return
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			return
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND {
			c.around(n, fmt.Sprintf("(mutant_.On(%d) || (", c.mutant(n, "true")), "))")
			return
		}
		if n.Op == token.LOR {
			c.around(n, fmt.Sprintf("(!mutant_.On(%d) && (", c.mutant(n, "false")), "))")
			return
		}
	}
	c.around(n, fmt.Sprintf("(mutant_.On(%d) || !mutant_.On(%d) && (", c.mutant(n, "true"), c.mutant(n, "false")), "))")
	binary, ok := n.(*ast.BinaryExpr)
	if !ok || bounds()[binary.Op] == 0 {
		return
	}
	other := fmt.Sprintf("%s %s %s", c.text(binary.X), bounds()[binary.Op], c.text(binary.Y))
	if strings.Contains(string(c.source[int(n.Pos())-c.base:int(n.End())-c.base]), "\n") {
		return
	}
	number := c.mutant(n, other)
	c.around(n, fmt.Sprintf("(mutant_.On(%d) && (%s) || !mutant_.On(%d) && (", number, other, number), "))")
}

// arithmetic lets a sum be a difference, and a difference a sum.
func (c *changer) arithmetic(n *ast.BinaryExpr, t types.Type) {
	name := map[token.Token]string{token.ADD: "Sum", token.SUB: "Difference"}[n.Op]
	if name == "" || !isInteger(t) {
		return
	}
	other := map[token.Token]string{token.ADD: "-", token.SUB: "+"}[n.Op]
	c.around(n, fmt.Sprintf("mutant_.%s(%d, ", name, c.mutant(n, other)), ")")
	op := c.at(n.OpPos)
	op.instead, op.length = ",", 1
}

// call lets the smallest be the largest, an order be reversed, and the first of several choices be left out.
func (c *changer) call(n *ast.CallExpr) {
	name, now := "Least", "max"
	switch c.text(n.Fun) {
	case "min":
	case "max":
		name, now = "Most", "min"
	case "cmp.Compare", "strings.Compare":
		c.around(n, fmt.Sprintf("mutant_.Reversed(%d, ", c.mutant(n, "reversed")), ")")
		return
	case "cmp.Or":
		c.zero(n.Args[0])
		return
	default:
		return
	}
	fun := c.at(n.Fun.Pos())
	fun.instead, fun.length = fmt.Sprintf("mutant_.%s(%d, ", name, c.mutant(n, now)), int(n.Lparen+1-n.Fun.Pos())
}
