package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/pawl-dev/pawl/internal/ask/cli" // all that the program initialises
	"github.com/pawl-dev/pawl/internal/do/reexec"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// BenchmarkStart is the time of pawl version, and of a C program beside it.
func BenchmarkStart(b *testing.B) {
	const rounds = 101
	path := pawl(b)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		wall, cpu := interleave(rounds, 1,
			func() cost { return timed(b, exec.Command(path, "version")) },
			func() cost { return timed(b, exec.Command("/bin/true")) })
		report(b, "start: pawl version", wall[0]/1000, "ms", atMost(15))
		report(b, "start: CPU of it", cpu[0]/1000, "ms", nil)
		report(b, "start: /bin/true beside it", wall[1]/1000, "ms", nil)
		report(b, "size of the binary", float64(info.Size())/1e6, "MB", atMost(60))
	}
}

// justStart makes this program end right after its initialisation.
const justStart = "PAWL_BENCHMARK_JUST_START"

// What runs before main runs at every start, of every command and every
// supervisor: a table, a regular expression or a schema that is built there is
// paid by all who do not need it. The bounds are on allocated bytes, which do
// not depend on the machine.
func TestInitialisationIsSmall(t *testing.T) {
	const perPackage, ours = 16 << 10, 64 << 10
	sum, seen := 0, 0
	text := initialised(t, justStart+"=1")
	for line := range strings.Lines(text) {
		name, size, ok := initialisation(line)
		if !ok {
			continue
		}
		seen++
		if strings.HasPrefix(name, "github.com/pawl-dev/pawl/") {
			sum += size
			if size > perPackage {
				t.Errorf("the initialisation of %s allocates %d bytes, more than %d: build it on first use", name, size, perPackage)
			}
		}
	}
	if seen < 20 {
		t.Fatalf("the trace names %d packages; is its format a new one?\n%s", seen, text)
	}
	if sum > ours {
		t.Errorf("the initialisations of pawl's packages allocate %d bytes, more than %d", sum, ours)
	}
}

// A supervisor and the entry of a box are there once for each agent and once for
// each command: they begin before what only the rest of pawl needs is
// initialised. Nobody made this process a supervisor, so it ends right then.
func TestLittleProgramsAreEarly(t *testing.T) {
	// In bytes; all of pawl allocates 480 KiB. 50 KiB are of the network stack of a box that needs one: it waits for
	// no other package, so nothing can make it come later. With the race detector all allocate more.
	most := 352 << 10
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		most = 448 << 10
	}
	for _, args := range [][]string{{reexec.Supervise, t.TempDir()}, {sandbox.Command}} {
		sum, seen := 0, 0
		for line := range strings.Lines(initialised(t, "", args...)) {
			name, size, ok := initialisation(line)
			if !ok {
				continue
			}
			seen++
			sum += size
			switch name {
			case "net/http", "html/template", "github.com/danielgtaylor/huma/v2", "github.com/spf13/cobra",
				"github.com/pawl-dev/pawl/internal/ask/config", "github.com/pawl-dev/pawl/internal/ask/cli":
				t.Errorf("%s begins after the initialisation of %s: package early, or one that it imports, imports what others wait for", args[0], name)
			}
		}
		if seen < 20 || sum > most {
			t.Errorf("%s begins after %d packages, which allocate %d bytes; more than 20 packages and at most %d bytes are expected", args[0], seen, sum, most)
		}
	}
}

// initialised starts this program anew and returns the trace of what it
// initialised.
func initialised(t *testing.T, variable string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1", variable)
	var trace bytes.Buffer
	c.Stderr = &trace
	var ended *exec.ExitError
	if err := c.Run(); err != nil && (len(args) == 0 || !errors.As(err, &ended)) {
		t.Fatal(err)
	}
	return trace.String()
}

// initialisation reads "init NAME @1 ms, 2 ms clock, 3 bytes, 4 allocs".
func initialisation(line string) (name string, size int, ok bool) {
	var at, clock float64
	var allocs int
	n, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &size, &allocs)
	return name, size, err == nil && n == 5
}
