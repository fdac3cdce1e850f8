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

// answers are those of functions that answer each time the same.
var answers = map[string]struct{ media, text string }{
	"object":   {"application/json", `{"outputs":{"res":{"statusCode":"201"}},"LOGS":["one","two"],"ReturnValue":"Hello return"}`},
	"textjson": {"text/json; charset=utf-8", `{"Logs":["one"]}`},
	"strange":  {"application/json", `{"key1":"value1"}`},
	"null":     {"application/json", " null\n"},
	"invalid":  {"application/json", "Hello World"},
	"array":    {"application/json", "[1]"},
	"text":     {"text/plain", `{"Logs":[]}`},
}

// exits are the codes with which others end the process.
var exits = map[string]int{"crash": 9, "restart": 200, "over": 0}

// answerTiny answers as the name of the function says.
func answerTiny(w http.ResponseWriter, r *http.Request, body []byte) {
	function := r.URL.Path[1:]
	if a, ok := answers[function]; ok {
		w.Header().Set("Content-Type", a.media)
		io.WriteString(w, a.text)
		return
	}
	if code, ok := exits[function]; ok {
		os.Exit(code)
	}
	logs := func(lines ...string) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"Logs": lines})
	}
	switch function {
	case "empty":
		w.WriteHeader(http.StatusOK)
	case "emptychunks":
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
	case "nocontent":
		w.WriteHeader(http.StatusNoContent)
	case "notype":
		w.Header()["Content-Type"] = nil
		io.WriteString(w, `{"Logs":[]}`)
	case "bad":
		w.WriteHeader(http.StatusBadRequest)
		logs("lost")
	case "moved":
		http.Redirect(w, r, "/object", http.StatusTemporaryRedirect)
	case "found":
		http.Redirect(w, r, "/method", http.StatusFound)
	case "method":
		logs(r.Method)
	case "reset":
		panic(http.ErrAbortHandler)
	case "sleep":
		time.Sleep(time.Minute)
	case "echo":
		logs(r.Method, fmt.Sprint(r.ContentLength), fmt.Sprint(r.TransferEncoding), r.Header.Get("Content-Type"), r.Header.Get("User-Agent"),
			r.Header.Get("X-Azure-Functions-HostVersion"), r.Header.Get("X-Azure-Functions-InvocationId"), string(body))
	case "env":
		wd, _ := os.Getwd()
		logs(os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT"), os.Getenv("FUNCTIONS_HTTPWORKER_PORT"), os.Getenv("FUNCTIONS_CUSTOMHANDLER_WORKER_ID"),
			os.Getenv("FUNCTIONS_HTTPWORKER_ID"), os.Getenv("FUNCTIONS_APP_ROOT_PATH"), os.Getenv("FUNCTIONS_WORKER_RUNTIME"), wd)
	}
}
