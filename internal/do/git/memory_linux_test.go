package git

import (
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// A few objects cannot make git take all of the machine's memory.
func TestMemoryIsLimited(t *testing.T) {
	t.Parallel()
	if err := process.Limit(os.Getpid(), 1<<62, 1<<62); err != nil {
		t.Skip("no process can be given a limit here:", err)
	}
	dir, r := repository(t, "r")
	tree := gittest.ManyFiles(t, dir)
	c := r.newCall("read-tree", tree)
	c.memory = 64 << 20
	if _, err := runGit(t.Context(), c); !OfMachine(err) || !strings.Contains(err.Error(), "ut of memory") {
		t.Errorf("got %v", err)
	}
	if most := mostMemory(); most == 0 || most > memoryLimit {
		t.Errorf("the limit is %d bytes", most)
	}
}

// Rules that an agent wrote cannot keep git busy for ever when pawl is gone.
func TestTimeIsLimited(t *testing.T) {
	t.Parallel()
	_, r := repository(t, "r")
	c := r.newCall("cat-file", "--batch")
	in, out := io.Pipe()
	c.stdin = in
	p := prepareCommand(t.Context(), c)
	defer p.cancel()
	if err := p.startCommand(); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_CPU, nil, &limit); err != nil || limit.Max > 1<<40 {
		t.Errorf("its time is limited to %d s, %v", limit.Max, err)
	}
	_ = out.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
