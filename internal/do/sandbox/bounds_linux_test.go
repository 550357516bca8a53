package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAFileCannotGrowWithoutEnd(t *testing.T) {
	p := newPlace(t)
	pol := p.policy(tiers(t)[0].Means)
	pol.Limits.FileSize = 64 << 10
	p.try(t, pol, "big file")
	if info, err := os.Stat(filepath.Join(p.work, "big")); err != nil || info.Size() > 64<<10 {
		t.Errorf("the file has %v bytes, %v", info, err)
	}
}

func TestProcessesCannotGrowWithoutEnd(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root is not held by the limit on processes, but by control groups")
	}
	if !offer().User {
		t.Skipf("no user namespace: %s", offer().Missing)
	}
	p := newPlace(t)
	pol := p.policy(Judge(Normal, offer(), false).Means)
	pol.Limits.Processes = 60
	r := run(t, pol, p.work, os.Args[0], tryCommand, "processes", "200")
	if r.code != refusedCode {
		t.Errorf("exit %d, %s; want it refused", r.code, r.out)
	}
}

// closed is a policy without a network, and what a test starts outside.
func closed(t *testing.T) (place, Policy) {
	t.Helper()
	v := Judge(Paranoid, offer(), false)
	if v.Refused != "" {
		t.Skip(v.Refused)
	}
	p := newPlace(t)
	pol := p.policy(v.Means)
	pol.Closed = true
	return p, pol
}

func TestClosedBoxReachesNobody(t *testing.T) {
	p, pol := closed(t)
	for _, network := range []string{"tcp", "tcp6"} {
		address := map[string]string{"tcp": "127.0.0.1:0", "tcp6": "[::1]:0"}[network]
		l, err := net.Listen(network, address)
		if err != nil {
			t.Logf("%s does not exist: %v", network, err)
			continue
		}
		t.Cleanup(func() { _ = l.Close() })
		p.try(t, pol, "dial", network, l.Addr().String())
	}
	abstract, err := net.Listen("unix", "@pawl-test-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = abstract.Close() }()
	p.try(t, pol, "dial", "unix", abstract.Addr().String())
	hidden, err := net.Listen("unix", filepath.Join(p.secret, "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hidden.Close() }()
	p.try(t, pol, "dial", "unix", hidden.Addr().String())

	p.try(t, pol, "dial", "tcp", "192.0.2.1:80")
	p.try(t, pol, "dial", "tcp", "[2001:db8::1]:80")
	p.try(t, pol, "send", "udp", "192.0.2.1:53")
	p.try(t, pol, "send", "udp", "[2001:db8::1]:53")
	p.try(t, pol, "resolve", "example.org")
	p.try(t, pol, "socket", strconv.Itoa(unix.AF_VSOCK), strconv.Itoa(unix.SOCK_STREAM), "0")
	p.try(t, pol, "socket", strconv.Itoa(unix.AF_PACKET), strconv.Itoa(unix.SOCK_RAW), "0")
	p.try(t, pol, "socket", strconv.Itoa(unix.AF_INET), strconv.Itoa(unix.SOCK_RAW), strconv.Itoa(unix.IPPROTO_ICMP))
}

func TestLoopbackWorksInAClosedBox(t *testing.T) {
	p, pol := closed(t)
	if r := run(t, pol, p.work, os.Args[0], tryCommand, "own loopback"); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.out)
	}
}

func TestProxyIsReachedFromAClosedBox(t *testing.T) {
	p, pol := closed(t)
	wait, entry, err := start(t, pol, p.work, os.Args[0], tryCommand, "dial", "tcp", "127.0.0.1:"+strconv.Itoa(ProxyPort))
	if err != nil {
		t.Fatal(err)
	}
	defer entry.Close()
	if len(entry.Listeners) != 1 {
		t.Fatalf("%d listeners came out of the box", len(entry.Listeners))
	}
	defer func() { _ = entry.Listeners[0].Close() }()
	conn, err := entry.Listeners[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if r := wait(); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.out)
	}
}

func TestCommandThatCannotBeExecuted(t *testing.T) {
	p := newPlace(t)
	script := filepath.Join(p.work, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, entry, err := start(t, p.policy(tiers(t)[0].Means), p.work, script)
	defer entry.Close()
	if err == nil || !strings.Contains(err.Error(), "names the interpreter /no/such/interpreter, which does not exist") {
		t.Errorf("got %v, want the interpreter named", err)
	}
}

// Where nothing is mounted, Landlock hides what is hidden, but for what lies in a folder
// that may be written.
func TestHideable(t *testing.T) {
	for _, c := range []struct {
		mounts bool
		write  []string
		want   string
	}{
		{false, nil, "/here/secret /home/ada/.ssh"},
		{false, []string{"/here"}, "/home/ada/.ssh"},
		{false, []string{"/here", "/home/ada/.ssh"}, ""},
		{true, nil, ""},
	} {
		p := Policy{Means: Means{Mounts: c.mounts}, Write: c.write, Hide: []string{"/here/secret", "/home/ada/.ssh"}}
		if got := strings.Join(hideable(p), " "); got != c.want {
			t.Errorf("with mounts %v and %v to write, Landlock hides %q, want %q", c.mounts, c.write, got, c.want)
		}
	}
}
