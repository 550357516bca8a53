package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-dev/pawl/internal/ask/cli"
	"github.com/pawl-dev/pawl/internal/do/cluster"
	"github.com/pawl-dev/pawl/internal/test/forgetest"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pawl": func() {
		os.Exit(cli.Main(cluster.Program{}, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}, "ask": func() {
		if err := ask(os.Args[1], strings.Join(os.Args[2:], "")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}})
}

// ask asks the server of 'pawl serve' for what is at a path of its API, or posts a body there, as the
// browser does.
func ask(path, body string) error {
	serve := exec.CommandContext(context.Background(), "pawl", "serve", "--address", "127.0.0.1:0", "--json")
	serve.Stderr = os.Stderr
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		return err
	}
	defer func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		_ = serve.Wait()
	}()
	var server struct{ Address, Token string }
	if err := json.NewDecoder(out).Decode(&server); err != nil {
		return err
	}
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	url := server.Address + "/api/v1" + path
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+server.Token)
	r.Header.Set("Content-Type", "application/json")
	a, err := (&http.Client{Transport: &http.Transport{}}).Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	_, err = io.Copy(os.Stdout, a.Body)
	if err == nil && a.StatusCode >= http.StatusBadRequest {
		err = errors.New(a.Status)
	}
	return err
}

// The scripts of testdata/engine run the whole program on machines that share a board and an engine:
// sh on.sh HOST COMMAND runs a command on one of them.
func TestEngine(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("it gives processes other host names")
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("..", "..", "testdata", "engine"), RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			home := env.WorkDir + ".home"
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			s := &services{engine: newEngine(t, filepath.Join(home, "engine.db")), database: pgtest.Start(t)}
			env.Values[servicesKey] = s
			if strings.HasSuffix(env.WorkDir, "forge") {
				s.forge = forgetest.Gitea(t)
				env.Vars = append(env.Vars, "FORGE="+s.forge.URL, "FORGE_REMOTE="+s.forge.Remote,
					"GITEA_TOKEN="+s.forge.Token(forgetest.Owner))
			}
			env.Vars = append(env.Vars, "HOME="+home, "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1",
				"PAWL_CLUSTER_ENGINE=temporal://"+s.engine.address+"/pawl", "PAWL_CLUSTER_REMOTE=origin",
				"PAWL_CLUSTER_STORE="+s.database.Address("postgres")+"&repository=shop")
			gitconfig := "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
			return os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(gitconfig), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"service": serve, "review": review},
	})
}

// services are what the machines of a script share.
type services struct {
	engine   *engine
	database *pgtest.Server
	forge    *forgetest.Site // of the script forge only: a Gitea
}

const servicesKey = "services"

// serve starts or stops one of the services, as 'service engine stop'.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(servicesKey).(*services)
	switch name := args[0]; {
	case name == "engine" && args[1] == "stop":
		s.engine.stop()
	case name == "engine":
		ts.Check(s.engine.start())
	case args[1] == "stop":
		s.database.Stop()
	default:
		ts.Check(s.database.Run())
	}
}

// review is what a reviewer does with a pull request at the forge: 'review merge N', or 'review change N FILE TEXT',
// which wants the first line of a file changed.
func review(ts *testscript.TestScript, _ bool, args []string) {
	site := ts.Value(servicesKey).(*services).forge
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	if args[0] == "merge" {
		site.MergeBy(forgetest.Reviewer, n, "merge")
		return
	}
	site.ReviewBy(forgetest.Reviewer, n, "please", args[2], 1, args[3])
}

// engine is a Temporal server that ends with the test, behind an address that can be closed: to start one again
// takes it most of a minute.
type engine struct {
	server, address string

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

// newEngine starts a server.
func newEngine(t *testing.T, database string) *engine {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a Temporal server")
	}
	out, err := exec.CommandContext(t.Context(), "../../scripts/temporal/build", "cached").CombinedOutput()
	if err != nil {
		t.Skip(string(out))
	}
	ctx := context.WithoutCancel(t.Context())
	c := exec.CommandContext(ctx, strings.TrimSpace(string(out)), "127.0.0.1:0", database) //nolint:gosec // it was built here
	c.Stderr = os.Stderr
	first, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{address: "127.0.0.1:0"}
	t.Cleanup(func() {
		e.stop()
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	line, err := bufio.NewReader(first).ReadString('\n')
	if e.server = strings.TrimSpace(line); err == nil {
		err = e.start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// start opens the address, again where it was.
func (e *engine) start() error {
	l, err := net.Listen("tcp", e.address)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listener, e.address = l, l.Addr().String()
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", e.server)
			if err != nil {
				_ = from.Close()
				continue
			}
			e.mu.Lock()
			e.open = append(e.open, from, to)
			e.mu.Unlock()
			for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
				}()
			}
		}
	}()
	return nil
}

// stop closes the address, and what is open there.
func (e *engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.listener.Close()
	for _, c := range e.open {
		_ = c.Close()
	}
	e.open = nil
}
