package sim

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// A listed is what a listing says of an entry.
type listed struct {
	job   string
	entry store.Entry
}

// List brings the whole listing over the line at once. Of a store that cannot list, all
// is read by itself.
func (c *client) List(ctx context.Context, app string, f func(name string, e store.Entry) bool) error {
	lister, ok := c.store.(store.Lister)
	if !ok {
		return errors.ErrUnsupported
	}
	got := c.send(ctx, errand{Event: trace.Event{Op: "list"}, do: func(ctx context.Context, got *result) {
		got.err = lister.List(ctx, app, func(name string, e store.Entry) bool {
			got.listed = append(got.listed, listed{path.Base(name), e})
			return true
		})
	}})
	for _, one := range got.listed {
		if !f(app+"/"+one.job, one.entry) {
			return nil
		}
	}
	return got.err
}

// judgeList returns what is wrong with a listing: it has to have each entry as it is.
func (r *contractChecker) judgeList(got result, now time.Time) (wrong []string) {
	if got.err != nil {
		return []string{fmt.Sprintf("it answers %v, want <nil>", got.err)}
	}
	var want, jobs []string
	for job, k := range r.entries {
		if k.there && !strings.HasPrefix(job, ".") {
			want = append(want, job)
		}
	}
	slices.Sort(want)
	for _, one := range got.listed {
		jobs = append(jobs, one.job)
		if k := r.entries[one.job]; k != nil && k.there {
			for _, text := range k.tells(&trace.Event{Op: "read"}, errand{}, result{Entry: one.entry}, now) {
				wrong = append(wrong, one.job+": "+text)
			}
		}
	}
	if !slices.Equal(jobs, want) {
		wrong = append(wrong, fmt.Sprintf("it lists %q, want %q", jobs, want))
	}
	return wrong
}
