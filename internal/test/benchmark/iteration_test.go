package benchmark

import (
	"os"
	"testing"
)

// memoryDir is a file system in memory.
const memoryDir = "/dev/shm"

// BenchmarkIteration is the time of one iteration with an agent that does
// nothing, everything persisted, outside of git, against a bash loop.
func BenchmarkIteration(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		dir, err := newFolder(memoryDir)
		if err != nil {
			b.Skipf("no file system in memory: %v", err)
		}
		b.Cleanup(func() { _ = os.RemoveAll(dir) })
		iteration(b, dir, "tmpfs")
	})
	b.Run("disk", func(b *testing.B) { iteration(b, diskDir(b), "disk") })
}

// newFolder makes a folder in a place of one's own choice, which b.TempDir
// does not.
func newFolder(in string) (string, error) { return os.MkdirTemp(in, "pawl-benchmark-") }

func diskDir(b *testing.B) string {
	b.Helper()
	if *diskFlag == "" {
		return b.TempDir()
	}
	dir, err := newFolder(*diskFlag)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func iteration(b *testing.B, dir, where string) {
	const rounds, n = 7, 300
	p := newProject(b, dir, "noop", "exit 0")
	p.loop(5) // the database is made
	for b.Loop() {
		wall, cpu := interleave(rounds, n, func() cost { return p.loop(n) }, func() cost { return p.bash(n) })
		report(b, "iteration, "+where+": pawl", wall[0], "µs", nil)
		report(b, "iteration, "+where+": bash loop", wall[1], "µs", nil)
		report(b, "iteration, "+where+": ratio", wall[0]/wall[1], "×", nil)
		report(b, "CPU per iteration, "+where+": pawl's own", (cpu[0]-cpu[1])/1000, "ms", atMost(5))
		report(b, "CPU per iteration, "+where+": bash and agent", cpu[1]/1000, "ms", nil)
	}
}

// BenchmarkSnapshots is what a git repository of 100 files adds to an
// iteration, for an agent that changes a file and for one that does not.
func BenchmarkSnapshots(b *testing.B) {
	const rounds, n = 5, 60
	for _, c := range []struct{ name, script string }{
		{"a file changed", `echo "$PAWL_ITERATION" > d00/f07`},
		{"nothing changed", "exit 0"},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := diskDir(b)
			plain, tracked := newProject(b, dir, "plain", c.script), newProject(b, dir, "tracked", c.script)
			plain.fill(100)
			tracked.fill(100)
			tracked.commit()
			for b.Loop() {
				wall, _ := interleave(rounds, n, func() cost { return plain.loop(n) }, func() cost { return tracked.loop(n) })
				report(b, "snapshots of 100 files add, "+c.name, (wall[1]-wall[0])/1000, "ms", atMost(32))
			}
		})
	}
}

// BenchmarkSandbox is what the sandbox of the level normal adds to an iteration.
func BenchmarkSandbox(b *testing.B) {
	const rounds, n = 7, 60
	dir, err := newFolder(memoryDir)
	if err != nil {
		dir = b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	open, boxed := newProject(b, dir, "open", "exit 0"), newProject(b, dir, "boxed", "exit 0")
	boxed.level = "normal"
	for b.Loop() {
		wall, cpu := interleave(rounds, n, func() cost { return open.loop(n) }, func() cost { return boxed.loop(n) })
		report(b, "the sandbox of normal adds to an iteration", (wall[1]-wall[0])/1000, "ms", atMost(8))
		report(b, "the sandbox of normal adds to an iteration, CPU", (cpu[1]-cpu[0])/1000, "ms", nil)
	}
}
