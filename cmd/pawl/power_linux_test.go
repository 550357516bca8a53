package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pawlprocess "github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/test/powercut"
)

var (
	powerSeed = flag.Uint64("power-seed", 0, "the seed of a run of TestPowerCut that is to be repeated; 0 takes a new one")
	powerCuts = flag.Int("power-cuts", 3, "how often TestPowerCut cuts the power; 'make powercut' does it a hundred times")
)

// bootVar is what a pawl of TestPowerCut takes for the machine's start: its
// number, and when it was in nanoseconds.
const bootVar = "TEST_BOOT"

const (
	// perTask bounds the changes on the disk before a power cut, for each task of
	// the board: what a task takes, and a little more.
	perTask = 200
	// endless is how many changes a board may make for each of its tasks before it
	// counts as one that comes to no end.
	endless = 50 * perTask
)

// pretend is what every program of the tests does first.
func pretend() {
	programs["powercut"] = func() { os.Exit(powercut.Main(os.Args[1:], os.Stdin, os.Stdout)) }
	if id, at, ok := strings.Cut(os.Getenv(bootVar), " "); ok {
		if n, err := strconv.ParseInt(at, 10, 64); err == nil {
			pawlprocess.PretendBoot("test-"+id, time.Unix(0, n))
		}
	}
}

// newDisk is a disk on a folder. It is taken away at the end of the test, and
// ends by itself when the test dies.
func newDisk(t *testing.T, dir string) *powercut.Disk {
	t.Helper()
	if why := powercut.Missing(); why != "" {
		t.Skip(why)
	}
	d, err := powercut.Start(exec.Command("powercut", dir), dir) // it ends with its input
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// boot makes what is started from now on take the machine for a new one.
func (c *chaosRun) boot(n int) {
	c.more = []string{fmt.Sprintf("%s=%d %d", bootVar, n, time.Now().UnixNano())}
}

// darken works the board until the power fails before one of the next changes
// on the disk, and ends all that runs. Over is true when the board came to its end
// before.
func (c *chaosRun) darken(d *powercut.Disk, changes int) (over bool) {
	c.t.Helper()
	if err := d.Arm(changes); err != nil {
		c.t.Fatal(err)
	}
	said := &sayings{paused: make(chan struct{})}
	cmd := c.command("autopilot", "--json", "-p", fmt.Sprint(chaosSlots))
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	var err error
	ended := make(chan struct{})
	go func() { defer close(ended); err = cmd.Wait() }()
	stop := func() { c.endAll(); <-ended }
	select {
	case <-d.Off:
	case <-said.paused:
	case <-ended:
	}
	dark, derr := d.Dark()
	if derr != nil {
		c.t.Fatal(derr)
	}
	if dark {
		stop()
		return false
	}
	select {
	case <-ended:
	default:
		story := c.story()
		stop()
		c.t.Fatalf("the autopilot pauses:\n%s%s", said, story)
	}
	if err != nil {
		c.t.Fatalf("pawl autopilot: %v\n%s%s", err, said, c.story())
	}
	return true
}

// sayings is what an autopilot says.
type sayings struct {
	mu     sync.Mutex
	text   strings.Builder
	paused chan struct{} // closed when it said that it pauses
	once   sync.Once
}

func (s *sayings) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if bytes.Contains(p, []byte(`"event":"paused"`)) {
		s.once.Do(func() { close(s.paused) })
	}
	return len(p), nil
}

func (s *sayings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// story is how the board is.
func (c *chaosRun) story() string {
	text := ""
	for _, args := range [][]string{{"autopilot", "status"}, {"queue"}, {"case", "list", "--all"}, {"ps", "--all"}} {
		out, _ := c.command(args...).CombinedOutput() // what it says of itself is told
		text += strings.Join(args, " ") + ":\n" + string(out)
	}
	for line := range strings.Lines(text) {
		if id, _, ok := strings.Cut(strings.TrimSpace(line), " blocked: "); ok {
			for _, args := range [][]string{{"case", "show", id}, {"show", id}} {
				out, _ := c.command(args...).CombinedOutput()
				text += strings.Join(args, " ") + ":\n" + string(out)
			}
			spaces, _ := filepath.Glob(filepath.Join(c.home, "state", "pawl", "*", "workspaces", id))
			for _, dir := range spaces {
				gate := exec.CommandContext(c.t.Context(), "sh", "-x", "gate.sh")
				gate.Dir = dir
				out, _ := gate.CombinedOutput()
				text += "the gate in " + dir + ":\n" + string(out)
			}
		}
	}
	return text
}

// endAll ends every process of the board, as the power does, until none is left.
func (c *chaosRun) endAll() {
	c.t.Helper()
	for range manyTimes {
		all := 0
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			environ, err := os.ReadFile(filepath.Join(dir, "environ"))
			if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), "WORK="+c.dir) {
				continue
			}
			all++
			if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // or it has just ended
			}
		}
		if all == 0 {
			return
		}
	}
	c.t.Fatal("processes of the board do not end")
}

// Four agents work a board on a disk that forgets what was not synced, and the
// power fails at any moment, again and again. In the end every task has landed
// exactly once, the repository is whole, the target was never red, and what the
// person was working on is as it was.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	seed := *powerSeed
	if seed == 0 {
		seed = rand.Uint64() //nolint:gosec // nothing is kept secret
	}
	t.Logf("-power-seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it repeats
	for cuts := 0; cuts < *powerCuts && !t.Failed(); {
		cuts += oneBoard(t, random, *powerCuts-cuts)
	}
}

// oneBoard works one board to its end through at most so many power cuts, and
// returns how many there were.
func oneBoard(t *testing.T, random *rand.Rand, most int) (cuts int) {
	t.Helper()
	mount := t.TempDir()
	d := newDisk(t, mount)
	for _, dir := range []string{"repo", "home"} {
		if err := os.Mkdir(filepath.Join(mount, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := newChaosRun(t, random, min(chaosTasks, 4*most), filepath.Join(mount, "repo"), filepath.Join(mount, "home"))
	c.boot(0)
	if err := d.Settle(); err != nil {
		t.Fatal(err)
	}
	for {
		if cuts == most {
			if !c.darken(d, endless*c.tasks) {
				t.Fatalf("the board comes to no end in %d changes on the disk", endless*c.tasks)
			}
			break
		}
		if c.darken(d, 1+random.IntN(perTask*c.tasks)) {
			break
		}
		cuts++
		if err := d.Cut(random.Uint64()); err != nil {
			t.Fatal(err)
		}
		c.boot(cuts)
		t.Logf("cut %d", cuts)
	}
	c.check()
	return cuts
}
