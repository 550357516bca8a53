package benchmark

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

var (
	binaryFlag = flag.String("binary", "", "measure this pawl instead of building one")
	diskFlag   = flag.String("disk", "", "a folder on a disk; without it the one for temporary files")
)

// TestMain gives git and pawl a home of their own and prints the table when
// there was a benchmark.
func TestMain(m *testing.M) {
	if os.Getenv(justStart) != "" {
		return // what initialisation cost is on stderr by now
	}
	if path := os.Getenv(talkTo); path != "" {
		talk(path)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		playAgent(os.Args[2:])
		return
	}
	os.Exit(isolated(m))
}

func isolated(m *testing.M) int {
	home, err := os.MkdirTemp("", "pawl-benchmark-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(home)
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		goCache = nil // only a build is slower without it
	}
	config := filepath.Join(home, ".gitconfig")
	if err := os.WriteFile(config, []byte("[user]\n\tname = Ann\n\temail = ann@example.com\n[init]\n\tdefaultBranch = main\n"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, kv := range [][2]string{
		{"GOCACHE", string(trimmed(goCache))}, {"XDG_CONFIG_HOME", filepath.Join(home, ".config")},
		{"GIT_CONFIG_NOSYSTEM", "1"}, {"GIT_CONFIG_GLOBAL", config},
	} {
		if kv[1] == "" {
			continue
		}
		if err := os.Setenv(kv[0], kv[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := m.Run()
	figures.print(os.Stdout)
	return code
}

func trimmed(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == '\n' {
		b = b[:len(b)-1]
	}
	return b
}

// onDisk writes a program's file to the disk: pages of a file that was just made
// count as memory of who maps them, until they are written.
func onDisk(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}

var build struct {
	once sync.Once
	path string
	err  error
}

// pawl is the program that is measured, built as users get it.
func pawl(b *testing.B) string {
	b.Helper()
	build.once.Do(func() {
		if build.path = *binaryFlag; build.path != "" {
			build.err = onDisk(build.path)
			return
		}
		dir, err := newFolder(filepath.Dir(os.Getenv("GIT_CONFIG_GLOBAL")))
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "pawl")
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=bench", "-o", build.path, "./cmd/pawl")
		c.Dir = filepath.Join("..", "..", "..")
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			build.err = fmt.Errorf("cannot build pawl: %v\n%s", err, out)
			return
		}
		build.err = onDisk(build.path)
	})
	if build.err != nil {
		b.Fatal(build.err)
	}
	return build.path
}
