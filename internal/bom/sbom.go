package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
)

// The part of CycloneDX that is used here. Its time and serial number are
// optional, and left out: the same binary has to make the same file.
type document struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOfMaterials lists the program, the Go standard library and each linked
// module, with its checksum from go.sum. The build info does not say which
// module needs which, so all are listed as dependencies of the program.
func billOfMaterials(info *debug.BuildInfo) ([]byte, error) {
	program := newComponent("application", &debug.Module{Path: info.Path, Version: info.Main.Version})
	for _, s := range info.Settings {
		if s.Key != "" {
			program.Properties = append(program.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	parts := []component{newComponent("library", &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})}
	for _, m := range linked(info) {
		parts = append(parts, newComponent("library", m))
	}
	needs := dependency{Ref: program.Ref}
	for _, p := range parts {
		needs.DependsOn = append(needs.DependsOn, p.Ref)
	}
	b, err := json.MarshalIndent(document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{program}, Components: parts, Dependencies: []dependency{needs}}, "", "  ")
	return append(b, '\n'), err
}

func newComponent(kind string, m *debug.Module) component {
	// https://github.com/package-url/purl-spec
	purl := "pkg:golang/" + m.Path
	if m.Version != "" && m.Version != "(devel)" {
		purl += "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	}
	c := component{Type: kind, Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
