package main

import (
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	found, err := find("x.go", []byte(`package x

import (
	"fmt"

	"x/instant"
)

func f(a, b int, ok bool) int {
	if a < b && !ok {
		fmt.Println(max(a, b))
		fmt.Println(instant.Later(a, b))
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
		"x.go:10: a < b && !ok -> true || (a < b && !ok)",
		"x.go:10: a < b && !ok -> false && (a < b && !ok)",
		"x.go:10: && -> ||",
		"x.go:10: a < b && !ok -> a < b",
		"x.go:10: a < b && !ok -> !ok",
		"x.go:10: < -> <=",
		"x.go:10: < -> >",
		"x.go:10: ! -> (left out)",
		"x.go:11: fmt.Println(max(a, b)) -> (left out)",
		"x.go:11: max(a, b) -> a",
		"x.go:11: max(a, b) -> b",
		"x.go:12: fmt.Println(instant.Later(a, b)) -> (left out)",
		"x.go:12: instant.Later(a, b) -> a",
		"x.go:12: instant.Later(a, b) -> b",
		"x.go:13: a = 7 -> (left out)",
		"x.go:13: 7 -> (7+1)",
		"x.go:15: - -> +",
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
