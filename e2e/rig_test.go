//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

func TestMain(m *testing.M) {
	os.Exit(inPrivate(m))
}

// inPrivate runs the tests with a folder for temporary files that is below
// nobody else's: Gemini CLI does not read settings from where others could
// write, as they can in /tmp.
func inPrivate(m *testing.M) int {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "pawl-e2e")
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: cannot make a private folder:", err)
		return 1
	}
	dir, err := os.MkdirTemp(cache, "run-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: cannot make a private folder:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // in a cache anyway
	if err := os.Setenv("TMPDIR", dir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return m.Run()
}

// installs are the runs of scripts/install-agent, one for each program.
var installs sync.Map

// installed is the path of the pinned program. Where it cannot be had the
// test is skipped, and says why.
func installed(t *testing.T, name string) string {
	t.Helper()
	once, _ := installs.LoadOrStore(name, sync.OnceValues(func() (string, error) { return install(name) }))
	path, err := once.(func() (string, error))()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skip("skipped: " + path)
	}
	if err != nil {
		t.Fatalf("scripts/install-agent %s: %v: %s", name, err, path)
	}
	return path
}

// install returns the path of a program, or why it cannot be had with the
// error.
func install(name string) (string, error) {
	c := exec.CommandContext(context.Background(), "../scripts/install-agent", name)
	var why bytes.Buffer
	c.Stderr = &why
	out, err := c.Output()
	if err != nil {
		return strings.TrimSpace(why.String()), err
	}
	return strings.TrimSpace(string(out)), nil
}

// serve starts the model.
func serve(t *testing.T, s modelserver.Scenario) *modelserver.Server {
	t.Helper()
	server := modelserver.New(s)
	t.Cleanup(server.Close)
	return server
}

// world is the environment of a person who has an empty home and nothing
// else. Any address but loopback is behind a proxy that does not exist, so
// nothing leaves the machine.
func world(t *testing.T, model *modelserver.Server) []string {
	t.Helper()
	home := t.TempDir()
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"XDG_DATA_HOME=" + filepath.Join(home, ".local", "share"),
		"XDG_STATE_HOME=" + filepath.Join(home, ".local", "state"),
		"XDG_CACHE_HOME=" + filepath.Join(home, ".cache"),
		"TMPDIR=" + t.TempDir(),
		"LANG=C.UTF-8",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1",
		"HTTPS_PROXY=http://127.0.0.1:9",
		"NO_PROXY=127.0.0.1",
		"npm_config_registry=" + model.URL() + "/npm/",
	}
}

// complete is what an agent says when it takes its work for done.
const complete = "The file is written.\n<promise>COMPLETE</promise>"

var expensive = modelserver.Usage{Input: 100_000, Output: 10_000}
