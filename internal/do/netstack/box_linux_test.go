package netstack

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

var offer = sync.OnceValue(func() sandbox.Offer { return sandbox.Probe(context.Background()) })

// policyOf a box at the level normal, with a loopback of its own.
func policyOf(t testing.TB) sandbox.Policy {
	t.Helper()
	v := sandbox.Judge(sandbox.Normal, offer(), false)
	if !v.Means.Tun {
		t.Skip("this machine has no namespaces or no /dev/net/tun: ", v.Gaps, v.Refused)
	}
	place := sandbox.Place{Root: t.TempDir(), State: t.TempDir(), UID: os.Getuid(),
		Shown: []string{"/", filepath.Dir(os.Args[0])}} // go test may build this program where boxes have a folder of their own
	p := place.Policy(sandbox.Normal, v, sandbox.DefaultLimits(), nil, nil)
	return *p.TempIn(t.TempDir())
}

// stacks counts those that were started.
var stacks atomic.Int64

// running is a command in a box.
type running struct {
	lines   *bufio.Scanner
	network *boxnet.Network
	end     func()
}

func start(t testing.TB, p sandbox.Policy, env []string, args ...string) *running {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c, entry, err := sandbox.Prepare(process.Command{Args: append([]string{os.Args[0], tryCommand}, args...), Dir: "/",
		Env: append(os.Environ(), env...), Stdout: write, Stderr: write}, p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Cmd{Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stdout: write, Stderr: write, ExtraFiles: c.Extra, SysProcAttr: c.Sys}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	if err := entry.Wait(); err != nil {
		t.Fatal(err)
	}
	go entry.Outcome(func(syscall.WaitStatus) {})
	network, err := boxnet.Open(entry, p, boxnet.Options{Logf: t.Logf, Forward: sandbox.FirstPort(env),
		Ways: func() (boxnet.Ways, error) { stacks.Add(1); return boxnet.Ways{Stack: Serve}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{lines: bufio.NewScanner(read), network: network}
	r.end = sync.OnceFunc(func() {
		network.Close()
		entry.Close()
		_ = cmd.Wait()
		_ = read.Close()
	})
	t.Cleanup(r.end)
	return r
}

func (r *running) line() string {
	r.lines.Scan()
	return r.lines.Text()
}

// try says what came of one try in a box.
func try(t testing.TB, p sandbox.Policy, args ...string) string {
	t.Helper()
	r := start(t, p, nil, args...)
	defer r.end()
	return r.line()
}

// listen serves on this machine until the test has ended.
func listen(t testing.TB, address string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go echoAll(l)
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

const machineCommand = "__machine"

// big is how much is passed at once.
const big = 100_000_000

// The other machine, in a network namespace.
const (
	own4, other4 = "198.51.100.1", "198.51.100.2"
	own6, other6 = "fd12:3456::1", "fd12:3456::2"
	atDevice     = "pawlother"
)

// otherMachine starts one that this machine reaches by an address.
func otherMachine(t testing.TB) {
	t.Helper()
	ip, err := exec.LookPath("ip")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("another machine needs root and ip")
	}
	cmd := exec.Command(os.Args[0], machineCommand, ip)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	runtime.LockOSThread() // which the other one ends with
	t.Cleanup(runtime.UnlockOSThread)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = exec.Command(ip, "link", "del", atDevice).Run() // it went with the other one
	})
	for _, args := range [][]string{
		{"link", "add", atDevice, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(cmd.Process.Pid)},
		{"addr", "add", own4 + "/30", "dev", atDevice}, {"-6", "addr", "add", own6 + "/64", "dev", atDevice, "nodad"},
		{"link", "set", atDevice, "up"},
	} {
		if text, err := exec.Command(ip, args...).CombinedOutput(); err != nil {
			t.Skipf("ip %v: %s", args, text)
		}
	}
	_, _ = io.WriteString(in, "go\n")
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
}

// beMachine is the other machine: echo at 7000, a big file at 7001, a place for one at 7002, and
// a connection that is reset at 7003.
func beMachine(ip string) {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	for _, args := range [][]string{
		{"addr", "add", other4 + "/30", "dev", "eth0"}, {"-6", "addr", "add", other6 + "/64", "dev", "eth0", "nodad"},
		{"link", "set", "eth0", "up"}, {"link", "set", "lo", "up"},
	} {
		if text, err := exec.Command(ip, args...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "ip %v: %s\n", args, text)
		}
	}
	serve := func(port string, answer func(*net.TCPConn)) {
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer func() { _ = c.Close() }()
					answer(c.(*net.TCPConn))
				}()
			}
		}()
	}
	serve("7000", func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	serve("7001", func(c *net.TCPConn) { _, _ = io.Copy(c, pattern(big)) })
	serve("7002", func(c *net.TCPConn) {
		sum := newSum()
		n, _ := io.Copy(sum, c)
		_, _ = fmt.Fprintf(c, "%d %x", n, sum.Sum(nil))
	})
	serve("7003", func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.SetLinger(0)
	})
	u, err := net.ListenPacket("udp", ":7000")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println("ready")
	for buf := make([]byte, 1<<16); ; {
		n, from, err := u.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = u.WriteTo(buf[:n], from)
	}
}

// What listens on this machine is reached without a box, and from none, by none of its
// addresses.
func TestThisMachineIsNotReached(t *testing.T) {
	p := policyOf(t)
	port := listen(t, ":0")
	addresses := []string{"127.0.0.1", "127.1.2.3", "localhost", "0.0.0.0"}
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && !prefix.Addr().IsLinkLocalUnicast() {
			addresses = append(addresses, prefix.Addr().String())
		}
	}
	for _, a := range addresses {
		at := net.JoinHostPort(a, port)
		if got, err := askAt("tcp", at, "hello"); err != nil || got != "hello" {
			t.Errorf("%s without a box: %q, %v", at, got, err)
		}
		if got := try(t, p, "ask", "tcp", at); got != "refused" {
			t.Errorf("%s from a box: %s", at, got)
		}
	}
	for _, a := range []string{"169.254.169.254", "168.63.129.16", "[fd00:ec2::254]", "[::ffff:127.0.0.1]"} {
		if got := try(t, p, "ask", "tcp", a+":"+port); got != "refused" {
			t.Errorf("%s from a box: %s", a, got)
		}
	}
	if got := try(t, p, "ask", "udp", "169.254.169.254:53"); got != "refused" {
		t.Errorf("the metadata service by UDP: %s", got)
	}
}

// Boxes do not reach each other, and each has all ports.
func TestBoxesAreApart(t *testing.T) {
	p := policyOf(t)
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		at := host + ":18080"
		one, two := start(t, p, nil, "serve", at), start(t, p, nil, "serve", at)
		if a, b := one.line(), two.line(); a != "serving" || b != "serving" {
			t.Errorf("two that serve at %s: %s, %s", at, a, b)
		}
		if got := try(t, p, "ask", "tcp", at); got != "refused" {
			t.Errorf("%s from a third box: %s", at, got)
		}
		if got := try(t, p, "both", at); got != "own" {
			t.Errorf("%s in one box: %s", at, got)
		}
		one.end()
		two.end()
	}
}

// A door leads to the same port of this machine, whichever loopback address a server there has.
func TestDoors(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		p := policyOf(t)
		port := listen(t, host+":0")
		n, _ := strconv.Atoi(port)
		p.Doors = []int{n}
		for _, address := range []string{"127.0.0.1:", "[::1]:", "localhost:"} {
			if got := try(t, p, "ask", "tcp", address+port); got != "hello" {
				t.Errorf("%s%s, to a server on %s: %s", address, port, host, got)
			}
		}
		if got := try(t, p, "ask", "tcp", "127.0.0.1:"+listen(t, host+":0")); got != "refused" {
			t.Errorf("a port without a door: %s", got)
		}
		p = *p.Offline()
		if got := try(t, p, "ask", "tcp", "127.0.0.1:"+port); p.Own || got != "refused" {
			t.Errorf("a door offline: %s", got)
		}
	}
}

// The ports of a workspace are reached from outside in the box that serves them, and others are not.
func TestInward(t *testing.T) {
	p := policyOf(t)
	folder := p.Inward
	for _, at := range []string{"127.0.0.1:20001", "[::1]:20001"} {
		r := start(t, p, []string{"PAWL_PORT_BASE=20000"}, "serve", at)
		other := start(t, p, []string{"PAWL_PORT_BASE=20000"}, "serve", "127.0.0.1:20002")
		if a, b := r.line(), other.line(); a != "serving" || b != "serving" {
			t.Fatal(a, b)
		}
		for port, want := range map[int]bool{20001: true, 20002: true, 20003: false} {
			c, err := boxnet.Dial(t.Context(), folder, port)
			if (err == nil) != want {
				t.Errorf("port %d: %v", port, err)
			}
			if err != nil {
				continue
			}
			_, _ = c.Write([]byte("hello"))
			_ = c.(*net.TCPConn).CloseWrite()
			if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
				t.Errorf("port %d answers %q, %v", port, got, err)
			}
			_ = c.Close()
		}
		r.end()
		other.end()
	}
	if left, err := os.ReadDir(folder); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
	// What a killed one left is no box, and what listens on this machine is reached then.
	port := listen(t, "127.0.0.1:0")
	n, _ := strconv.Atoi(port)
	stale := filepath.Join(folder, fmt.Sprintf("%d-1-1", n-1))
	if fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err != nil || syscall.Bind(fd, &syscall.SockaddrUnix{Name: stale}) != nil || syscall.Close(fd) != nil {
		t.Skip("no socket can be left")
	}
	c, err := boxnet.Dial(t.Context(), folder, n)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := os.Lstat(stale); err == nil {
		t.Error("the socket of a killed one is still there")
	}
}

// A browser on this machine reaches the ports of a workspace while its shell runs.
func TestForwarded(t *testing.T) {
	p := policyOf(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	at := l.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	_ = l.Close()
	r := start(t, p, []string{"PAWL_PORT_BASE=" + port}, "serve", "localhost:"+port)
	if said := r.line(); said != "serving" {
		t.Fatal(said)
	}
	if got, err := askAt("tcp", at, "hello"); got != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	r.end()
	if got, err := askAt("tcp", at, "hello"); err == nil {
		t.Errorf("after the end: %q", got)
	}
}

// A box that sends nothing needs no stack, and one that has ended leaves no namespace behind.
func TestLittleIsMade(t *testing.T) {
	p := policyOf(t)
	before := stacks.Load()
	for range 5 {
		r := start(t, p, nil, "namespace")
		name := r.line()
		r.end()
		all, _ := filepath.Glob("/proc/[0-9]*/ns/net")
		for _, of := range all {
			if other, err := os.Readlink(of); err == nil && other == name || !strings.HasPrefix(name, "net:") {
				t.Errorf("%s is still in %s", of, name)
			}
		}
	}
	if after := stacks.Load(); after != before {
		t.Errorf("%d stacks for boxes that send nothing", after-before)
	}
	try(t, p, "ask", "tcp", "169.254.0.9:9")
	if after := stacks.Load(); after != before+1 {
		t.Errorf("%d stacks for a box that sends", after-before)
	}
}

// Another machine is reached as without a box.
func TestAnotherMachine(t *testing.T) {
	p := policyOf(t)
	otherMachine(t)
	for _, host := range []string{other4, "[" + other6 + "]"} {
		for _, network := range []string{"tcp", "udp"} {
			if got := try(t, p, "ask", network, host+":7000"); got != "hello" {
				t.Errorf("%s %s: %s", network, host, got)
			}
		}
		if got := try(t, p, "ask", "tcp", host+":7009"); got != "refused" {
			t.Errorf("%s, where nobody listens: %s", host, got)
		}
		if got, want := try(t, p, "download", host+":7001"), fmt.Sprintf("%d %s", big, sumOf(big)); got != want {
			t.Errorf("download: %s", got)
		}
		if got, want := try(t, p, "upload", host+":7002", strconv.Itoa(big)), fmt.Sprintf("%d %s", big, sumOf(big)); got != want {
			t.Errorf("upload: %s", got)
		}
		if got := try(t, p, "many", host+":7000", "200"); got != "all" {
			t.Errorf("many: %s", got)
		}
		if got := try(t, p, "ask", "tcp", host+":7003"); !strings.Contains(got, "reset by peer") {
			t.Errorf("a reset: %s", got)
		}
	}
	p.Shut = []int{7000}
	if got := try(t, p, "ask", "tcp", other4+":7000"); got != "refused" {
		t.Errorf("a port that is shut: %s", got)
	}
	r := start(t, p, nil, "ask", "tcp", own4+":7000")
	if got := r.line(); got != "refused" || !slices.Contains(r.network.Refused(), "connection to "+own4+":7000: the port of the cluster's database or engine") {
		t.Errorf("%s, %q", got, r.network.Refused())
	}
}

// Names are looked up by the resolvers of this machine, also where these are on its loopback.
func TestNames(t *testing.T) {
	p := policyOf(t)
	u, err := net.ListenPacket("udp", "127.0.0.99:53")
	if err != nil {
		t.Skip("port 53 cannot be opened: ", err)
	}
	t.Cleanup(func() { _ = u.Close() })
	go func() {
		for buf := make([]byte, 1500); ; {
			n, from, err := u.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = u.WriteTo(dnsAnswer(buf[:n]), from)
		}
	}()
	dir := t.TempDir()
	for name, text := range map[string]string{"machine": "nameserver 127.0.0.99\n", "box": "nameserver " + sandbox.Resolvers()[0].String() + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := resolvConf
	resolvConf = filepath.Join(dir, "machine")
	defer func() { resolvConf = before }()
	p.Binds = []sandbox.Bind{{From: filepath.Join(dir, "box"), To: "/etc/resolv.conf", ReadOnly: true}}
	if got := try(t, p, "look up", "some.example."); got != "198.51.100.7" {
		t.Errorf("found %s", got)
	}
	if got := try(t, p, "ask", "tcp", sandbox.Resolvers()[0].String()+":80"); got != "refused" {
		t.Errorf("the address of a resolver at another port: %s", got)
	}
}

// dnsAnswer is 198.51.100.7 to a question of an address, and nothing to others.
func dnsAnswer(ask []byte) []byte {
	end := 12
	for end < len(ask) && ask[end] != 0 {
		end += int(ask[end]) + 1
	}
	question := ask[12 : end+5]
	isA := ask[end+2] == 1
	out := append(slices.Clone(ask[:2]), 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
	out = append(out, question...)
	if isA {
		out[7] = 1
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 51, 100, 7)
	}
	return out
}

// BenchmarkStack is bytes from another machine into a box.
func BenchmarkStack(b *testing.B) {
	p := policyOf(b)
	otherMachine(b)
	b.SetBytes(big)
	for b.Loop() {
		if got := try(b, p, "download", other4+":7001"); !strings.HasPrefix(got, strconv.Itoa(big)) {
			b.Fatal(got)
		}
	}
}
