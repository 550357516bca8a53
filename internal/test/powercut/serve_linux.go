package powercut

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// unmountLimit is how long the end of a mount is waited for; after it, its
// server is left to end when the last file that is open there is closed.
const unmountLimit = 10 * time.Second

// Main serves a disk on the folder in the arguments until its input ends, and
// returns the exit status. Lines of the input are commands, each answered by a
// line:
//
//	arm N      the power fails before the Nth change from now; 0 is never
//	settle     all that was written is safe
//	cut SEED   the power fails now, and comes back; what survives is mounted
//	dark       has the power failed? answered with "yes" or "no"
//	room N     there is room for N bytes more
//
// When the power fails by itself, the line "off" is written.
func Main(args []string, in io.Reader, out io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "powercut: it needs a folder")
		return 2
	}
	b := &bench{dir: args[0], out: out}
	b.disk = newDisk(func() { b.say("off") }) // before anybody is told of an error
	if err := b.mount(); err != nil {
		fmt.Fprintln(os.Stderr, "powercut: cannot mount:", err)
		return 1
	}
	defer b.unmount()
	b.say("ready")
	for lines := bufio.NewScanner(in); lines.Scan(); {
		answer, err := b.do(strings.Fields(lines.Text()))
		if err != nil {
			fmt.Fprintln(os.Stderr, "powercut:", err)
			return 1
		}
		b.say(answer)
	}
	return 0
}

// bench is a disk on a folder.
type bench struct {
	dir  string
	disk *disk

	mounted chan struct{} // closed when the mount has ended

	mu  sync.Mutex
	out io.Writer
}

func (b *bench) say(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = fmt.Fprintln(b.out, line) // who does not listen any more ends us
}

func (b *bench) mount() error {
	s, err := fuse.NewServer(newServer(b.disk), b.dir, &fuse.MountOptions{
		DirectMountStrict: true, AllowOther: true, FsName: "powercut", Name: "powercut",
		DisableReadDirPlus: true, MaxWrite: 1 << 20, Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		return err
	}
	b.mounted = make(chan struct{})
	go func() {
		defer close(b.mounted)
		s.Serve()
	}()
	return s.WaitMount()
}

// unmount takes the folder off at once, also while programs are in it.
func (b *bench) unmount() {
	_ = syscall.Unmount(b.dir, syscall.MNT_DETACH) // not mounted any more: nothing to do
	limit := time.NewTimer(unmountLimit)
	defer limit.Stop()
	select {
	case <-b.mounted:
	case <-limit.C:
	}
}

func (b *bench) do(words []string) (string, error) {
	d := b.disk
	n := uint64(0)
	if len(words) > 1 {
		var err error
		if n, err = strconv.ParseUint(words[1], 10, 64); err != nil {
			return "", err
		}
	}
	if len(words) > 0 && words[0] == "cut" {
		return "done", b.cut(n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch strings.Join(words[:min(len(words), 1)], "") {
	case "arm":
		if d.fuse = int64(n); n == 0 { //nolint:gosec // a number of a test
			d.fuse = -1
		}
	case "dark":
		if d.off {
			return "yes", nil
		}
		return "no", nil
	case "settle":
		d.settle()
	case "room":
		d.size = d.used + int64(n) //nolint:gosec // likewise
	default:
		return "", fmt.Errorf("there is no command %q", words)
	}
	return "done", nil
}

// cut takes the power away and gives it back. The old mount answers nothing
// but errors from the first moment on.
func (b *bench) cut(seed uint64) error {
	b.disk.mu.Lock()
	b.disk.off, b.disk.fuse = true, -1
	b.disk.mu.Unlock()
	old := b.disk
	b.unmount()
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it repeats
	next := newDisk(old.cut)
	old.mu.Lock()
	next.inodes, next.last, next.pending, next.size = old.inodes, old.last, old.pending, old.size
	old.inodes, old.pending = nil, nil
	old.mu.Unlock()
	next.survive(r)
	b.disk = next
	return b.mount()
}
