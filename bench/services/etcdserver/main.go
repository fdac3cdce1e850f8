// Etcdserver is the server of the etcd peer: one member, in a directory that is given. It prints the
// address for clients, and ends with the bench.
package main

import (
	"fmt"
	"io"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "etcdserver: want one argument, an empty directory: this program is started by the bench: go run . in bench")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "etcdserver:", err)
		os.Exit(1)
	}
}

func serve(dir string) error {
	c := embed.NewConfig()
	c.Dir, c.LogLevel = dir, "error"
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.ListenPeerUrls = free, free
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	<-e.Server.ReadyNotify()
	fmt.Println(e.Clients[0].Addr())
	io.Copy(io.Discard, os.Stdin) // which the bench holds open while it lives
	return nil
}
