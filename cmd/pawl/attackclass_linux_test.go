package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The attempts of a class (attackclasses_linux_test.go) are all made by the agent, or seen by the
// gate, of one run, and each is judged from outside. The control is the same run at permissive, where
// every attempt reaches its aim.

// class is attempts of one kind.
type class struct {
	name  string
	agent string   // the program that the agent passes for
	env   []string // of the person's: $AIM is the attempt's aim
	more  string   // pawl.yaml's verification, if not the gate alone
	once  string   // what the gate runs
	// byHand: the control is what the agent does, and outside.sh of the home folder after it, in the tree and without pawl.
	byHand bool
	look   string // what the person runs afterwards
	known  string // what the tries of the class have before them
	tries  []try
}

// try is one attempt. It got out when its aim is seen outside: the text $AIM, which only the person has, the
// file $OUT/$ME, or the word $ME at a server.
type try struct {
	name   string
	before string // the person's, before the run
	does   string // the agent's: shell, or Python where it begins with "import"
	gate   string // what the gate runs for it
	look   string // what the person runs afterwards
	only   string // the level that it is about, if not both
}

// aim is what the nth attempt is after.
func (y *yard) aim(nth int) string { return fmt.Sprintf("%s-%d.", y.secret, nth) }

// each is what a script does for each attempt.
func (c class) each(y *yard, what func(try) string) string {
	var out strings.Builder
	for nth, a := range c.tries {
		if text := what(a); text != "" {
			fmt.Fprintf(&out, "( export AIM=%s ME=%d\n%s\n) || true\n", y.aim(nth), nth, text)
		}
	}
	return out.String()
}

// newClassYard is a yard in which the agent makes all attempts of the class.
func newClassYard(t *testing.T, c class, w way, parents []string) *yard {
	t.Helper()
	y := newYard(t, attack{more: c.more, agent: `for t in tries/*.*; do
export ME=$(basename ${t%.*}); echo "== $ME"
case $t in *.py) timeout 20 python3 $t;; *) timeout 20 sh $t;; esac </dev/null 2>&1; done; true`}, w, parents)
	for nth, a := range c.tries {
		if strings.HasPrefix(a.does, "import") {
			y.write(fmt.Sprintf("work/tries/%d.py", nth), pythonHead+"ME = os.environ['ME']\n"+c.known+a.does+"\n")
		} else {
			y.write(fmt.Sprintf("work/tries/%d.sh", nth), ". ./facts\n"+a.does+"\n")
		}
	}
	gate := c.each(y, func(a try) string { return a.gate })
	for nth := range c.tries { // the gate does not know what it is to find
		gate = strings.ReplaceAll(gate, "AIM="+y.aim(nth)+" ", "")
	}
	if c.agent != "" {
		y.write("work/pawl.yaml", "agent: "+c.agent+"\nagents: {"+c.agent+": {command: [sh, agent.sh]}}\nprocedures: {build: {act: [{content: Work.}]}}\n")
	}
	y.write("work/shared.py", pythonHead+"ME = os.environ['ME']\n"+c.known+`
if sys.argv[1] == "make": ctypes.memmove(libc.shmat(ok(libc.shmget(KEY, 4096, 0o1666)), None, 0), os.environ["AIM"].encode() + b"\0", 64)
else: libc.shmctl(libc.shmget(KEY, 0, 0), 0, None)
`)
	switch {
	case c.byHand && w.level == "permissive":
		y.way.control = true
		gate = "cd $WORK; sh $HOME/outside.sh"
	case gate+c.once != "": // what a red one prints is in the logs
		gate += c.once + "\nfalse"
	}
	y.write("work/gate.sh", ". ./facts\n"+gate+"\n")
	y.attack.before = "mkdir -p $HOME/../other\n" + c.each(y, func(a try) string { return a.before })
	for nth := range c.tries {
		for _, kv := range c.env {
			if strings.HasPrefix(kv, c.tries[nth].name+"=") {
				y.env = append(y.env, strings.ReplaceAll(kv, "$AIM", y.aim(nth)))
			}
		}
	}
	for _, kv := range c.env {
		if !strings.Contains(kv, "$AIM") {
			y.env = append(y.env, strings.ReplaceAll(kv, "$WORK", y.work))
		}
	}
	if len(w.lowly) > 0 && os.Getuid() == 0 {
		if out, err := exec.CommandContext(t.Context(), "chown", "-R", "65534:65534", y.top).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return y
}

// reached are the attempts that reached their aims.
func (y *yard) reachedAims(c class) (got []bool, out string) {
	heard := y.hear()
	out, _ = y.make()
	gate, _ := y.run("pawl", "logs", "build", "--gate", "sh gate.sh")
	look, _ := y.run("sh", "-c", ". ./facts\n"+c.look+"\n"+c.each(y, func(a try) string { return a.look }))
	said := out + gate + look
	words := strings.Fields(heard())
	for nth := range c.tries {
		_, err := os.Lstat(filepath.Join(y.top, "out", fmt.Sprint(nth)))
		got = append(got, err == nil || strings.Contains(said, y.aim(nth)) || strings.Contains(gate, fmt.Sprintf("poisoned %d.", nth)) || slices.Contains(words, fmt.Sprint(nth)))
	}
	return got, said
}

// hear starts servers of the person's: streams answer once they have read. What is returned ends them, and is
// what they heard.
func (y *yard) hear() (end func() string) {
	y.t.Helper()
	var mu sync.Mutex
	var heard strings.Builder
	var all sync.WaitGroup
	record := func(data []byte) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(&heard, "%s\n", data)
	}
	var ends []func()
	facts := ""
	stream := func(network, address string) string {
		l, err := net.Listen(network, address)
		cannotListen(y.t, address, err)
		ends = append(ends, func() { _ = l.Close() })
		all.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				data := make([]byte, 64)
				n, _ := c.Read(data)
				record(data[:n])
				_, _ = io.WriteString(c, "heard")
				_ = c.Close()
			}
		})
		return l.Addr().String()
	}
	packets := func(network, address string) string {
		c, err := net.ListenPacket(network, address)
		cannotListen(y.t, address, err)
		at := c.LocalAddr()
		ends = append(ends, func() {
			if me, err := net.Dial(network, at.String()); err == nil {
				_, _ = io.WriteString(me, "end")
				_ = me.Close()
			}
		})
		all.Go(func() {
			defer func() { _ = c.Close() }()
			for data := make([]byte, 64); ; {
				n, _, err := c.ReadFrom(data)
				if err != nil || string(data[:n]) == "end" {
					return
				}
				record(data[:n])
			}
		})
		return at.String()
	}
	port := func(address string) string { _, p, _ := net.SplitHostPort(address); return p }
	facts += "export TCP4=" + port(stream("tcp4", "127.0.0.1:0")) + " TCP6=" + port(stream("tcp6", "[::1]:0")) +
		" UDP4=" + port(packets("udp4", "127.0.0.1:0")) + " UDP6=" + port(packets("udp6", "[::1]:0")) +
		" ABSTRACT=" + strings.TrimPrefix(stream("unix", "@pawl-"+y.secret), "@") + "\n"
	for _, place := range []string{"home/s", "home/.cache/s", "home/.local/share/s", "out/s", "home/.gnupg/s", "home/.docker/s", "other/s", "home/.local/bin/s", "home/.npm/s", "work/s"} {
		if err := os.MkdirAll(filepath.Join(y.top, filepath.Dir(place)), 0o755); err != nil {
			y.t.Fatal(err)
		}
		stream("unix", filepath.Join(y.top, place))
	}
	stream("unixpacket", filepath.Join(y.top, "home", "packets"))
	packets("unixgram", filepath.Join(y.top, "home", "grams"))
	y.more = facts
	return func() string {
		for _, end := range ends {
			end()
		}
		all.Wait()
		return heard.String()
	}
}

// cannotListen skips the test where the machine has no IPv6; nothing else may be in the way.
func cannotListen(t *testing.T, address string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case strings.HasPrefix(address, "[::1]"):
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// TestAttackClasses makes every attempt of every class, at each level and at permissive.
func TestAttackClasses(t *testing.T) {
	t.Parallel()
	if !boxed() {
		t.Skip("this machine gives no mount namespace")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	openPawl(t)
	parents := yardParents(t)
	table := &attackTable{}
	if *attackAll {
		t.Cleanup(table.print)
	}
	for _, c := range classes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := []way{{name: "itself", level: "permissive"}, {name: "itself", level: "normal"}, {name: "itself", level: "paranoid"}}
			if os.Getuid() == 0 && *attackAll {
				user := []string{"lowly", "user"}
				all = append(all, way{name: "user", level: "normal", lowly: user}, way{name: "user", level: "paranoid", lowly: user})
			}
			for _, w := range all {
				y := newClassYard(t, c, w, parents)
				got, out := y.reachedAims(c)
				for nth, a := range c.tries {
					why := ofTry(out, nth) + linesWith(out, y.aim(nth))
					about := a.only == "" || a.only == w.level
					switch control := w.level == "permissive"; {
					case control && !got[nth]:
						t.Errorf("%s does not reach its aim at permissive, so it shows nothing:\n%s", a.name, why)
					case !control && about && got[nth]:
						t.Errorf("%v: %s reaches its aim:\n%s", w, a.name, why)
						table.add(attack{name: a.name}, w, "NOTHING")
					case !control && about:
						table.add(attack{name: c.name + ": " + a.name}, w, refusedBy(ofTry(out, nth)))
					}
				}
			}
		})
	}
}

// ofTry is what the agent printed in one attempt, or all where it printed nothing.
func ofTry(out string, nth int) string {
	_, of, found := strings.Cut(out, fmt.Sprintf("== %d\n", nth))
	of, _, _ = strings.Cut(of, "== ")
	if !found {
		of = out
	}
	return of[:min(len(of), 1500)]
}

// linesWith are the lines with a word.
func linesWith(out, word string) string {
	var lines strings.Builder
	for line := range strings.Lines(out) {
		if strings.Contains(line, word) {
			lines.WriteString("HERE: " + line)
		}
	}
	return lines.String()
}
