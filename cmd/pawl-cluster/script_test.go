package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-dev/pawl/internal/ask/cli"
	"github.com/pawl-dev/pawl/internal/do/cluster"
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
	r, err := http.NewRequestWithContext(context.Background(), method, server.Address+"/api/v1"+path, strings.NewReader(body))
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
	engine := startEngine(t)
	database := pgtest.Start(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("..", "..", "testdata", "engine"), RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			home := env.WorkDir + ".home"
			env.Vars = append(env.Vars, "HOME="+home, "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1",
				"PAWL_CLUSTER_ENGINE=temporal://"+engine+"/pawl", "PAWL_CLUSTER_REMOTE=origin",
				"PAWL_CLUSTER_STORE="+database.Address("postgres")+"&repository="+filepath.Base(env.WorkDir))
			gitconfig := "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(gitconfig), 0o600)
		},
	})
}

// startEngine starts a Temporal server that ends with the test, and returns its address.
func startEngine(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a Temporal server")
	}
	out, err := exec.CommandContext(t.Context(), "../../scripts/temporal/build", "cached").CombinedOutput()
	if err != nil {
		t.Skip(string(out))
	}
	program := strings.TrimSpace(string(out))
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program, "127.0.0.1:0", filepath.Join(t.TempDir(), "engine.db")) //nolint:gosec // it was built here
	c.Stderr = os.Stderr
	first, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	address, err := bufio.NewReader(first).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}
