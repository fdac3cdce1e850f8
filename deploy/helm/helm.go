// Package helm has the Helm chart of a program of jobs, which deploy-files writes for a program.
package helm

import "embed"

// Chart is the directory soloist.
//
//go:embed soloist
var Chart embed.FS
