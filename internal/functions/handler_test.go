package functions_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

// What this test binary is when it is started again says its order: a program
// of a user, or a tiny handler.
func TestMain(m *testing.M) {
	switch role, ok := proctest.Order(); {
	case !ok:
		proctest.Main(m, 16)
	case role == "program":
		program()
	default:
		tiny(role)
	}
}

// tiny is a handler that answers, or ends, in one way.
func tiny(role string) {
	fmt.Println("a plain line")
	fmt.Fprintln(os.Stderr, "a line on stderr\na WARNing on stderr\nLanguageWorkerConsoleLog of the system")
	if code, ok := strings.CutPrefix(role, "exit "); ok {
		var n int
		fmt.Sscan(code, &n)
		os.Exit(n)
	}
	if role == "mute" {
		select {}
	}
	if role == "late" {
		time.Sleep(300 * time.Millisecond)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT"))
	if err != nil {
		os.Exit(7)
	}
	http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.NotFound(w, r) // any answer will do
			return
		}
		body, _ := io.ReadAll(r.Body)
		answerTiny(w, r, body)
	}))
}

// answerTiny answers as the name of the function says.
func answerTiny(w http.ResponseWriter, r *http.Request, body []byte) {
	write := func(media, text string) {
		w.Header()["Content-Type"] = []string{media}
		io.WriteString(w, text)
	}
	switch r.URL.Path[1:] {
	case "object":
		write("application/json", `{"outputs":{"res":{"statusCode":"201"}},"LOGS":["one","two"],"ReturnValue":"Hello return"}`)
	case "textjson":
		write("text/json; charset=utf-8", `{"Logs":["one"]}`)
	case "strange":
		write("application/json", `{"key1":"value1"}`)
	case "empty":
		w.WriteHeader(http.StatusOK)
	case "emptychunks":
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
	case "null":
		write("application/json", " null\n")
	case "nocontent":
		w.WriteHeader(http.StatusNoContent)
	case "invalid":
		write("application/json", "Hello World")
	case "array":
		write("application/json", "[1]")
	case "text":
		write("text/plain", `{"Logs":[]}`)
	case "notype":
		w.Header()["Content-Type"] = nil
		io.WriteString(w, `{"Logs":[]}`)
	case "bad":
		w.WriteHeader(http.StatusBadRequest)
		write("application/json", `{"Logs":["lost"]}`)
	case "moved":
		http.Redirect(w, r, "/object", http.StatusTemporaryRedirect)
	case "found":
		http.Redirect(w, r, "/method", http.StatusFound)
	case "method":
		write("application/json", fmt.Sprintf(`{"Logs":[%q]}`, r.Method))
	case "reset":
		panic(http.ErrAbortHandler)
	case "sleep":
		time.Sleep(time.Minute)
	case "crash":
		os.Exit(9)
	case "restart":
		os.Exit(200)
	case "over":
		os.Exit(0)
	case "echo":
		text, _ := json.Marshal([]string{r.Method, fmt.Sprint(r.ContentLength), fmt.Sprint(r.TransferEncoding), r.Header.Get("Content-Type"),
			r.Header.Get("User-Agent"), r.Header.Get("X-Azure-Functions-HostVersion"), r.Header.Get("X-Azure-Functions-InvocationId"), string(body)})
		write("application/json", `{"Logs":`+string(text)+`}`)
	case "env":
		logs := []string{}
		for _, name := range []string{"FUNCTIONS_CUSTOMHANDLER_PORT", "FUNCTIONS_HTTPWORKER_PORT", "FUNCTIONS_CUSTOMHANDLER_WORKER_ID",
			"FUNCTIONS_HTTPWORKER_ID", "FUNCTIONS_APP_ROOT_PATH", "FUNCTIONS_WORKER_RUNTIME"} {
			logs = append(logs, os.Getenv(name))
		}
		wd, _ := os.Getwd()
		text, _ := json.Marshal(append(logs, wd))
		write("application/json", `{"Logs":`+string(text)+`}`)
	}
}
