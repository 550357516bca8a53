package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The attacks of attacks_linux_test.go are made by the agent or the gate of a
// real run, and judged from outside. Each is made once without pawl as well: an
// attempt that does not succeed there shows nothing.

var attackAll = flag.Bool("attack-all", false, "make every attack in every way that this machine can play, and print the table")

// attack is one attempt to get out of the box, or to have red work called green.
type attack struct {
	name, tries string

	before string // the user's, in the work tree before its first commit
	agent  string // what the agent does
	gate   string // what the gate runs; it passes otherwise
	later  string // what the user does afterwards, in the work tree
	green  bool   // it succeeds when the gate is called green
	python bool   // the agent is a program of Python
	rooted bool   // without a box only root can do it
	more   string // pawl.yaml's verification, if not the gate alone
	only   string // the level that it is about, if not both
	kept   bool   // mounts refuse it; without them the iteration fails
	served bool   // pawl serve runs, and the attempt knows its address and token: $URL, $TOKEN
	mounts bool   // nothing but mounts refuses it, as docs/safety.md says
}

// way is a combination of user and machine.
type way struct {
	name    string
	lowly   []string // arguments of the program lowly, if it is used
	level   string
	control bool
}

// bare is whether the box has no mounts.
func (w way) bare() bool { return slices.Contains(w.lowly, "landlock") }

func (w way) String() string {
	if w.control {
		return "without pawl, as " + w.name
	}
	return w.level + " as " + w.name
}

// ways are those of the attack that is the nth: in the short form one of the two
// levels in turn.
func ways(nth int, only string) []way {
	all := []way{{name: "root", level: "normal"}, {name: "root", level: "paranoid"}}
	if os.Getuid() != 0 {
		all[0].name, all[1].name = "user", "user"
	}
	if !*attackAll && only == "" {
		all = all[nth%2 : nth%2+1]
	}
	if os.Getuid() == 0 && *attackAll {
		user := []string{"lowly", "user"}
		all = append(all, way{name: "user", level: "normal", lowly: user}, way{name: "user", level: "paranoid", lowly: user})
	}
	if *attackAll {
		all = append(all, way{name: "user, Landlock alone", level: "normal", lowly: []string{"lowly", "landlock"}})
	}
	return all
}

// lowly becomes an ordinary user, and refuses itself namespaces if it is told
// so, as many machines do. Then it becomes the command.
func lowly() {
	const nobody = 65534
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, "lowly:", err)
		os.Exit(1)
	}
	if os.Getuid() == 0 {
		for _, err := range []error{syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)} {
			if err != nil {
				fail(err)
			}
		}
	}
	if os.Args[1] == "landlock" {
		if err := refuseNamespaces(); err != nil {
			fail(err)
		}
	}
	path, err := exec.LookPath(os.Args[2])
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(path, os.Args[2:], os.Environ()))
}

// yard is where one attack is made.
type yard struct {
	t         *testing.T
	attack    attack
	way       way
	top, work string
	secret    string
	victim    *exec.Cmd
	listener  net.Listener
	reached   chan struct{}
	env       []string // of the person's besides
	more      string   // facts besides
}

// newYard has a home, a file and a process that an agent may not touch, in the
// first of the parents that takes it.
func newYard(t *testing.T, a attack, w way, parents []string) *yard {
	t.Helper()
	y := &yard{t: t, attack: a, way: w, secret: fmt.Sprintf("secret-%d-x%x", os.Getpid(), time.Now().UnixNano()), reached: make(chan struct{})}
	for _, parent := range parents {
		if dir, err := os.MkdirTemp(parent, "pawl-attack-"); err == nil { //nolint:usetesting // no box may write there
			y.top = dir
			break
		}
	}
	if y.top == "" {
		t.Skip("this user may write in temporary folders only, which every box may")
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+rwx", y.top).Run()
		_ = os.RemoveAll(y.top)
	})
	y.work = filepath.Join(y.top, "work")
	home := filepath.Join(y.top, "home")
	if _, err := ownHome(home); err != nil {
		t.Fatal(err)
	}
	y.write("home/.ssh/id_rsa", "key="+y.secret+"\n")
	y.write("out/file", "before\n")
	y.write("work/agent.sh", ". ./facts\n"+a.agent+"\n")
	if a.python {
		y.write("work/agent.sh", ". ./facts\nexec python3 agent.py")
		y.write("work/agent.py", pythonHead+a.agent)
	}
	y.write("work/gate.sh", y.attack.gate+"\n")
	y.write("work/pawl.yaml", "agent: mine\nagents: {mine: {command: [sh, agent.sh]}}\n"+cmp.Or(a.more, "verification: [sh gate.sh]")+
		"\nprocedures: {build: {act: [{content: Work.}]}}\n")
	if len(w.lowly) > 0 && os.Getuid() == 0 {
		if out, err := exec.CommandContext(t.Context(), "chown", "-R", "65534:65534", y.top).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	y.listen()
	y.startVictim()
	return y
}

func (y *yard) write(name, text string) {
	y.t.Helper()
	path := filepath.Join(y.top, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		y.t.Fatal(err)
	}
}

// listen takes connections of whoever makes one.
func (y *yard) listen() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		y.t.Skip(err)
	}
	y.listener = l
	var once sync.Once
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			once.Do(func() { close(y.reached) })
			_ = c.Close()
		}
	}()
	y.t.Cleanup(func() { _ = l.Close() })
}

// startVictim starts a process of the same user, whose output is the file.
func (y *yard) startVictim() {
	f, err := os.OpenFile(filepath.Join(y.top, "out", "file"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		y.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	y.victim = y.command("sleep", "1000")
	y.victim.Env = append(y.victim.Env, "KEY="+y.secret)
	y.victim.Dir, y.victim.Stdout = filepath.Join(y.top, "out"), f
	y.victim.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := y.victim.Start(); err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() {
		_ = y.victim.Process.Kill()
		_ = y.victim.Wait()
	})
}

// command is one of the user's.
func (y *yard) command(args ...string) *exec.Cmd {
	args = slices.Concat(y.way.lowly, args)
	cmd := exec.CommandContext(y.t.Context(), args[0], args[1:]...)
	home := filepath.Join(y.top, "home")
	cmd.Dir = y.work
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PAWL_") })
	cmd.Env = append(cmd.Env, "HOME="+home, "XDG_STATE_HOME="+home+"/state", "XDG_CONFIG_HOME="+home+"/config", "GIT_CONFIG_NOSYSTEM=1",
		"PATH="+filepath.Join(y.work, "bin")+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "WORK="+y.work, "OUT="+filepath.Join(y.top, "out"))
	cmd.Env = append(cmd.Env, y.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// facts are what the attempt is told, in files: the box passes few variables on.
func (y *yard) facts() string {
	_, port, _ := net.SplitHostPort(y.listener.Addr().String())
	return fmt.Sprintf("export OUT=%s/out WORK=%s HOME=%s/home VICTIM=%d PORT=%s\n", y.top, y.work, y.top, y.victim.Process.Pid, port) + y.more
}

func (y *yard) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(y.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := y.command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Cancel() })
	defer stop()
	err := cmd.Wait()
	return out.String(), err
}

// make makes the attempt; out is what was printed, to people and to the agent.
func (y *yard) make() (out string, green bool) {
	y.t.Helper()
	y.write("work/facts", y.facts())
	if y.attack.served {
		defer y.serve()()
	}
	setup := "set -e; . ./facts; git init -q\n" + y.attack.before + "\ngit add -A; git commit -qm start"
	if out, err := y.run("sh", "-c", setup); err != nil {
		y.t.Fatalf("cannot begin: %v: %s", err, out)
	}
	if y.way.control {
		out, _ = y.run("sh", "agent.sh")
		gated, err := y.run("sh", "gate.sh")
		out += gated
		green = err == nil
	} else {
		var err error
		out, err = y.run("pawl", "run", "build", "-n", "1", "--safety", y.way.level)
		green = err == nil && !strings.Contains(out, "Iteration 1 failed")
		said, _ := y.run("pawl", "logs", "build", "-i", "1")
		out += said
	}
	if y.attack.later != "" {
		later, _ := y.run("sh", "-c", ". ./facts\n"+y.attack.later)
		out += later
	}
	return out, green
}

// escaped says what shows that the attempt got out, or nothing.
func (y *yard) escaped(out string, green bool) string {
	if y.attack.green {
		if green {
			return "red work is called green"
		}
		return ""
	}
	file, err := os.ReadFile(filepath.Join(y.top, "out", "file"))
	if err != nil || string(file) != "before\n" {
		return fmt.Sprintf("the file outside has %q, %v", file, err)
	}
	info, err := os.Stat(filepath.Join(y.top, "out", "file"))
	if err != nil || info.Mode().Perm() != 0o644 || time.Since(info.ModTime()) > 24*time.Hour {
		return fmt.Sprintf("the file outside is %v of %v", info.Mode(), info.ModTime())
	}
	entries, err := os.ReadDir(filepath.Join(y.top, "out"))
	if err != nil || len(entries) != 1 {
		return fmt.Sprintf("outside there are %v", entries)
	}
	if strings.Contains(out, y.secret) {
		return "the key is shown"
	}
	if strings.Contains(out, "I got out") {
		return "it says so"
	}
	select {
	case <-y.reached:
		return "a server outside was reached"
	default:
	}
	return y.hurt()
}

// stirs is whether a process that sleeps has a signal that it did not take yet.
func stirs(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	taken := true
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch value = strings.TrimSpace(value); name {
		case "State":
			if value[0] != 'R' && value[0] != 'S' {
				return false // it is stopped, or has ended
			}
			taken = taken && value[0] == 'S'
		case "SigPnd", "ShdPnd":
			taken = taken && strings.Trim(value, "0") == ""
		}
	}
	return !taken
}

// hurt says what became of the victim.
func (y *yard) hurt() string {
	var status syscall.WaitStatus
	pid := y.victim.Process.Pid
	for stirs(pid) { // it has not yet done what it was told to
		runtime.Gosched()
	}
	if got, err := syscall.Wait4(pid, &status, syscall.WNOHANG|syscall.WUNTRACED, nil); err != nil || got == pid {
		return "the process outside has ended or was stopped"
	}
	score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	own, _ := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil || !bytes.Equal(score, own) {
		return fmt.Sprintf("the process outside is a victim of memory: %s", score)
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err == nil && limit.Cur < 10 {
		return "the process outside has other limits"
	}
	return ""
}

var (
	errnos = regexp.MustCompile(`(?i)(read-only file system|permission denied|operation not permitted|no such (file or directory|process)|` +
		`invalid cross-device link|device or resource busy|function not implemented|connection refused|network is unreachable|` +
		`not a directory|protocol not supported|a protected file was changed[^\n]*|symbolic link, and pawl follows none|exit status \d+|` +
		`HTTP Error 403: Forbidden|403 Forbidden|too many open files|file too large|bad file descriptor|no such device[^\n]*|cannot fork)`)
	longWords = regexp.MustCompile(`\s+`)
)

// refusedBy is the first that shows why it did not get out.
func refusedBy(out string) string {
	found := errnos.FindString(out)
	if found == "" {
		return "nothing came of it"
	}
	found = longWords.ReplaceAllString(found, " ")
	return found[:min(len(found), 70)]
}

// attackTable is what make attack prints.
type attackTable struct {
	mu    sync.Mutex
	lines []string
}

func (a *attackTable) add(at attack, w way, by string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, strings.Join([]string{at.name, w.String(), by}, "\t"))
}

func (a *attackTable) print() {
	slices.Sort(a.lines)
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "attempt\tlevel\trefused by")
	for _, line := range a.lines {
		_, _ = fmt.Fprintln(w, line)
	}
	_ = w.Flush()
}

func TestAttack(t *testing.T) {
	t.Parallel()
	if !boxed() {
		t.Skip("this machine gives no mount namespace")
	}
	openPawl(t)
	parents := yardParents(t)
	table := &attackTable{}
	if *attackAll {
		t.Cleanup(table.print)
	}
	names := map[string]bool{}
	for nth, a := range slices.Concat(attacks, gitAttacks, blindAttacks, trustAttacks, tokenAttacks) {
		if names[a.name] {
			t.Errorf("two attacks have the name %q", a.name)
		}
		names[a.name] = true
		t.Run(strings.ReplaceAll(a.name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			tryAttack(t, a, ways(nth, a.only), parents, table)
		})
	}
}

// yardParents are folders that no box may write. The first is in memory where this
// user may mount one: on a disk the yards of all attacks take a third more CPU.
func yardParents(t *testing.T) []string {
	t.Helper()
	parents := []string{"/var/cache", "/opt"}
	if me, err := os.UserHomeDir(); err == nil && os.Getuid() != 0 {
		parents = append([]string{me}, parents...)
	}
	dir, err := os.MkdirTemp("/var/cache", "pawl-attacks-") //nolint:usetesting // no box may write there
	if err != nil {
		return parents
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755") != nil {
		return parents
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return append([]string{dir}, parents...)
}

// openPawl lets an ordinary user run pawl.
func openPawl(t *testing.T) {
	t.Helper()
	pawl, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(pawl), filepath.Dir(filepath.Dir(pawl))} {
		if err := os.Chmod(dir, 0o755); err != nil && os.Getuid() == 0 { //nolint:gosec // see above
			t.Fatal(err)
		}
	}
}

func tryAttack(t *testing.T, a attack, all []way, parents []string, table *attackTable) {
	if _, err := exec.LookPath("python3"); err != nil && a.python {
		t.Skip("there is no python3")
	}
	if a.rooted && os.Getuid() != 0 {
		t.Skip("it takes root without a box, too")
	}
	for _, w := range slices.Concat([]way{{name: "root", control: true}}, all) {
		wrongLevel := a.only != "" && a.only != w.level && !w.control
		wrongUser := a.rooted && len(w.lowly) > 0
		if wrongLevel || wrongUser {
			continue
		}
		if a.mounts && w.bare() {
			table.add(a, w, "not held, as docs/safety.md says")
			continue
		}
		y := newYard(t, a, w, parents)
		out, green := y.make()
		how := y.escaped(out, green)
		if a.kept && w.bare() && !green {
			how = "" // it is seen
		}
		switch {
		case w.control && how == "":
			t.Errorf("%s: it does not succeed without pawl either, so it shows nothing:\n%s", a.tries, out)
		case !w.control && how != "":
			t.Errorf("%v: %s: %s\n%s", w, a.tries, how, out[:min(len(out), 3000)])
			table.add(a, w, "NOTHING: "+how)
		case !w.control:
			table.add(a, w, refusedBy(out))
		}
	}
}

// refuseNamespaces has the kernel refuse them to this process, with a filter of
// its own: clone3, whose flags no filter sees, does not exist.
func refuseNamespaces() error {
	const newUser, errPerm, errNoSys = unix.CLONE_NEWUSER, 0x00050000 | uint32(unix.EPERM), 0x00050000 | uint32(unix.ENOSYS)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	is := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	give := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	f := []unix.SockFilter{
		load(0), is(unix.SYS_CLONE3, 0, 1), give(errNoSys),
		is(unix.SYS_CLONE, 1, 0), is(unix.SYS_UNSHARE, 0, 3),
		load(16), {Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: newUser, Jt: 0, Jf: 1}, give(errPerm),
		give(unix.SECCOMP_RET_ALLOW),
	}
	return filterThisThread(f)
}

// noLinks becomes a command for which each file system is one without hard links.
func noLinks() {
	f := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for _, call := range linkCalls {
		f = append(f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: 0, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.EPERM)})
	}
	f = append(f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	path, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = filterThisThread(f)
	}
	if err == nil {
		err = syscall.Exec(path, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "nolinks:", err)
	os.Exit(1)
}

// filterThisThread is for the thread that becomes the command.
func filterThisThread(f []unix.SockFilter) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]} //nolint:gosec // a few
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	return nil
}
