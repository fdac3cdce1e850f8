package logging

import (
	"context"
	"io"
	"log/slog"

	"github.com/soloist-go/soloist/host/internal/format"
)

// A Dump is a text of many lines, such as the stacks of all goroutines. Logs for
// people have it below the line that it belongs to; JSON has it as a string.
type Dump string

// withoutDumps takes the dumps out of a record.
func withoutDumps(r slog.Record) (slog.Record, string) {
	dumps := ""
	rest := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		d, ok := a.Value.Any().(Dump)
		if !ok {
			rest.AddAttrs(a)
			return true
		}
		dumps += format.Block(string(d), "    ")
		return true
	})
	return rest, dumps
}

// A dumper is a handler whose dumps follow in lines of their own.
type dumper struct {
	slog.Handler
	w io.Writer
}

func (d dumper) Handle(ctx context.Context, r slog.Record) error {
	r, dumps := withoutDumps(r)
	err := d.Handler.Handle(ctx, r)
	if dumps != "" {
		io.WriteString(d.w, dumps)
	}
	return err
}

func (d dumper) WithAttrs(attrs []slog.Attr) slog.Handler {
	return dumper{d.Handler.WithAttrs(attrs), d.w}
}

func (d dumper) WithGroup(name string) slog.Handler { return dumper{d.Handler.WithGroup(name), d.w} }
