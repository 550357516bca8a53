package boxpolicy

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// BenchmarkStart is the start of a program in the box that an agent has on this
// machine; "none" is the same without one.
func BenchmarkStart(b *testing.B) {
	v := sandbox.Judge(sandbox.Normal, sandbox.Probe(b.Context()), false)
	o := Options{StateDir: b.TempDir(), Env: os.Environ(), Say: b.Logf, Plan: engine.Plan{Root: b.TempDir(), Safety: sandbox.Normal}}
	o.Config = &config.Config{}
	policy := Make(b.Context(), o, v).Run.Setup
	policy = *policy.TempIn(b.TempDir())
	for _, boxed := range []bool{false, true} {
		name := "none"
		if boxed {
			name = "box"
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				start(b, policy, boxed)
			}
		})
	}
}

func start(b *testing.B, policy sandbox.Policy, boxed bool) {
	b.Helper()
	c := process.Command{Args: []string{"true"}, Env: os.Environ(), Dir: "/"}
	if !boxed {
		if err := exec.Command("true").Run(); err != nil {
			b.Fatal(err)
		}
		return
	}
	c, entry, err := sandbox.Prepare(c, policy)
	if err != nil {
		b.Fatal(err)
	}
	defer entry.Close()
	cmd := exec.Cmd{Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, ExtraFiles: c.Extra, SysProcAttr: c.Sys}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if err := entry.Wait(); err != nil {
		b.Fatal(err)
	}
	entry.Outcome(func(syscall.WaitStatus) {})
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
}
