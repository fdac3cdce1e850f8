package azure_test

import (
	"fmt"

	"github.com/soloist-go/soloist/host/azure"
)

// A container of an account, by the identity of the machine or of the developer. No request is sent
// yet.
func ExampleOpen() {
	s, err := azure.Open(azure.Config{AccountName: "orders", Container: "jobs"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s)
	// Output: https://orders.blob.core.windows.net/jobs
}

// What is wrong with the settings is an error that names the setting.
func ExampleOpen_wrong() {
	_, err := azure.Open(azure.Config{ServiceURL: "http://orders.blob.core.windows.net"})
	fmt.Println(err)
	// Output: azure: blob service URL (SOLOIST_STORAGE or AzureWebJobsStorage__blobServiceUri): an identity needs https
}

func ExampleOpenQueue() {
	q, err := azure.OpenQueue(azure.Config{AccountName: "orders"}, "wake-up")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q)
	// Output: https://orders.queue.core.windows.net/wake-up
}
