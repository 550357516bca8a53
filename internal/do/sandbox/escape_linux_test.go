package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestWorkGoesOnInside(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			script := `set -e
echo new > new; mkdir -p a/b; echo x > a/b/c; mv a/b/c a/d; ln a/d hard; ln -s a/d soft; chmod 600 a/d; touch -d @5 a/d; rm -r a
echo more >> .git/HEAD; echo x > .git/index; mkdir .git/refs
cat /etc/passwd > /dev/null; echo > /dev/null; sh -c 'kill -TERM $$' || true
test "$(pwd)" = "$1"`
			r := run(t, p.policy(tier.Means), p.work, "sh", "-c", script, "sh", p.work)
			if r.code != 0 {
				t.Errorf("exit %d: %s", r.code, r.out)
			}
		})
	}
}

// Where something below /dev is hidden, its neighbours are shown one by one, and
// some of them are pipes.
func TestHiddenBesidePipes(t *testing.T) {
	hidden, err := os.MkdirTemp("/dev/shm", "pawl-test-") //nolint:usetesting // the folder must be below /dev
	if err != nil {
		t.Skipf("nothing can be made below /dev: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(hidden) })
	for _, tier := range tiers(t) {
		t.Run(tier.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			pol := p.policy(tier.Means)
			pol.Hide = append(pol.Hide, hidden)
			if r := run(t, pol, p.work, "sh", "-c", "echo out && echo err >&2 && cat file >/dev/null"); r.code != 0 {
				t.Errorf("exit %d: %s", r.code, r.out)
			}
		})
	}
}

func TestWritesOutsideAreRefused(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			file := filepath.Join(p.outside, "file")
			pol := p.policy(tier.Means)
			p.try(t, pol, "write", file)
			p.try(t, pol, "append", file)
			p.try(t, pol, "append", filepath.Join(p.work, "..", "outside", "file"))
			p.try(t, pol, "append", "/proc/self/root"+file)
			p.try(t, pol, "append", "/proc/"+strconv.Itoa(os.Getpid())+"/root"+file)
			p.try(t, pol, "append", "/proc/"+strconv.Itoa(os.Getpid())+"/cwd/doc.go")
			p.try(t, pol, "symlink then write", file)
			p.try(t, pol, "hardlink then write", file)
			p.try(t, pol, "rename", "file", file)
			p.try(t, pol, "rename", file, "stolen")
			p.try(t, pol, "create", p.outside)
			p.try(t, pol, "mkdir", p.outside)
			p.try(t, pol, "remove", file)
			p.try(t, pol, "truncate", file)
			p.try(t, pol, "mknod")
			if got := read(t, file); got != "before\n" {
				t.Errorf("the file outside has %q", got)
			}
		})
	}
}

func TestAttributesOutsideAreKept(t *testing.T) {
	if !offer().Mounts {
		t.Skipf("no mount namespace: %s", offer().Missing)
	}
	p := newPlace(t)
	file := filepath.Join(p.outside, "file")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	pol := p.policy(Judge(Normal, offer(), false).Means)
	for _, verb := range []string{"chmod", "chown", "utimes", "setxattr"} {
		p.try(t, pol, verb, file)
		p.try(t, pol, verb, p.outside)
	}
	after, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) || after.ModTime().Before(time.Unix(2, 0)) {
		t.Errorf("the file outside is %v of %v, was %v of %v", after.Mode(), after.ModTime(), before.Mode(), before.ModTime())
	}
}

func TestMountsCannotBeUndone(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		t.Run(tier.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			pol := p.policy(tier.Means)
			file := filepath.Join(p.outside, "file")
			p.try(t, pol, "remount", "/")
			p.try(t, pol, "unmount", p.secret)
			p.try(t, pol, "unmount", filepath.Join(p.work, ".git", "config"))
			p.try(t, pol, "nested namespaces", p.secret, file)
			p.try(t, pol, "nested namespaces", filepath.Join(p.work, ".git", "config"), filepath.Join(p.work, ".git", "config"))
			if got := read(t, file); got != "before\n" {
				t.Errorf("the file outside has %q", got)
			}
		})
	}
}

func TestGitsHooksAndConfigurationAreKept(t *testing.T) {
	if !offer().Mounts {
		t.Skipf("no mount namespace: %s", offer().Missing)
	}
	p := newPlace(t)
	pol := p.policy(Judge(Normal, offer(), false).Means)
	config := filepath.Join(p.work, ".git", "config")
	p.try(t, pol, "append", config)
	p.try(t, pol, "rename", "file", config)
	p.try(t, pol, "rename", filepath.Join(p.work, ".git"), filepath.Join(p.work, "git"))
	p.try(t, pol, "remove", config)
	p.try(t, pol, "create", filepath.Join(p.work, ".git", "hooks"))
	p.try(t, pol, "rename", filepath.Join(p.work, ".git", "hooks"), filepath.Join(p.work, "hooks"))
	if got := read(t, config); got != "before\n" {
		t.Errorf("git's configuration has %q", got)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			pol := p.policy(tier.Means)
			p.try(t, pol, "read", filepath.Join(p.secret, "id_rsa"))
			p.try(t, pol, "read", "/proc/self/root"+filepath.Join(p.secret, "id_rsa"))
			p.try(t, pol, "read", filepath.Join(p.secret, "..", ".netrc"))
			p.try(t, pol, "symlink then write", filepath.Join(p.secret, "id_rsa"))
			if os.Geteuid() == 0 && tier.Mounts {
				p.try(t, pol, "read block device")
			}
		})
	}
}

func TestOtherProcessesAreOutOfReach(t *testing.T) {
	self := strconv.Itoa(os.Getpid())
	for _, tier := range tiers(t) {
		t.Run(tier.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			pol := p.policy(tier.Means)
			p.try(t, pol, "signal", self)
			if tier.Landlock < landlockScopes { // else it reaches the box alone, and is no failure
				p.try(t, pol, "signal", "-1")
			}
			p.try(t, pol, "ptrace", self)
			p.try(t, pol, "environ", self)
			p.try(t, pol, "keyring")
			if pol.Judges = true; tier.Seccomp { // the shell of a gate says how it ended
				p.try(t, pol, "write into a process", "by ptrace")
				p.try(t, pol, "write into a process", "directly")
			}
		})
	}
}
