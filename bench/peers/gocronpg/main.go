// Gocronpg is a replica of the bench: gocron with a lock in PostgreSQL. The lock is what the project's own module
// gocron-gorm-lock makes: a row for each job and second, which only one replica can insert. It is written here with one
// statement in place of the transaction that gorm makes of it.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/soloist-go/soloist/bench/internal/database"
	"github.com/soloist-go/soloist/bench/internal/gocron"
	"github.com/soloist-go/soloist/bench/internal/replica"
)

func main() { replica.Main(serve) }

const (
	table = `create table if not exists cron_job_locks (id serial primary key, created_at timestamptz default now(),
		updated_at timestamptz default now(), job_name text, job_identifier text, worker text, status text,
		unique (job_name, job_identifier))`
	insert = `insert into cron_job_locks (job_name, job_identifier, worker, status) values ($1, $2, $3, 'RUNNING') returning id`
	finish = `update cron_job_locks set status = 'FINISHED', updated_at = now() where id = $1`
	clean  = `delete from cron_job_locks where updated_at < $1 and status = 'FINISHED'`
)

func serve(ctx context.Context, w replica.Settings) error {
	pool, err := database.Open(ctx, w)
	if err != nil {
		return err
	}
	defer pool.Close()
	err = database.Prepare(ctx, pool, func() error {
		_, err := pool.Exec(ctx, table)
		return err
	})
	if err != nil {
		return err
	}
	go func() { // each 5 s, what is older than a day: the defaults of the module
		for replica.Wait(ctx, 5*time.Second) == nil {
			if _, err := pool.Exec(ctx, clean, time.Now().Add(-24*time.Hour)); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	return gocron.Run(ctx, w, func(ctx context.Context, job string) (gocron.Unlock, error) {
		var id int
		err := pool.QueryRow(ctx, insert, job, time.Now().Truncate(time.Second).Format("2006-01-02 15:04:05.000"), w.Name).Scan(&id)
		return func(ctx context.Context) error {
			_, err := pool.Exec(ctx, finish, id)
			return err
		}, err
	})
}
