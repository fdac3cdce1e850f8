package soloist_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A hundred operators order at once, over a store whose calls take a moment.
func TestHundredOrdersAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 0)
		c.replica("first", w).wake()
		done := make(chan error)
		for i := range 100 {
			desk := c.replica(fmt.Sprint("desk", i), w).meets(func(op string, apply func() error) error {
				time.Sleep(10 * time.Millisecond)
				err := apply()
				time.Sleep(10 * time.Millisecond)
				return err
			})
			go func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				_, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
				done <- err
			}()
		}
		begin, failed := time.Now(), 0
		for range 100 {
			if err := <-done; err != nil {
				failed++
				t.Log(err)
			}
		}
		t.Log("took", time.Since(begin))
		if failed > 0 {
			t.Errorf("%d of 100 orders were not written", failed)
		}
	})
}

// A document that cannot be understood refuses an order at once.
func TestForeignOrdersRefuseAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		c.replica("first", w).wake()
		if _, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", []byte("{")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
		if err == nil || time.Since(begin) > time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

// An error that leaves open whether the order was written says so.
func TestOrderInDoubtSaysSo(t *testing.T) {
	for name, last := range map[string]error{"no answer": errNetwork, "refused in the end": fmt.Errorf("no: %w", fs.ErrPermission)} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", 0)
			c.replica("first", w).wake()
			n := 0
			desk := c.replica("desk", w).meets(func(op string, apply func() error) error {
				if op == "write document" {
					if n++; n > 1 {
						return last
					}
					return errNetwork
				}
				return apply()
			})
			_, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
			if err == nil || !strings.Contains(err.Error(), "not known whether") {
				t.Error(err)
			}
		})
	}
}

// If the order may be written, a refusal of a later try is none of the order.
func TestOrderInDoubtIsNotRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		c.replica("first", w).wake()
		desk := c.replica("desk", w).meets(func(op string, apply func() error) error {
			if op != "write document" {
				return apply()
			}
			_, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", []byte("garbage"))
			return errors.Join(errNetwork, err)
		})
		_, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
		if err == nil || errors.Is(err, soloist.ErrRefused) || !strings.Contains(err.Error(), "not known whether") {
			t.Errorf("in doubt: %v", err)
		}
		if _, err = desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"}); !errors.Is(err, soloist.ErrRefused) {
			t.Errorf("without a doubt: %v", err)
		}
	})
}

// The largest number of an order that can be read is not exceeded.
func TestOrdersEndAtLargestNumber(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		c.replica("first", w).wake()
		if _, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", fmt.Appendf(nil, `{"schema":1,"app":"soloist","seq":%d}`, int64(store.MaxToken))); err != nil {
			t.Fatal(err)
		}
		_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
		if err == nil {
			t.Error("an order was written")
		}
		if _, err := c.replica("desk", w).Control(c.t.Context()); err != nil {
			t.Error(err)
		}
	})
}
