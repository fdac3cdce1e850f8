package azd_test

import (
	"regexp"
	"strings"
	"testing"
)

// The pages say what Flex Consumption does to runs and calls, and name no other plan first.
func TestPagesAreHonestOnFlex(t *testing.T) {
	t.Parallel()
	files := shipped(t)
	for name, wants := range map[string][]string{
		"docs/functions.md":     {"No run on Flex Consumption over 55 minutes", "SOLOIST_ALARM_LEAD=150s", "siteUpdateStrategy: RollingUpdate", "30 September\n2028", "Do not use it"},
		"docs/azd.md":           {"no more than 55 minutes"},
		"docs/containerapps.md": {"ten minutes to become ready"},
		"docs/which.md":         {"Core Tools 4.12", "az 2.87.0", "azd 1.26.0", "preview", "SIGTERM and shutdown hooks", "55 minutes on Flex Consumption"},
		"README.md":             {"(docs/which.md)"},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
	}
	for name, text := range files {
		if strings.HasSuffix(name, ".md") && name != "CHANGELOG.md" && name != "docs/functions.md" && strings.Contains(text, "Linux Consumption") {
			t.Errorf("%s speaks of Linux Consumption, which is retired", name)
		}
		if name == "docs/reaching.md" && strings.Contains(text, "Test/Run") {
			t.Errorf("%s advises Test/Run, whose calls were killed", name)
		}
	}
	page := files["docs/functions.md"]
	flex, other := strings.Index(page, "Flex Consumption"), regexp.MustCompile(`Linux Consumption|Premium|Dedicated`).FindStringIndex(page)
	if flex < 0 || other == nil || flex > other[0] {
		t.Error("docs/functions.md names another plan before Flex Consumption")
	}
}
