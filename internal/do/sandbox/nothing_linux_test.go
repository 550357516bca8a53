package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Of the machine a box that is built from nothing has what is listed, and no name
// of anything else.
func TestFromNothing(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier.name, func(t *testing.T) {
			p := newPlace(t)
			pol := p.fromNothing(tier.Means)
			for _, path := range []string{
				"/etc/passwd", "/etc/hostname", filepath.Join(p.outside, "file"), filepath.Join(p.secret, "id_rsa"),
				"/proc/self/root" + filepath.Join(p.outside, "file"), "/proc/self/root/etc/passwd", "/proc/self/cwd/../outside/file",
			} {
				control(t, p.work, "read", path)
				p.try(t, pol, "read", path)
			}
			for _, dir := range []string{"/etc", "/root", "/run", "/var", "/home", p.outside, "/boot", "/srv"} {
				r := run(t, pol, p.work, "ls", "-A", dir)
				if r.code == 0 && r.out != "" && r.out != "alternatives\nld.so.cache\n" {
					t.Errorf("%s has %q", dir, r.out)
				}
			}
			if r := run(t, pol, p.work, "sh", "-c", "cat file && echo more >>file"); r.code != 0 || r.out != "before\n" {
				t.Errorf("the workspace: exit %d, %q", r.code, r.out)
			}
			for _, dir := range []string{"/", "/usr", "/etc"} {
				p.try(t, pol, "create", dir)
				p.try(t, pol, "mkdir", dir)
			}
		})
	}
}

// The box has a home folder of its own: what is shown in it cannot be moved or
// replaced, and all else in it can be used.
func TestHomeOfItsOwn(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		t.Run(tier.name, func(t *testing.T) {
			p := newPlace(t)
			home, tool := filepath.Dir(p.secret), filepath.Join(filepath.Dir(p.secret), ".local", "share", "tool")
			if err := os.MkdirAll(tool, 0o755); err != nil {
				t.Fatal(err)
			}
			pol := p.fromNothing(tier.Means)
			pol.Temp = []Bind{{To: home}}
			pol.Show = append(slices.Clone(pol.Show), tool)
			pol.Binds = []Bind{{From: filepath.Join(p.outside, "file"), To: filepath.Join(home, ".toolrc"), ReadOnly: true}}
			pol = *pol.TempIn(filepath.Join(p.outside, "run"))
			const use = `cd "$0" && ls -A && cat .toolrc && mkdir -p .local/share/other .cache && echo mine >.cache/mine && cat .cache/mine`
			if r := run(t, pol, p.work, "sh", "-c", use, home); r.code != 0 || r.out != ".local\n.toolrc\nbefore\nmine\n" {
				t.Errorf("exit %d: %q", r.code, r.out)
			}
			for _, path := range []string{".local", ".local/share", ".local/share/tool", ".toolrc"} {
				p.try(t, pol, "rename", filepath.Join(home, path), filepath.Join(home, "moved"))
			}
			p.try(t, pol, "append", filepath.Join(home, ".toolrc"))
			p.try(t, pol, "create", tool)
			p.try(t, pol, "read", filepath.Join(p.secret, "id_rsa"))
			// In the next box no link leads away that was left here.
			if r := run(t, pol, p.work, "ln", "-s", p.work, filepath.Join(home, ".config")); r.code != 0 {
				t.Fatal(r.out)
			}
			pol.Binds = append(pol.Binds, Bind{From: p.outside, To: filepath.Join(home, ".config", "git"), ReadOnly: true})
			if r := run(t, pol, p.work, "cat", filepath.Join(home, ".config", "git", "file")); r.out != "before\n" {
				t.Errorf("exit %d: %q", r.code, r.out)
			}
			if _, err := os.Stat(filepath.Join(p.work, "git")); err == nil {
				t.Error("a link was followed")
			}
		})
	}
}

// A cache that nobody has yet is empty in the box, and what is written to it is kept
// where the run says.
func TestCacheThatIsNotThere(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		p := newPlace(t)
		home := filepath.Dir(p.secret)
		pol := p.fromNothing(tier.Means)
		pol.Temp, pol.Over = []Bind{{To: home}}, []Over{{To: filepath.Join(home, ".m2", "repository")}}
		pol = *pol.TempIn(filepath.Join(p.outside, "run"))
		for _, want := range []string{"", "jar\n"} {
			r := run(t, pol, home, "sh", "-c", "cat .m2/repository/jar 2>/dev/null; echo jar >.m2/repository/jar")
			if r.code != 0 || r.out != want {
				t.Errorf("%s: exit %d: %q, want %q", tier.name, r.code, r.out, want)
			}
		}
	}
}

// What a program changes of its own folder is the run's, but for what is written through;
// a file is a copy.
func TestOwnFolderThatIsNotChanged(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		p := newPlace(t)
		own, file := filepath.Join(filepath.Dir(p.secret), ".agent"), filepath.Join(filepath.Dir(p.secret), ".agent.json")
		for _, path := range []string{filepath.Join(own, "sessions"), own} {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{filepath.Join(own, "settings.json"), file} {
			if err := os.WriteFile(path, []byte("before\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		pol := p.fromNothing(tier.Means)
		pol.Temp, pol.Over = []Bind{{To: filepath.Dir(own)}}, []Over{{To: own, Whole: true}, {To: file, Whole: true}}
		pol.Write = append(pol.Write, filepath.Join(own, "sessions"))
		pol = *pol.TempIn(filepath.Join(p.outside, "run"))
		const use = "cd $0; cat settings.json ../.agent.json; for f in settings.json ../.agent.json sessions/new plugin; do echo more >>$f; done"
		for _, want := range []string{"before\nbefore\n", "before\nmore\nbefore\nmore\n"} {
			if r := run(t, pol, p.work, "sh", "-ec", use, own); r.code != 0 || r.out != want {
				t.Errorf("%s: exit %d: %q, want %q", tier.name, r.code, r.out, want)
			}
		}
		got := read(t, filepath.Join(own, "settings.json")) + read(t, file) + read(t, filepath.Join(own, "sessions", "new"))
		if got != "before\nbefore\nmore\nmore\n" {
			t.Errorf("%s: the person's are %q", tier.name, got)
		}
		if _, err := os.Stat(filepath.Join(own, "plugin")); err == nil {
			t.Errorf("%s: a file was added", tier.name)
		}
	}
}

// Protected files keep their content, whatever links to them, and nothing runs that was
// compiled of them before.
func TestContentIsKept(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		p := newPlace(t)
		if err := os.MkdirAll(filepath.Join(p.work, "tests", "__pycache__"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tests/plain", "tests/linked", "target", "tests/__pycache__/old.pyc"} {
			if err := os.WriteFile(filepath.Join(p.work, name), []byte("before\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(filepath.Join(p.work, "tests", "linked"), filepath.Join(p.work, "other")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../target", filepath.Join(p.work, "tests", "link")); err != nil {
			t.Fatal(err)
		}
		names := []string{"tests/plain", "tests/linked", "tests/link", "tests/gone"}
		pol, folders, err := p.fromNothing(tier.Means).KeepContent(p.work, p.work, filepath.Join(p.outside, "kept"), names)
		if err != nil || !slices.Equal(folders, []string{"tests"}) {
			t.Fatal(folders, err)
		}
		const change = "for f in other target tests/plain tests/linked tests/link; do (echo evil >$f) 2>/dev/null; done; " +
			"cat tests/plain tests/linked tests/link; ls tests/__pycache__; echo new >tests/__pycache__/new.pyc"
		if r := run(t, pol, p.work, "sh", "-c", change); r.code != 0 || r.out != "before\nbefore\nbefore\n" {
			t.Errorf("%s: exit %d: %q", tier.name, r.code, r.out)
		}
	}
}
