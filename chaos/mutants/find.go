package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// A mutant is one mistake: a stretch of a source file, and what stands there
// instead.
type mutant struct {
	target   int    // index in targets
	file     string // relative to the module's root
	line     int
	from, to int // offsets
	old, new string
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s -> %s", m.file, m.line, short(m.old), short(m.new))
}

// short shows a piece of source on one line.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if s == "" {
		return "(left out)"
	}
	if len(s) > 90 {
		s = s[:90] + "..."
	}
	return s
}

// findAll returns every mistake that can be planted, in the order of the source.
func findAll(root string) (all []mutant, err error) {
	for i, t := range targets {
		files, err := filepath.Glob(filepath.Join(root, t.dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			found, err := find(name, source)
			if err != nil {
				return nil, err
			}
			for _, m := range found {
				m.target = i
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// find returns the mistakes that can be planted in one file. Files for other
// systems are left out: their tests do not run here.
func find(name string, source []byte) ([]mutant, error) {
	if foreign(name, source) {
		return nil, nil
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	f := &finder{name: name, source: source, files: files}
	ast.Inspect(tree, f.visit)
	return f.found, nil
}

func foreign(name string, source []byte) bool {
	for _, system := range []string{"windows", "darwin", "other"} {
		if strings.Contains(filepath.Base(name), "_"+system) {
			return true
		}
	}
	head, _, _ := strings.Cut(string(source), "\npackage ")
	return strings.Contains(head, "//go:build") && !strings.Contains(head, "linux")
}

type finder struct {
	name   string
	source []byte
	files  *token.FileSet
	found  []mutant
}

// add notes that the source between two positions is replaced.
func (f *finder) add(from, to token.Pos, instead string) {
	a, b := f.files.Position(from), f.files.Position(to)
	f.found = append(f.found, mutant{file: f.name, line: a.Line, from: a.Offset, to: b.Offset,
		old: string(f.source[a.Offset:b.Offset]), new: instead})
}

// instead are operators that are taken for each other.
var instead = map[token.Token][]string{
	token.LSS: {"<=", ">"}, token.LEQ: {"<"}, token.GTR: {">=", "<"}, token.GEQ: {">"},
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"},
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.IMPORT
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n.Pos(), n.X.Pos(), "")
		}
	case *ast.IfStmt:
		f.add(n.Cond.Pos(), n.Cond.End(), "true || ("+f.text(n.Cond)+")")
		f.add(n.Cond.Pos(), n.Cond.End(), "false && ("+f.text(n.Cond)+")")
	case *ast.CallExpr:
		f.call(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.BasicLit:
		if n.Kind == token.INT && len(n.Value) < 5 {
			f.add(n.Pos(), n.End(), "("+n.Value+"+1)")
		}
	}
	return true
}

// binary swaps an operator, or leaves out one side of a condition.
func (f *finder) binary(n *ast.BinaryExpr) {
	for _, op := range instead[n.Op] {
		f.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op)
	}
	if n.Op == token.LAND || n.Op == token.LOR {
		f.add(n.Pos(), n.End(), f.text(n.X))
		f.add(n.Pos(), n.End(), f.text(n.Y))
	}
}

// call swaps functions that are taken for each other, and leaves out one of two
// bounds.
func (f *finder) call(n *ast.CallExpr) {
	if len(n.Args) != 2 {
		return
	}
	switch f.text(n.Fun) {
	case "min", "max", "instant.Later", "instant.Earlier":
		f.add(n.Pos(), n.End(), f.text(n.Args[0]))
		f.add(n.Pos(), n.End(), f.text(n.Args[1]))
	}
}

// statements leaves out one statement: a call, a defer, or an assignment to what
// exists already.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.DeferStmt, *ast.IncDecStmt:
			f.add(s.Pos(), s.End(), "")
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				f.add(s.Pos(), s.End(), "")
			}
		}
	}
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.files.Position(n.Pos()).Offset:f.files.Position(n.End()).Offset])
}
