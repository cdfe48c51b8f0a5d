// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import "github.com/prometheus/prometheus/promql/parser"

// filters reports whether every sample that a query returns has passed a comparison in it, as in "errors:ratio < 0.01". Then
// the samples have their own values, and 0 is a value like others. In "errors:ratio < bool 0.01", or "up", 0 means no. It is
// false for a query that the parser does not know, because a server may be newer.
func filters(query string) bool {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	return err == nil && passes(expression)
}

// passes reports whether an expression returns only samples that passed a comparison. The samples of "and" and "unless" come
// from the left side, those of "or" from either.
func passes(expression parser.Expr) bool {
	switch e := expression.(type) {
	case *parser.ParenExpr:
		return passes(e.Expr)
	case *parser.BinaryExpr:
		switch e.Op {
		case parser.LOR:
			return passes(e.LHS) && passes(e.RHS)
		case parser.LAND, parser.LUNLESS:
			return passes(e.LHS)
		default:
			return e.Op.IsComparisonOperator() && !e.ReturnBool
		}
	}
	return false
}
