package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/process"
)

// The test binary is the hidden command, and what tries to get out.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Main(os.Stderr))
	}
	if len(os.Args) > 2 && os.Args[1] == tryCommand {
		os.Exit(tryOut(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

var offer = sync.OnceValue(func() Offer { return Probe(context.Background()) })

// tier is one combination of mechanisms that a machine may have.
type tier struct {
	name string
	Means
}

// tiers are the combinations that this machine can play: its best one, and
// poorer ones, as other machines have them.
func tiers(t *testing.T) []tier {
	t.Helper()
	o := offer()
	var out []tier
	if o.Mounts {
		best := Judge(Normal, o, false).Means
		out = append(out, tier{"best", best}, tier{"mounts only", Means{User: o.User, Mounts: true, Seccomp: o.Seccomp}})
		if best.PID {
			best.PID = false
			out = append(out, tier{"no process namespace", best})
		}
	}
	if o.Landlock > 0 {
		out = append(out, tier{"landlock only", Means{Landlock: o.Landlock, Seccomp: o.Seccomp}})
	}
	if len(out) == 0 {
		t.Skipf("this machine has neither a mount namespace nor Landlock: %s", o.Missing)
	}
	return out
}

// result is how a command in a box ended.
type result struct {
	code int
	out  string
}

// run runs a command in a box to its end.
func run(t testing.TB, p Policy, dir string, args ...string) result {
	t.Helper()
	r, entry, err := start(t, p, dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		entry.Close()
		_ = entry.Tun.Close()
		for _, l := range entry.Listeners {
			_ = l.Close()
		}
	}()
	return r()
}

// start starts a command in a box; the function waits for its end.
func start(t testing.TB, p Policy, dir string, args ...string) (func() result, *Entry, error) {
	t.Helper()
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, entry, err := startCommand(t, p, dir, outW, args...)
	_ = outW.Close()
	if err != nil {
		return nil, entry, err
	}
	return func() result {
		var out strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := outR.Read(buf)
			out.Write(buf[:n])
			if err != nil {
				break
			}
		}
		_ = outR.Close()
		entry.Outcome(func(syscall.WaitStatus) {})
		_ = cmd.Wait()
		return result{cmd.ProcessState.ExitCode(), out.String()}
	}, entry, nil
}

// startCommand starts a command in a box, with its output to out.
func startCommand(t testing.TB, p Policy, dir string, out *os.File, args ...string) (*exec.Cmd, *Entry, error) {
	t.Helper()
	c := process.Command{Args: args, Dir: dir, Env: os.Environ(), Stdout: out, Stderr: out}
	c, entry, err := Prepare(c, p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Cmd{Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stdout: out, Stderr: out, ExtraFiles: c.Extra, SysProcAttr: c.Sys}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := entry.Wait(); err != nil {
		_ = cmd.Wait()
		return nil, entry, err
	}
	return &cmd, entry, nil
}

// place is a scratch tree: what a box may write, and what it may not.
type place struct{ work, outside, secret string }

func newPlace(t testing.TB) place {
	t.Helper()
	top := t.TempDir()
	p := place{filepath.Join(top, "work"), filepath.Join(top, "outside"), filepath.Join(top, "home", ".ssh")}
	for _, dir := range []string{p.work, p.outside, p.secret, filepath.Join(p.work, ".git", "hooks")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{
		filepath.Join(p.outside, "file"), filepath.Join(p.secret, "id_rsa"), filepath.Join(p.secret, "..", ".netrc"),
		filepath.Join(p.work, "file"), filepath.Join(p.work, ".git", "config"), filepath.Join(p.work, ".git", "HEAD"),
	} {
		if err := os.WriteFile(file, []byte("before\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p place) policy(m Means) Policy {
	var show []string
	if m.Mounts {
		show = []string{"/dev/shm"} // the tests may be there
	}
	return Policy{
		Level: Normal, Show: show, Write: []string{p.work}, Keep: []string{filepath.Join(p.work, ".git", "hooks"), filepath.Join(p.work, ".git", "config")},
		Hide:  []string{p.secret, filepath.Join(p.secret, "..", ".netrc")},
		Spare: []int{os.Getpid()}, Means: m,
	}
}

// fromNothing is a policy that shows programs, and nothing else of the machine.
func (p place) fromNothing(m Means) Policy {
	pol := p.policy(m)
	pol.Hide = append(pol.Hide, "/")
	pol.Show = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", os.Args[0]}
	return pol
}

// try runs one attempt to get out, which must fail, and says that it did.
func (p place) try(t *testing.T, pol Policy, verb string, args ...string) {
	t.Helper()
	r := run(t, pol, p.work, append([]string{os.Args[0], tryCommand, verb}, args...)...)
	if r.code != refusedCode {
		t.Errorf("%s %v: exit %d, %s; want it refused", verb, args, r.code, strings.TrimSpace(r.out))
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(data)
}
