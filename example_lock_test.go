package soloist_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// One replica of all works for a tenant at a time. The database keeps the largest token that it has
// seen, and refuses a smaller one: a holder that was suspended may not know yet that it has lost the
// lock.
func ExampleLock() {
	store := &local.Memory{} // shared by all replicas, as an Azure container is
	a := &soloist.Lock{Name: "tenant-42", Store: store, Replica: "a"}
	b := &soloist.Lock{Name: "tenant-42", Store: store, Replica: "b"}
	var largest int64 // in the database
	write := func(_ context.Context, run *soloist.Run) error {
		if run.Token < largest {
			return errors.New("a later holder has written")
		}
		largest = run.Token
		fmt.Println("the bills are written")
		return nil
	}
	err := a.Do(context.Background(), func(ctx context.Context, run *soloist.Run) error {
		fmt.Println("b finds it held:", errors.Is(b.TryDo(context.Background(), write), soloist.ErrHeld))
		return write(ctx, run)
	})
	fmt.Println("a:", err)
	fmt.Println("b:", b.Do(context.Background(), write))
	// Output:
	// b finds it held: true
	// the bills are written
	// a: <nil>
	// the bills are written
	// b: <nil>
}
