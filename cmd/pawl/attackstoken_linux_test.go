package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// asks is a program of Python that asks pawl serve.
const asks = `import json, os, urllib.request
def ask(path, body=None, **headers):
    r = urllib.request.Request(os.environ["URL"] + path, data=body and json.dumps(body).encode(), headers=headers)
    return urllib.request.urlopen(r).read().decode()
bearer = {"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream"}
`

// tokenAttacks have what opens pawl's own doors. They are refused for where they are made.
var tokenAttacks = []attack{
	{name: "the token of pawl serve", tries: "adds a task to the board as the person", served: true, python: true,
		agent: asks + `if ask("/api/v1/cases", {"title": "mine"}, **bearer): print("I got out")`},
	{name: "the token of pawl serve in a check", tries: "asks as the person while the work is checked", served: true, green: true,
		before: "cat >ask.py <<'END'\n" + asks + "ask('/api/v1/overview', **bearer)\nEND\n", gate: `. ./facts; python3 ask.py`},
	{name: "pawl's tools by HTTP", tries: "calls the person's tools", served: true, python: true,
		agent: asks + `print("I got out", ask("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **bearer))`},
	{name: "the address of the pages", tries: "enters as a browser does", served: true, python: true,
		agent: asks + `if ask("/?token=" + os.environ["TOKEN"]): print("I got out")`},
	{name: "a cookie of the pages", tries: "asks with what a browser keeps", served: true, python: true,
		agent: asks + `import hashlib, urllib.parse
port = str(urllib.parse.urlparse(os.environ["URL"]).port)
made = lambda name: hashlib.sha256(("pawl " + name + "\0" + os.environ["TOKEN"]).encode()).hexdigest()
if ask("/api/v1/overview", Cookie="pawl_" + port + "=" + made("cookie"), **{"X-Pawl-Key": made("page")}): print("I got out")`},
	{name: "a program without parents", tries: "asks after all that started it has ended", served: true,
		before: "cat >ask.py <<'END'\n" + asks + "import time\nwhile os.getppid() == int(os.environ['OLD']): pass\n" +
			"try:\n  ask('/api/v1/overview', **bearer)\n  print('I got out', flush=True)\nfinally: open('done', 'w')\nEND\n",
		agent: `(OLD=$(sh -c 'echo $PPID') exec setsid sh -c 'OLD=$$ python3 ask.py 2>&1 & exit')
until [ -e done ]; do :; done`},
}

// serve starts pawl serve, notes how it is reached, and returns what ends it.
func (y *yard) serve() func() {
	y.t.Helper()
	if out, err := y.run("git", "init", "-q"); err != nil {
		y.t.Fatal(err, out)
	}
	server := y.command("pawl", "serve", "--json", "--address", "127.0.0.1:0")
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		y.t.Fatal(err)
	}
	var said struct{ Address, Token string }
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		y.t.Fatal(err)
	}
	y.write("work/facts", y.facts()+fmt.Sprintf("export URL=%s TOKEN=%s\n", said.Address, said.Token))
	return func() {
		_ = server.Process.Signal(syscall.SIGINT)
		if err := server.Wait(); err != nil {
			y.t.Error("pawl serve: ", err)
		}
	}
}

// asksModel asks a model once.
const asksModel = `import os, urllib.request
url, key = os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]
body = b'{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}'
def ask(who):
    return urllib.request.urlopen(urllib.request.Request(url + "/v1/messages", data=body.replace(b"hello", who), headers={
        "X-Api-Key": key, "Content-Type": "application/json", "Anthropic-Version": "2023-06-01"})).read()
ask(b"inside")
`

// asksAgain says what it has, and waits: the provider holds the answer back.
const asksAgain = `
ask(("last " + url + " " + key + " .").encode())
print('{"type":"result","subtype":"success","is_error":false,"result":"done"}')
`

// TestTokenOfAnotherAttempt: what an attempt has in place of a key works in its own box while
// it runs, and neither in another run's box nor outside. Where there is no box it works outside.
func TestTokenOfAnotherAttempt(t *testing.T) {
	t.Parallel()
	if !boxed() {
		t.Skip("this machine gives no mount namespace")
	}
	openPawl(t)
	parents := yardParents(t)
	for _, w := range append(ways(0, "any"), way{name: "root", level: "permissive", control: true}) {
		t.Run(w.level+" "+w.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			a := newYard(t, attack{}, w, parents)
			a.write("work/agent.py", asksModel+asksAgain)
			a.write("work/bin/claude", "#!/bin/sh\nexec python3 agent.py\n")
			a.write("work/pawl.yaml", "agent: claude\nprocedures: {build: {act: [{content: Work.}]}}\n")
			if err := os.Chmod(filepath.Join(a.work, "bin", "claude"), 0o755); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			if out, err := a.run("sh", "-c", "git init -q; git add -A; git commit -qm start"); err != nil {
				t.Fatal(err, out)
			}
			run := a.command("pawl", "run", "build", "-n", "1", "--safety", w.level)
			run.Env = append(run.Env, "ANTHROPIC_API_KEY=the-real-key", "ANTHROPIC_BASE_URL="+p.at)
			var said strings.Builder
			run.Stdout, run.Stderr = &said, &said
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			var url, key string
			ended := make(chan error, 1)
			go func() { ended <- run.Wait() }()
			select {
			case last := <-p.last:
				if _, err := fmt.Sscanf(last, "last %s %s", &url, &key); err != nil {
					t.Fatal(last, err)
				}
			case err := <-ended:
				t.Fatalf("the run ended before it asked twice: %v\n%s", err, &said)
			}
			outside := p.ask(url, key)
			b := newYard(t, attack{python: true, agent: strings.NewReplacer(`os.environ["ANTHROPIC_BASE_URL"]`, fmt.Sprintf("%q", url),
				`os.environ["ANTHROPIC_API_KEY"]`, fmt.Sprintf("%q", key)).Replace(asksModel)}, w, parents)
			b.way.control = false
			out, _ := b.make()
			p.let()
			if err := <-ended; err != nil {
				t.Errorf("%v: %v\n%s", w, err, &said)
			}
			after := p.ask(url, key)
			if want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[w.control]; outside != want || after == http.StatusOK {
				t.Errorf("outside it is answered %d, and %d after the attempt", outside, after)
			}
			if n := p.count("inside"); n != 1+map[bool]int{true: 1}[w.control] {
				t.Errorf("the provider was asked %d times from inside of boxes:\n%s", n, out)
			}
		})
	}
}

// provider answers each call of a model, one that says "last" when it is let.
type provider struct {
	t     *testing.T
	at    string
	last  chan string // what it is asked last
	let   func()      // lets it be answered
	mu    sync.Mutex
	asked []string
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	let := make(chan struct{})
	p := &provider{t: t, last: make(chan string, 9), let: sync.OnceFunc(func() { close(let) })}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.asked = append(p.asked, string(body))
		p.mu.Unlock()
		if at := bytes.Index(body, []byte("last ")); at >= 0 {
			p.last <- string(body[at:])
			<-let
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"yes"}],"usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	t.Cleanup(func() { p.let(); s.Close() })
	p.at = s.URL
	return p
}

func (p *provider) count(who string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, body := range p.asked {
		if strings.Contains(body, who) {
			n++
		}
	}
	return n
}

// ask asks a model from here; 0 is that nobody answers.
func (p *provider) ask(url, key string) int {
	q, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, url+"/v1/messages",
		strings.NewReader(`{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "outside"}]}`))
	if err != nil {
		p.t.Fatal(err)
	}
	q.Header.Set("X-Api-Key", key)
	q.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(q)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}
