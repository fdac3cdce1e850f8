package azd_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
)

// Each image that a Dockerfile pulls can be replaced by a copy of one's own, and both Dockerfiles pull the same ones.
func TestBaseImagesAreArguments(t *testing.T) {
	t.Parallel()
	var images [][]string
	for name, text := range map[string]string{
		"Dockerfile":               shipped(t)["Dockerfile"],
		"that of containerapp":     string(filesOf(t, program(azd.App))["Dockerfile"]),
		"that of containerapp-job": string(filesOf(t, program(azd.Job))["Dockerfile"]),
	} {
		declared := regexp.MustCompile(`(?m)^ARG ([A-Z]+_IMAGE)=(\S+)$`).FindAllStringSubmatch(text, -1)
		var known, pulled []string
		for _, m := range declared {
			known, pulled = append(known, m[1]), append(pulled, m[2])
		}
		images = append(images, pulled)
		for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text, -1) {
			if arg, ok := strings.CutPrefix(m[1], "$"); !ok || !slices.Contains(known, arg) {
				t.Errorf("%s: FROM %s is no argument", name, m[1])
			}
		}
	}
	if len(images[0]) != 2 || !slices.Equal(images[0], images[1]) || !slices.Equal(images[0], images[2]) {
		t.Errorf("got %q", images)
	}
}

// A trial subscription may not have its registry build (TasksOperationsNotAllowed), so the pages say how to build here.
func TestPagesBuildWithoutRegistry(t *testing.T) {
	t.Parallel()
	pages := shipped(t)
	pages["README.md of containers"] = string(filesOf(t, program(azd.Job))["README.md"])
	for name, wants := range map[string][]string{
		"deploy/README.md":        {"TasksOperationsNotAllowed", "docker build --platform linux/amd64", "docker push"},
		"docs/azd.md":             {"TasksOperationsNotAllowed", "remoteBuild"},
		"README.md of containers": {"TasksOperationsNotAllowed", "`remoteBuild: false`"},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[name], want) {
				t.Errorf("%s does not say %s", name, want)
			}
		}
	}
	for name, text := range pages {
		if strings.Contains(strings.ToLower(text), "no docker is needed") {
			t.Errorf("%s says that no Docker is needed", name)
		}
	}
}
