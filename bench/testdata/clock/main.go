// Clock prints by how much its wall clock is ahead of the one that it is given.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	right, err := time.Parse(time.RFC3339Nano, os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println(time.Since(right).Round(time.Hour))
}
