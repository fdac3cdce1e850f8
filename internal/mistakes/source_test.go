package mistakes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A decl is a declaration at the top of a source: a function, an import, or others.
type decl struct {
	key     string // a function: its signature; else the whole text
	text    string
	imports bool
	fn      *function
}

// A function is what a call in its place needs to know.
type function struct {
	before, name, after string // the text, in three parts
	receiver            string
	args                []string // one that has no name is empty
	variadic, returns   bool
	body                int // offset of what comes first in it
}

// parse returns the declarations of a source.
func parse(text []byte) (all []decl, pkg *ast.Ident, err error) {
	tree, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	between := func(from, to token.Pos) string { return string(text[from-1 : to-1]) }
	for _, d := range tree.Decls {
		whole := between(d.Pos(), d.End())
		switch d := d.(type) {
		case *ast.FuncDecl:
			fn := functionOf(d)
			fn.before, fn.after = between(d.Pos(), d.Name.Pos()), between(d.Name.End(), d.End())
			all = append(all, decl{key: between(d.Pos(), d.Body.Pos()), text: whole, fn: fn})
		case *ast.GenDecl:
			if d.Tok != token.IMPORT {
				all = append(all, decl{key: whole, text: whole})
				continue
			}
			for _, s := range d.Specs {
				spec := "import " + between(s.Pos(), s.End())
				all = append(all, decl{key: spec, text: spec, imports: true})
			}
		}
	}
	return all, tree.Name, nil
}

func functionOf(d *ast.FuncDecl) *function {
	f := &function{name: d.Name.Name, returns: d.Type.Results.NumFields() > 0, body: int(d.Body.Lbrace)}
	if d.Recv != nil {
		f.receiver = strings.Join(names(d.Recv), "") + "."
	}
	f.args = names(d.Type.Params)
	if list := d.Type.Params.List; len(list) > 0 {
		_, f.variadic = list[len(list)-1].Type.(*ast.Ellipsis)
	}
	return f
}

// names are those of parameters.
func names(list *ast.FieldList) (all []string) {
	for _, field := range list.List {
		if len(field.Names) == 0 {
			all = append(all, "")
		}
		for _, n := range field.Names {
			all = append(all, strings.Trim(n.Name, "_"))
		}
	}
	return all
}

// call is a statement that calls the twin of this name with the arguments of the function, and returns;
// it is empty for a function whose arguments cannot be passed on.
func (f *function) call(twin string) string {
	if f.receiver == "." || slices.Contains(f.args, "") {
		return ""
	}
	args := strings.Join(f.args, ", ")
	if f.variadic {
		args += "..."
	}
	call := f.receiver + twin + "(" + args + ")"
	if f.returns {
		return "return " + call
	}
	return call + "; return"
}

// find returns the declaration with a key, or nil.
func find(all []decl, key string) *decl {
	i := slices.IndexFunc(all, func(d decl) bool { return d.key == key })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// changes are the declarations that are new, and the functions whose bodies changed. ok is false if
// something else changed.
func changes(was, is []decl) (all []decl, ok bool) {
	for _, d := range is {
		before := find(was, d.key)
		if before != nil && before.text == d.text {
			continue
		}
		if before != nil && before.fn.call("") == "" {
			return nil, false
		}
		all = append(all, d)
	}
	gone := func(d decl) bool { return !d.imports && find(is, d.key) == nil }
	return all, !slices.ContainsFunc(was, gone)
}
