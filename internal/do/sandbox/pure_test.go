package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

func TestLayout(t *testing.T) {
	words := map[sort]string{writable: "write", readable: "read", hidden: "hide", bound: "bind", layered: "layer", linked: "link"}
	for _, c := range []struct {
		name string
		p    Policy
		want string
	}{
		{"a folder for temporary files is the run's own",
			Policy{Temp: []Bind{{From: "/r/tmp", To: "/tmp"}}, Write: []string{"/tmp/w", "/tmp/a/b/c"}, Show: []string{"/tmp/a/x"},
				Hide: []string{"/tmp/h", "/tmp/a", "/tmp/a/b/c/s"}, Keep: []string{"/tmp/w/.git/config"}},
			"bind /tmp from /r/tmp, write /tmp/w in /tmp, read /tmp/a/x in /tmp, write /tmp/w/.git, " +
				"write /tmp/a/b/c in /tmp, read /tmp/w/.git/config, hide /tmp/a/b/c/s"},
		{"one in another, and in a hidden folder", Policy{Temp: []Bind{{From: "/r/t", To: "/tmp"}, {From: "/r/u", To: "/tmp/u/1"}, {From: "/r/s", To: "/dev/shm"}}, Hide: []string{"/dev"}},
			"hide /dev, bind /tmp from /r/t, bind /dev/shm made from /r/s, bind /tmp/u/1 in /tmp from /r/u"},
		{"a folder in a folder is one mount", Policy{Write: []string{"/tmp", "/tmp/work"}}, "write /tmp"},
		{"what is kept pins what it lies in", Policy{Write: []string{"/tmp", "/tmp/work"}, Keep: []string{"/tmp/work/.git/hooks"}},
			"write /tmp, write /tmp/work, write /tmp/work/.git, read /tmp/work/.git/hooks"},
		{"nothing is kept that cannot be written", Policy{Write: []string{"/a"}, Keep: []string{"/b/.git/config"}}, "write /a"},
		{"hidden in writable, writable and shown in hidden",
			Policy{Write: []string{"/tmp", "/tmp/state/own"}, Hide: []string{"/tmp/state"}, Show: []string{"/tmp/state/prompt"}},
			"write /tmp, hide /tmp/state, write /tmp/state/own made, read /tmp/state/prompt made"},
		{"hidden in hidden is hidden", Policy{Hide: []string{"/h", "/h/x"}}, "hide /h"},
		{"a bind is writable, and what is in it is its own", Policy{Binds: []Bind{{From: "/copy", To: "/w"}}, Keep: []string{"/w/.git/config"}},
			"bind /w from /copy, write /w/.git from /copy/.git, read /w/.git/config from /copy/.git/config"},
		{"a bind in a bind shows the machine's", Policy{Binds: []Bind{{From: "/copy", To: "/w"}, {From: "/w/lib", To: "/w/lib", ReadOnly: true}}, Write: []string{"/w", "/w/lib/x"}},
			"bind /w from /copy, read /w/lib from /w/lib, write /w/lib/x from /w/lib/x"},
		{"a bind is shown in hidden", Policy{Binds: []Bind{{From: "/o", To: "/h/o", ReadOnly: true}}, Hide: []string{"/h"}}, "hide /h, read /h/o made from /o"},
		{"a read-only bind stands alone", Policy{Binds: []Bind{{From: "/a", To: "/b", ReadOnly: true}}}, "read /b from /a"},
		{"a folder is layered in a writable one, and what is hidden in it is hidden", Policy{Write: []string{"/h"}, Over: []Over{{To: "/h/c", Scratch: "/s"}}, Hide: []string{"/h/c/key"}},
			"write /h, layer /h/c, hide /h/c/key"},
		{"from nothing", Policy{Hide: []string{"/", "/usr/secret", "/no"}, Show: []string{"/usr", "/usr/lib"}, Write: []string{"/h/w"}, Temp: []Bind{{From: "/r/h", To: "/h"}}},
			"bind /h made from /r/h, read /usr made, write /h/w in /h, hide /usr/secret"},
		{"nothing is shown that is not hidden", Policy{Show: []string{"/etc/passwd"}}, ""},
	} {
		var got []string
		all, _ := layOutMounts(c.p, nil)
		for _, one := range all {
			line := words[one.sort] + " " + one.path
			if one.made {
				line += " made"
			}
			if one.in != "" {
				line += " in " + one.in
			}
			if one.from != "" {
				line += " from " + one.from
			}
			got = append(got, line)
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	full := Offer{System: "linux", Means: Means{User: true, Mounts: true, PID: true, Net: true, Tun: true, Landlock: 7, Seccomp: true}}
	lock := Offer{System: "linux", Means: Means{Landlock: 7, Seccomp: true}, Missing: "operation not permitted"}
	root, old, mac := lock, lock, Offer{System: "darwin"}
	root.Root, old.Landlock = true, 0
	inner := root
	inner.Frozen = true
	noScopes := full
	noScopes.Landlock = 5
	noTun := noScopes
	noTun.Tun = false
	for _, c := range []struct {
		level       string
		o           Offer
		unsandboxed bool
		want        string
	}{
		{Permissive, full, false, "open: nothing is enforced"},
		{Normal, full, true, "open: nothing: --unsandboxed"},
		{Normal, full, false, "boxed 0 gaps: writes, secrets, signals and a loopback of its own, by user, mount, process and network namespaces, Landlock 7, seccomp"},
		{Normal, noScopes, false, "boxed 0 gaps: writes, secrets, signals and a loopback of its own, by user, mount, process and network namespaces, Landlock 5, seccomp"},
		{Normal, noTun, false, "boxed 2 gaps: writes, secrets and signals, by user, mount and process namespaces, Landlock 5, seccomp"},
		{Paranoid, full, false, "boxed 0 gaps: writes, secrets, signals and network, by user, mount, process and network namespaces, Landlock 7, seccomp"},
		{Normal, lock, false, "boxed 3 gaps: writes and secrets, by Landlock 7, seccomp"},
		{Paranoid, lock, false, "refused"},
		{Normal, root, false, "refused"},
		{Normal, root, true, "open: nothing: --unsandboxed"},
		{Normal, inner, false, "boxed 3 gaps: writes and secrets, by Landlock 7, seccomp"},
		{Normal, old, false, "open: nothing: not possible on this machine 1 gaps"},
		{Normal, mac, false, "open: nothing: not possible on this machine 1 gaps"},
		{Paranoid, mac, false, "refused"},
	} {
		v := Judge(c.level, c.o, c.unsandboxed)
		got := "open: " + v.Enforced
		switch {
		case v.Refused != "":
			got = "refused"
		case v.Boxed:
			got = fmt.Sprintf("boxed %d gaps: %s", len(v.Gaps), v.Enforced)
		case len(v.Gaps) > 0:
			got += fmt.Sprintf(" %d gaps", len(v.Gaps))
		}
		if got != c.want {
			t.Errorf("%s on %s, root %v, unsandboxed %v:\n got %s\nwant %s", c.level, c.o, c.o.Root, c.unsandboxed, got, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	p := Policy{Write: []string{"/here", "/tmp"}, Hide: []string{"/tmp/state", "/home/ada/.ssh", "/run/docker.sock"}, Keep: []string{"/here/.git/config"}}
	for line, want := range map[string]bool{
		"sh: cannot create /etc/x: Read-only file system":                         true,
		"Error: EROFS: read-only file system, open '/home/ada/.npmrc'":            true,
		"touch: cannot touch '/etc/x': Permission denied":                         true,
		"cat: /tmp/state/pawl.db: Permission denied":                              true,
		"sh: ./run.sh: Permission denied":                                         false,
		"open /here/secret: permission denied":                                    false,
		"see https://example.org/why for why permission denied is a 403":          false,
		"fatal: cannot lock /home/ada/.git/HEAD.lock: Operation not permitted":    true,
		"error: could not write config file .git/config: Device or resource busy": true,
		"mv: cannot move '.git' to 'git2': Device or resource busy":               true,
		"umount: /mnt: target is busy, Device or resource busy":                   false,
		"cat: /here/x: No such file or directory":                                 false,
		"all is well": false,
	} {
		if got := len(Refused(p, "before\n"+line+"\nafter")) == 1; got != want {
			t.Errorf("%q: refused is %v, want %v", line, got, want)
		}
	}
	if n := len(Refused(p, strings.Repeat("a: Read-only file system\n", 9)+"b: EROFS\nc: EROFS\nd: EROFS")); n != 3 {
		t.Errorf("%d lines, want three different ones", n)
	}
}

// What the machine has and the box does not show is named.
func TestNotShown(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"data/x", "shown/y", "shown/secret"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tool := filepath.Join(dir, "data", "some-tool")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(tool)+":"+os.Getenv("PATH"))
	p := Policy{Show: []string{"/usr", "/bin", dir + "/shown"}, Hide: []string{"/", dir + "/shown/secret"}, Temp: []Bind{{To: dir}}}
	for line, want := range map[string]string{
		"cat: " + dir + "/data/x: No such file or directory":                  dir + "/data/x",
		"sh: 1: cannot create " + dir + "/data/new: Directory nonexistent":    dir + "/data",
		"Error: ENOENT: no such file or directory, open '" + dir + "/data/x'": dir + "/data/x",
		"sh: 1: some-tool: not found":                                         tool,
		"bash: line 1: some-tool: command not found":                          tool,
		"exec: \"some-tool\": executable file not found in $PATH":             tool,
		"ls: cannot access '" + dir + "/shown/secret': No such file":          dir + "/shown/secret",
		"ls: cannot access '" + dir + "/shown/z': No such file":               "",
		"ls: cannot access '" + dir + "/none/z': No such file":                "",
		"sh: 1: no-such-program-at-all: not found":                            "",
		"cat: tests/x: No such file or directory":                             "",
		dir + "/data/x is fine":                                               "",
	} {
		if got := NotShown(p, line); got != want {
			t.Errorf("%q misses %q, want %q", line, got, want)
		}
	}
}

func TestCaches(t *testing.T) {
	env := []string{"GOPROXY=off", "GOCACHE=/tmp/mine", "PIP_CACHE_DIR=/home/ada/pip"}
	got := Caches(env, "/state/cache", []string{"/tmp", ""}) // no TMPDIR is set
	for _, want := range []string{
		"PIP_CACHE_DIR=/state/cache/pip", "CARGO_HOME=/state/cache/cargo", "npm_config_cache=/state/cache/npm", "GOMODCACHE=/state/cache/go-mod",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %v", want, got)
		}
	}
	if got := ModuleProxy(env, "/home/ada"); !slices.Equal(got, []string{"GOPROXY=file:///home/ada/go/pkg/mod/cache/download,off"}) {
		t.Errorf("modules come from %q", got)
	}
	if slices.ContainsFunc(got, func(kv string) bool { return strings.HasPrefix(kv, "GOCACHE=") }) {
		t.Error("a cache that may be written is moved")
	}
}

func TestPlacePolicy(t *testing.T) {
	p := Place{Root: "/w/sub", Home: "/home/ada", State: "/home/ada/.local/state/pawl/w", Temp: []string{"/tmp", ""}, Write: []string{"/home/ada/.docker"}, UID: 1000}
	pol := p.Policy(Normal, Verdict{}, Limits{}, []string{"/home/ada/.codex"}, nil)
	for _, path := range []string{"/w/sub", "/tmp", "/home/ada/.codex", "/home/ada/.docker"} {
		if !slices.Contains(pol.Write, path) {
			t.Errorf("%s cannot be written", path)
		}
	}
	for _, path := range []string{"/", "/home/ada/.ssh", "/home/ada/.local/state/pawl/w"} {
		if !slices.Contains(pol.Hide, path) {
			t.Errorf("%s is not hidden", path)
		}
	}
	if slices.Contains(pol.Hide, "/home/ada/.docker") {
		t.Error("what the user adds is hidden")
	}
	if slices.Contains(pol.Write, "/w/.git") {
		t.Error("a .git outside of the workspace can be written")
	}
}

// Landlock alone knows no exceptions: a folder for temporary files with the home folder in it,
// as in a container that was given HOME=/tmp, would let everything there be read and written.
func TestSharedTempHoldsNothingOfTheUsers(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/tmp", link); err != nil {
		t.Fatal(err)
	}
	landlock := Verdict{Means: Means{Landlock: 7}}
	for _, c := range []struct {
		what  string
		place Place
		v     Verdict
		want  bool
	}{
		{"nothing", Place{Root: "/w", Home: "/home/ada", State: "/home/ada/s"}, landlock, true},
		{"the home", Place{Root: "/w", Home: "/tmp", State: "/home/ada/s"}, landlock, false},
		{"the home by a link", Place{Root: "/w", Home: link, State: "/home/ada/s"}, landlock, false},
		{"the state", Place{Root: "/w", Home: "/home/ada", State: "/tmp/s"}, landlock, false},
		{"the workspace", Place{Root: "/tmp/w", Home: "/home/ada", State: "/home/ada/s"}, landlock, false},
		{"the home, and mounts", Place{Root: "/w", Home: "/tmp", Share: true}, Verdict{Means: Means{Mounts: true}}, true},
	} {
		c.place.Temp = []string{"/tmp"}
		if got := slices.Contains(c.place.Policy(Normal, c.v, Limits{}, nil, nil).Write, "/tmp"); got != c.want {
			t.Errorf("with %s in it, /tmp can be written: %v", c.what, got)
		}
	}
}

func TestPlaceOfTemporaryFiles(t *testing.T) {
	p := Place{
		Root: "/tmp/w", Home: "/tmp/home", Temp: []string{"/tmp", "/var/tmp", "/scratch", "/tmp/home"}, Write: []string{"/var/tmp"},
		Shown: []string{"/usr", "/tmp/w/bin", "/tmp/w"}, Asked: []string{"/run/now"},
	}
	mounts := Verdict{Means: Means{Mounts: true}}
	for _, c := range []struct {
		level string
		v     Verdict
		share bool
		home  string
		want  string
	}{
		{Normal, mounts, false, "/home/ada", "own /dev/shm /tmp /scratch /home/ada"},
		{Normal, mounts, false, "/tmp/w", "own /dev/shm /tmp /scratch"},
		{Normal, mounts, false, "/run/now", "own /dev/shm /tmp /scratch"},
		{Paranoid, mounts, true, "/home/ada", "own /dev/shm /tmp /scratch /home/ada"},
		{Normal, mounts, true, "/home/ada", "own /home/ada"},
		{Normal, Verdict{}, false, "/home/ada", "own"},
	} {
		p.Share, p.Home, p.Temp[3] = c.share, c.home, c.home
		pol := p.Policy(c.level, c.v, Limits{}, nil, nil)
		got := strings.TrimSpace("own " + strings.Join(writableTargets(pol), " "))
		if got != c.want || !slices.Equal(pol.Show, []string{"/usr", "/run/now"}) {
			t.Errorf("%s, mounts %v, share %v:\n got %s\nwant %s, shown %s", c.level, c.v.Means.Mounts, c.share, got, c.want, pol.Show)
		}
	}
	p.Share, p.Home = false, "/home/ada"
	p.Moved = []string{"", "/data/cfg", "/home/ada/.cache", "/tmp/cfg", "/tmp/w", "/"}
	got := strings.Join(writableTargets(p.Policy(Normal, mounts, Limits{}, nil, nil)), " ")
	if got != "/dev/shm /tmp /scratch /home/ada /data/cfg" {
		t.Errorf("parts of the home folder that are elsewhere: %s", got)
	}
	p.Home, p.Moved = "/", nil
	p.Temp = []string{"/tmp"}
	pol := p.Policy(Normal, mounts, Limits{}, nil, nil)
	in := pol.TempIn("/run1").TempIn("/run2")
	if want := (Bind{From: "/run1/dev-shm", To: "/dev/shm"}); in.Temp[0] != want || pol.Temp[0].From != "" {
		t.Errorf("got %v, want %v; before %v", in.Temp[0], want, pol.Temp[0])
	}
}

// What cannot be connected to is named only where this machine has a server, and the box has a loopback of its own.
func TestRefusedPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = l.Close() }()
	open := l.Addr().(*net.TCPAddr).Port
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	closed := other.Addr().(*net.TCPAddr).Port
	_ = other.Close()
	if len(listeningPorts()) == 0 {
		t.Skip("this system has no table of ports")
	}
	own := Policy{Level: Normal, Own: true}
	for line, port := range map[string]int{
		"connect ECONNREFUSED 127.0.0.1:%d":                                                           open,
		"dial tcp [::1]:%d: connect: connection refused":                                              open,
		"psql: connection to server at \"localhost\" (127.0.0.1), port %d failed: Connection refused": open,
		"curl: (7) Failed to connect to localhost port %d after 0 ms: Couldn't connect to server":     open,
		"Error 111 connecting to localhost:%d. Connection refused.":                                   open,
		"listening on 127.0.0.1:%d":                                                                   0,
		"connection to db.example:%d refused":                                                         0,
	} {
		if got := refusedPort(own, fmt.Sprintf(line, open), nil); got != port {
			t.Errorf("%s: %d, want %d", line, got, port)
		}
		if got := refusedPort(own, fmt.Sprintf(line, closed), nil); got != 0 {
			t.Errorf("%s, where nobody listens: %d", line, got)
		}
	}
	line := fmt.Sprintf("connect ECONNREFUSED 127.0.0.1:%d", open)
	for name, p := range map[string]Policy{"the machine's loopback": {}, "a closed box": {Closed: true}, "a door": {Own: true, Doors: []int{open}}} {
		if got := refusedPort(p, line, []int{open}); got != 0 {
			t.Errorf("%s: %d", name, got)
		}
	}
	// Where the line has no address, what the rest of the output names, as a traceback does.
	const bare = "ConnectionRefusedError: [Errno 111] Connection refused"
	for output, port := range map[string]int{
		"  s = socket.create_connection((\"localhost\", %d))\n": open,
		"  urlopen(\"http://127.0.0.1:%d/health\")\n":           open,
		"  listen on port %d\n":                                 0,
	} {
		f := failure.Analysis{Class: failure.Network, Transient: true, Summary: "network: " + bare}
		own.ExplainGate(&f, fmt.Sprintf(output, open)+bare, nil)
		want := fmt.Sprintf("safety.local_ports: [%d]", port)
		if port == 0 {
			want = "safety.local_ports: [PORT]"
		}
		if f.Transient != (port == 0) || !strings.Contains(f.Summary, want) {
			t.Errorf("%s: %+v", output, f)
		}
	}
	long := failure.Analysis{Class: failure.Network, Summary: line + strings.Repeat(" and more", 40)}
	own.NameRefusals(&long, line, nil)
	if len(long.Summary) > 290 || !strings.HasSuffix(long.Summary, "of the machine)") {
		t.Errorf("the way to allow it is cut off: %s", long.Summary)
	}
	f := failure.Analysis{Class: failure.Network, Transient: true, Summary: line}
	own.NameRefusals(&f, line, nil)
	if want := fmt.Sprintf("safety.local_ports: [%d]", open); f.Class != failure.Permission || f.Transient || !strings.Contains(f.Summary, want) {
		t.Errorf("the failure is %+v, without %s", f, want)
	}
	// What programs look for by themselves is not why they failed.
	f = failure.Analysis{Class: failure.Network, Summary: "x"}
	own.NameRefusals(&f, "x", []string{"connection to 169.254.169.254:80: a link-local address"})
	if f.Class != failure.Network || f.Summary != "x" {
		t.Errorf("a cloud's address is blamed: %+v", f)
	}
}
