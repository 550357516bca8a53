package command

import (
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// Rules that an agent wrote cannot keep git busy for ever when pawl is gone.
func TestTimeIsLimited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q")
	c := Call{Dir: dir, Args: []string{"cat-file", "--batch"}}
	in, out := io.Pipe()
	c.Stdin = in
	p := prepareCommand(t.Context(), c)
	defer p.cancel()
	if err := p.startCommand(); err != nil {
		t.Fatal(err)
	}
	if most := mostMemory(); most == 0 || most > memoryLimit {
		t.Errorf("the limit is %d bytes", most)
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
