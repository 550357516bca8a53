package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

func TestCallersVariablesAreLeftOut(t *testing.T) {
	for _, v := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"} {
		t.Setenv(v, "/elsewhere")
	}
	t.Setenv("GIT_EXTERNAL_DIFF", "false")
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	env := cleanEnvironment(os.Environ())
	for _, v := range env {
		if strings.HasPrefix(v, "GIT_DIR=") || strings.HasPrefix(v, "GIT_EXTERNAL") || v == "LC_ALL=de_DE.UTF-8" {
			t.Errorf("%s is passed on", v)
		}
	}
	if !slices.Contains(env, "GIT_CONFIG_NOSYSTEM=1") || !slices.Contains(env, "LC_ALL=C") || !slices.Contains(env, "GIT_ALLOC_LIMIT=2g") {
		t.Errorf("got %q", env)
	}
}

// TestContextEndsTheProcessGroup stops a call whose git waits for a child. The child falls to this process, as to a
// pawl that has supervisors, and is no zombie afterwards.
func TestContextEndsTheProcessGroup(t *testing.T) {
	if err := process.BecomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	fifo := filepath.Join(bin, "started")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	script := "#!/bin/sh\nsh -c 'echo $$ > " + fifo + "; exec sleep 600'\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Run(ctx, Call{Dir: bin, Args: []string{"version"}})
		ended <- err
	}()
	child, err := os.ReadFile(fifo) // waits until the child runs
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	// The child holds the output pipe: run returns at once only if it is gone too.
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(child)) + "/stat"); err == nil {
		t.Errorf("the child is left: %s", stat)
	}
}
