package peer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary is the programs that speak to a server.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "__judge" {
		judge(os.Args[2])
		os.Exit(0)
	}
	if len(os.Args) == 3 && speakers[os.Args[1]] != nil {
		speakers[os.Args[1]](os.Args[2])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// speakers send a request each, and stay until stdin ends. Some hide who they are.
var speakers = map[string]func(address string){
	"__plain": func(address string) {
		c := dial(address)
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = c.Close()
	},
	"__six": func(address string) {
		_, port, _ := net.SplitHostPort(address)
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
		number, _ := strconv.Atoi(port)
		mapped := net.IPv4(127, 0, 0, 1).To16()
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrInet6{Port: number, Addr: [16]byte(mapped)})
		}
		if err == nil {
			_, err = unix.Write(fd, []byte(request))
		}
		if err != nil {
			panic(err)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	"__dark": func(address string) {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			panic(err)
		}
		c := dial(address)
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = c.Close()
	},
	"__gone": func(address string) {
		c := dial(address)
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	"__closed": func(address string) {
		_ = dial(address).Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	// A thread waits in a call for the answer; no descriptor is left.
	"__waits": func(address string) {
		fd := file(dial(address))
		waits := make(chan int)
		go func() {
			runtime.LockOSThread()
			waits <- unix.Gettid()
			_, _ = unix.Read(fd, make([]byte, 1))
		}()
		tid := <-waits
		for {
			state, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", tid))
			if bytes.Contains(state, []byte(") S ")) {
				break
			}
			runtime.Gosched()
		}
		_ = unix.Close(fd)
		fmt.Println("hidden")
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	// The socket is on its way between two ends of a pair that nobody reads.
	"__passed": func(address string) {
		fd := file(dial(address))
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			err = unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0)
		}
		if err != nil {
			panic(err)
		}
		_ = unix.Close(fd)
		fmt.Println("hidden")
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// dial connects and sends a request.
func dial(address string) net.Conn {
	c, err := net.Dial("tcp", address)
	if err == nil {
		_, err = io.WriteString(c, request)
	}
	if err != nil {
		panic(err)
	}
	return c
}

// file is the descriptor of a connection, the only one.
func file(c net.Conn) int {
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		panic(err)
	}
	_ = c.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		panic(err)
	}
	_ = f.Close()
	_ = unix.SetNonblock(fd, false)
	return fd
}

// place is a server that says of each request whether it is allowed, once it is told to look.
type place struct {
	t     *testing.T
	check *Check
	at    string
	look  chan bool // a request may be looked at
	said  chan bool
}

func newPlace(t *testing.T, network, address string, c *Check) *place {
	t.Helper()
	p := &place{t: t, check: c, look: make(chan bool, 9), said: make(chan bool, 9)}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Skip(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-p.look
		p.said <- c.Allows(r.Context())
	}))
	_ = s.Listener.Close()
	s.Listener, s.Config.ConnContext = l, c.WithConn
	s.Start()
	t.Cleanup(s.Close)
	p.at = l.Addr().String()
	return p
}

// speaks has a program speak, and returns what the server says of it; it lives on.
func (p *place) speaks(kind string, pid *int) bool {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), os.Args[0], kind, p.at)
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	*pid = cmd.Process.Pid
	p.t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if kind == "__waits" || kind == "__passed" {
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "hidden" {
			p.t.Fatalf("%s says %q, %v", kind, line, err)
		}
	}
	p.look <- true
	return <-p.said
}

// Who is accepted may speak, and nobody else, whatever the address looks like.
func TestWhoSpeaksIsKnown(t *testing.T) {
	t.Parallel()
	for _, on := range []struct{ name, address, kind string }{
		{"IPv4", "127.0.0.1:0", "__plain"}, {"IPv6", "[::1]:0", "__plain"}, {"both", "[::]:0", "__plain"}, {"IPv4 in IPv6", "127.0.0.1:0", "__six"},
	} {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			var pid, asked int
			for _, accepted := range []bool{true, false} {
				c := &Check{Unseen: true, Accepts: func(p int) bool { asked = p; return accepted }}
				p := newPlace(t, "tcp", on.address, c)
				if got := p.speaks(on.kind, &pid); got != accepted || asked != pid {
					t.Errorf("accepted %v: allowed %v, asked about %d and not %d", accepted, got, asked, pid)
				}
			}
		})
	}
}

// A request whose sender does not stay for the answer, or hides that it does, is refused
// where all processes are seen.
func TestNobodySpeaksUnseen(t *testing.T) {
	t.Parallel()
	if _, all := listProcesses(); os.Getuid() != 0 || !all {
		t.Skip("this user does not see all processes")
	}
	for _, kind := range []string{"__gone", "__closed", "__waits", "__passed"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var pid int
			// In some virtual machines nobody may look into the first process.
			c := &Check{Unseen: true, Accepts: func(p int) bool { return p != pid && p != 1 }}
			p := newPlace(t, "tcp", "127.0.0.1:0", c)
			if p.speaks(kind, &pid) {
				t.Error("it is allowed")
			}
		})
	}
}

// An end whose holder may not be looked into, as that of a tunnel of ssh, is allowed where
// the holder may speak. That one who may not hides does not help it.
func TestHoldersInTheDark(t *testing.T) {
	t.Parallel()
	if _, all := listProcesses(); os.Getuid() != 0 || !all {
		t.Skip("only root can be another user")
	}
	for _, tt := range []struct{ kind, who, want string }{
		{"__plain", "all", "true"}, {"__plain", "others", "false"}, {"__dark", "all", "true"}, {"__dark", "others", "false"},
	} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "__judge", tt.kind+" "+tt.who)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); got != tt.want || err != nil {
			t.Errorf("%s, where %s may speak: %q, %v", tt.kind, tt.who, got, err)
		}
	}
}

// judge starts a program, and prints whether it may speak where all may, or all others.
func judge(order string) {
	kind, who, _ := strings.Cut(order, " ")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	cmd := exec.Command("/proc/self/exe", kind, l.Addr().String())
	in, _ := cmd.StdinPipe()
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	conn, err := l.Accept()
	if err == nil {
		_, err = conn.Read(make([]byte, len(request)))
	}
	if err != nil {
		panic(err)
	}
	c := Check{Unseen: true, Accepts: func(pid int) bool { return who == "all" || pid != cmd.Process.Pid }}
	fmt.Println(c.findHolder(conn))
	_ = in.Close()
	_ = cmd.Wait()
}

// Each connection is looked at once.
func TestLooksOnce(t *testing.T) {
	t.Parallel()
	looks := 0
	c := &Check{Accepts: func(int) bool { looks++; return true }}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 2 {
			if !c.Allows(r.Context()) {
				w.WriteHeader(http.StatusForbidden)
			}
		}
	}))
	s.Config.ConnContext = c.WithConn
	s.Start()
	defer s.Close()
	for range 3 {
		res, err := s.Client().Get(s.URL)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	if looks != 1 {
		t.Errorf("%d looks at one connection", looks)
	}
	if !c.Allows(t.Context()) {
		t.Error("a call within this process is refused")
	}
}

// BenchmarkLook is the cost of a connection whose holder is the oldest of many processes.
func BenchmarkLook(b *testing.B) {
	for _, many := range []int{0, 500} {
		b.Run(fmt.Sprint(many, " more"), func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			ours, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = ours.Close() }()
			for range many {
				cmd := exec.Command("sleep", "1000")
				for range 20 {
					cmd.ExtraFiles = append(cmd.ExtraFiles, os.Stdin)
				}
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGKILL); _ = cmd.Wait() })
			}
			b.ResetTimer()
			var before, after syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
			defer func() {
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
				spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
				b.ReportMetric(float64(spent)/float64(b.N)/1e6, "cpu-ms/op")
			}()
			for b.Loop() {
				check := Check{Accepts: func(pid int) bool { return pid == os.Getpid() }}
				if !check.findHolder(ours) {
					b.Fatal("not found")
				}
			}
		})
	}
}
