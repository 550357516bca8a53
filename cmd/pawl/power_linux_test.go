package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/powercut"
	pawlprocess "github.com/pawl-dev/pawl/internal/process"
)

var (
	powerSeed = flag.Uint64("power-seed", 0, "the seed of a run of TestPowerCut that is to be repeated; 0 takes a new one")
	powerCuts = flag.Int("power-cuts", 0, "how often TestPowerCut cuts the power; 'make powercut' does it a hundred times, and 0 skips it")
)

// bootVar is what a pawl of TestPowerCut takes for the machine's start: its
// number, and when it was in nanoseconds.
const bootVar = "TEST_BOOT"

// powerLimit is how long a board may be worked without an end or a power cut.
const powerLimit = 5 * time.Minute

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
	cmd := c.command("autopilot", "--json", "-p", fmt.Sprint(chaosSlots))
	said, err := os.CreateTemp(c.t.TempDir(), "said")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = said.Close() }() // it is read by its name
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	limit := time.NewTimer(powerLimit)
	defer limit.Stop()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-d.Off:
		c.endAll()
		<-ended
		return false
	case <-limit.C:
		c.t.Errorf("the board does not come to an end:\n%s", c.story(said.Name()))
		c.endAll()
		<-ended
		c.t.FailNow()
		return false
	case err := <-ended:
		if dark, derr := d.Dark(); derr != nil {
			c.t.Fatal(derr)
		} else if dark {
			c.endAll()
			return false
		}
		if err != nil {
			c.t.Fatalf("pawl autopilot: %v\n%s", err, c.story(said.Name()))
		}
		return true
	}
}

// story is what the autopilot said, and how the board is.
func (c *chaosRun) story(said string) string {
	data, err := os.ReadFile(said)
	if err != nil {
		return err.Error()
	}
	text := string(data)
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
	if *powerCuts == 0 {
		t.Skip("it takes minutes, and is run by 'make powercut'")
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
	c := newChaosRun(t, random, filepath.Join(mount, "repo"), filepath.Join(mount, "home"))
	c.boot(0)
	if err := d.Settle(); err != nil {
		t.Fatal(err)
	}
	for over := false; !over; {
		changes := 1 + random.IntN(6000)
		if cuts >= most {
			changes = 0 // never
		}
		if over = c.darken(d, changes); over {
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
