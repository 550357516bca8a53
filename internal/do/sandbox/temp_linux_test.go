package sandbox

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withTemp is a policy in which the folder shared is the run's own.
func withTemp(t *testing.T, m Means) (p place, pol Policy, shared string) {
	t.Helper()
	p = newPlace(t)
	shared = filepath.Join(filepath.Dir(p.work), "shared")
	for _, dir := range []string{"", "deep/tools/bin", "deep/other"} {
		if err := os.MkdirAll(filepath.Join(shared, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"others", "deep/tools/bin/tool", "deep/other/file", "plain"} {
		if err := os.WriteFile(filepath.Join(shared, file), []byte("machine's\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pol = p.policy(m)
	pol.Temp = []Bind{{To: shared}}
	return p, *pol.TempIn(filepath.Join(filepath.Dir(p.work), "run")), shared
}

func TestTemporaryFilesAreTheRuns(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		t.Run(tier.name, func(t *testing.T) {
			p, pol, shared := withTemp(t, tier.Means)
			others := filepath.Join(shared, "others")
			control(t, p.work, "read", others)
			p.try(t, pol, "read", others)
			p.try(t, pol, "read", "/proc/self/root"+others)
			p.try(t, pol, "read", "/proc/1/root"+others)
			l, err := net.Listen("unix", filepath.Join(shared, "s"))
			if err != nil {
				t.Skip(err)
			}
			defer func() { _ = l.Close() }()
			control(t, p.work, "dial", "unix", l.Addr().String())
			p.try(t, pol, "dial", "unix", l.Addr().String())

			// The folder has the mode of the machine's: programs do not trust what all may write.
			for _, mode := range []fs.FileMode{0o777 | fs.ModeSticky, 0o711} {
				if err := os.Chmod(shared, mode); err != nil {
					t.Fatal(err)
				}
				want := map[bool]string{true: "1777\n", false: "711\n"}[mode&fs.ModeSticky != 0]
				if r := run(t, pol, shared, "stat", "-c", "%a", "."); r.code != 0 || r.out != want {
					t.Errorf("exit %d: %q", r.code, r.out)
				}
			}
			// What one process leaves there is there for the next, and nobody else.
			if r := run(t, pol, shared, "sh", "-c", "echo mine >others; mkdir -p d/e"); r.code != 0 {
				t.Errorf("exit %d: %q", r.code, r.out)
			}
			if r := run(t, pol, p.work, "cat", others); r.out != "mine\n" {
				t.Errorf("the next one reads %q", r.out)
			}
			if got := read(t, others); got != "machine's\n" {
				t.Errorf("the machine's file has %q", got)
			}
		})
	}
}

func TestWhatIsShownAmongTemporaryFiles(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		t.Run(tier.name, func(t *testing.T) {
			p, pol, shared := withTemp(t, tier.Means)
			tool, other := filepath.Join(shared, "deep", "tools", "bin", "tool"), filepath.Join(shared, "deep", "other")
			// In an earlier box links were left where the next one shows something.
			if r := run(t, pol, shared, "ln", "-s", p.work, "deep"); r.code != 0 {
				t.Fatal(r.out)
			}
			if r := run(t, pol, shared, "ln", "-s", filepath.Join(p.work, "file"), "plain"); r.code != 0 {
				t.Fatal(r.out)
			}
			pol.Show = append(pol.Show, filepath.Dir(tool), filepath.Join(shared, "plain"))
			pol.Write = append(pol.Write, other)
			for range 2 {
				r := run(t, pol, p.work, "cat", tool, filepath.Join(shared, "plain"), filepath.Join(other, "file"))
				if r.out != strings.Repeat("machine's\n", 3) {
					t.Errorf("exit %d: %q", r.code, r.out)
				}
				p.try(t, pol, "append", tool)
				p.try(t, pol, "append", filepath.Join(shared, "plain"))
				p.try(t, pol, "rename", filepath.Join(shared, "deep"), filepath.Join(shared, "moved"))
				p.try(t, pol, "rename", filepath.Join(shared, "deep", "tools"), filepath.Join(shared, "moved"))
			}
			if r := run(t, pol, other, "sh", "-c", "echo more >>file"); r.code != 0 {
				t.Error(r.out)
			}
			if got := read(t, filepath.Join(other, "file")); got != "machine's\nmore\n" {
				t.Errorf("what may be written has %q", got)
			}
			if got := read(t, filepath.Join(p.work, "file")); got != "before\n" {
				t.Errorf("the link's target has %q", got)
			}
		})
	}
}

// A link on the way to what is shown is shown too.
func TestLinksToWhatIsShown(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		t.Run(tier.name, func(t *testing.T) {
			p, pol, shared := withTemp(t, tier.Means)
			for link, to := range map[string]string{"deep/link": "tools", "abs": filepath.Join(p.outside, "down"), "deep/two": filepath.Join(shared, "deep", "link")} {
				if err := os.Symlink(to, filepath.Join(shared, link)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("file", filepath.Join(p.outside, "down")); err != nil {
				t.Fatal(err)
			}
			pol.Show = append(pol.Show, filepath.Join(shared, "deep", "two", "bin"), filepath.Join(shared, "abs"))
			r := run(t, pol, p.work, "cat", filepath.Join(shared, "deep", "two", "bin", "tool"), filepath.Join(shared, "abs"))
			if r.out != "machine's\nbefore\n" {
				t.Errorf("exit %d: %q", r.code, r.out)
			}
			p.try(t, pol, "append", filepath.Join(shared, "abs"))
			p.try(t, pol, "append", filepath.Join(shared, "deep", "two", "bin", "tool"))
		})
	}
}

func TestDevicesOfTheMachine(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		t.Run(tier.name, func(t *testing.T) {
			p := newPlace(t)
			pol := p.policy(tier.Means)
			pol.Show, pol.Write = nil, append(pol.Write, "/dev/shm")
			r := run(t, pol, p.work, "sh", "-c", `set -e; ls /dev; echo a >/dev/stdout; echo b >&2; cat /dev/fd/0 </dev/zero | head -c 1 >/dev/null
echo >/dev/null; test -c /dev/ptmx; test -w /dev/shm; python3 -c 'import pty; pty.openpty()' 2>/dev/null || ! command -v python3 >/dev/null`)
			want := "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\na\nb\n"
			if r.code != 0 || r.out != want {
				t.Errorf("exit %d: %q, want %q", r.code, r.out, want)
			}
			if _, err := os.Stat("/dev/kmsg"); err == nil && os.Geteuid() == 0 {
				control(t, "", "append", "/dev/kmsg")
				p.try(t, pol, "append", "/dev/kmsg")
				p.try(t, pol, "append", "/proc/self/root/dev/kmsg")
			}
			for _, dir := range []string{"/dev", "/dev/pts"} {
				p.try(t, pol, "create", dir)
			}
			p.try(t, pol, "remove", "/dev/null")
		})
	}
}

func TestKernelsSettingsAreNotWritten(t *testing.T) {
	const setting = "/proc/sys/kernel/core_pattern"
	for _, tier := range tiers(t) {
		p := newPlace(t)
		for _, path := range []string{setting, "/proc/self/oom_score_adj", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/power/state"} {
			p.try(t, p.policy(tier.Means), "open to write", path)
		}
		for _, group := range []string{"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs"} {
			if _, err := os.Stat(group); err == nil {
				p.try(t, p.policy(tier.Means), "open to write", group)
			}
		}
	}
	if os.Geteuid() == 0 {
		control(t, "", "open to write", setting)
	}
	control(t, "", "open to write", "/proc/self/oom_score_adj")
}
