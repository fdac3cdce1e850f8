package soloist_test

import (
	"fmt"
	"github.com/soloist-go/soloist"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// pricePerOperation is that of the class "Other" in the page that
// docs/costs.md names.
const pricePerOperation = 0.0044 / 10_000

// The page on costs tells what is counted here.
func TestThePageOnCosts(t *testing.T) {
	page, err := os.ReadFile("docs/costs.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (always on|woken up) \| (\d+) \| ([\d.]+) \| \$([\d.]+) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 5 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		n, _ := strconv.Atoi(row[2])
		told, _ := strconv.ParseFloat(row[3], 64)
		dollars, _ := strconv.ParseFloat(row[4], 64)
		got := operationsPerTick(t, n, row[1] == "woken up")
		if math.Abs(got-told) > 0.02*told {
			t.Errorf("%s, %d replicas: %.2f operations a tick, the page says %s", row[1], n, got, row[3])
		}
		if month := told * 60 * 24 * 30 * pricePerOperation; fmt.Sprintf("%.2f", month) != fmt.Sprintf("%.2f", dollars) {
			t.Errorf("%s, %d replicas: $%.3f a month, the page says $%s", row[1], n, month, row[4])
		}
	}
}

// operationsPerTick counts what n replicas ask of the store for one job that is
// due each minute and takes a second.
func operationsPerTick(t *testing.T, n int, woken bool) (mean float64) {
	inCluster(t, func(c *cluster) {
		const ticks = 60
		var all []*replica
		for i := range n {
			r := c.replica(fmt.Sprint("replica-", i), work("* * * * *", time.Second))
			r.tap.meet(faraway(uint64(i)))
			all = append(all, r)
			if !woken {
				c.launch(r)
			} else if _, err := r.RunDue(c.t.Context(), soloist.Wake{}); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(30 * time.Second)
		for _, r := range all {
			r.tap.counts()
		}
		for i := range ticks {
			time.Sleep(time.Minute)
			if woken { // the platform's timer wakes up one of them
				if _, err := all[i%n].RunDue(c.t.Context(), soloist.Wake{}); err != nil {
					t.Error(err)
				}
			}
		}
		sum := 0
		for _, r := range all {
			for _, calls := range r.tap.counts() {
				sum += calls
			}
		}
		mean = float64(sum) / ticks
	})
	return mean
}

// faraway makes each call take as long as it does within a region. Two calls
// then never meet at one instant, where the order of goroutines would decide.
func faraway(seed uint64) func(op string, apply func() error) error {
	dice := rand.New(rand.NewPCG(seed, 0))
	leg := func() { time.Sleep(2*time.Millisecond + time.Duration(dice.Int64N(int64(8*time.Millisecond)))) }
	return func(_ string, apply func() error) error {
		leg()
		defer leg()
		return apply()
	}
}
