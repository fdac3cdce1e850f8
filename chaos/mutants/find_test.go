package main

import (
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	found, err := find("x.go", []byte(`package x

import "fmt"

func f(a, b int, ok bool) int {
	if a < b && !ok {
		fmt.Println(max(a, b))
		a = 7
	}
	return a - b
}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.String())
	}
	want := []string{
		"x.go:6: a < b && !ok -> true || (a < b && !ok)",
		"x.go:6: a < b && !ok -> false && (a < b && !ok)",
		"x.go:6: && -> ||",
		"x.go:6: a < b && !ok -> a < b",
		"x.go:6: a < b && !ok -> !ok",
		"x.go:6: < -> <=",
		"x.go:6: < -> >",
		"x.go:6: ! -> (left out)",
		"x.go:7: fmt.Println(max(a, b)) -> (left out)",
		"x.go:7: max(a, b) -> a",
		"x.go:7: max(a, b) -> b",
		"x.go:8: a = 7 -> (left out)",
		"x.go:8: 7 -> (7+1)",
		"x.go:10: - -> +",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestFindLeavesOutOtherSystems(t *testing.T) {
	for name, head := range map[string]string{"x_windows.go": "", "x.go": "//go:build darwin\n"} {
		found, err := find(name, []byte(head+"\npackage x\n\nfunc f(a int) bool { return a < 1 }\n"))
		if err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}
