// Package functions stands in for the Azure Functions host in tests: it starts a
// custom handler as the host does, calls its functions, reads its answers, and
// ends it without notice.
//
// What it does is read from the host's source, version 4.1037
// (https://github.com/Azure/azure-functions-host): HttpWorkerProcess.cs,
// WorkerProcess.cs, HttpFunctionInvocationDispatcher.cs,
// DefaultHttpWorkerService.cs, HttpScriptInvocationResult.cs and
// HostFunctionMetadataProvider.cs.
//
// # What is not promised
//
//   - That bindings work: Outputs and ReturnValue are returned as they came.
//   - That an HTTP trigger is forwarded or proxied: its request comes as data.
//   - That a timer fires. A test says when, with the payload that it wants.
//   - That a queue is looked at in intervals: App.Drain looks when a test says so. Nor is a message kept hidden for a call
//     that takes more than ten minutes.
package functions
