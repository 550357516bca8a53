package benchmark

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	_ "github.com/pawl-dev/pawl/internal/cli" // all that the program initialises
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
		report(b, "size of the binary", float64(info.Size())/1e6, "MB", atMost(40))
	}
}

// justStart makes this program end right after its initialisation.
const justStart = "PAWL_BENCHMARK_JUST_START"

// What runs before main runs at every start, of every command and every
// supervisor: a table, a regular expression or a schema that is built there is
// paid by all who do not need it. The bounds are on allocated bytes, which do
// not depend on the machine.
func TestInitialisationIsSmall(t *testing.T) {
	const perPackage, ours = 16 << 10, 48 << 10
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1", justStart+"=1")
	var trace bytes.Buffer
	c.Stderr = &trace
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	sum, seen := 0, 0
	for s := bufio.NewScanner(&trace); s.Scan(); {
		name, size, ok := initialisation(s.Text())
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
		t.Fatalf("the trace names %d packages; is its format a new one?\n%s", seen, trace.String())
	}
	if sum > ours {
		t.Errorf("the initialisations of pawl's packages allocate %d bytes, more than %d", sum, ours)
	}
}

// initialisation reads "init NAME @1 ms, 2 ms clock, 3 bytes, 4 allocs".
func initialisation(line string) (name string, size int, ok bool) {
	var at, clock float64
	var allocs int
	n, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &size, &allocs)
	return name, size, err == nil && n == 5
}
