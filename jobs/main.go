// Command jobs is the program of this repository: soloist's own first user.
package main

import "github.com/soloist-go/soloist/host"

func main() { host.Main(heartbeat(), prune(), probe(), ingest()) }
