package sandbox

import (
	"net"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// An open box reaches every port but those that are shut: by no address, and by no way to connect that
// Landlock does not look at.
func TestShutPorts(t *testing.T) {
	if !CanShut(Means{Landlock: offer().Landlock, Seccomp: offer().Seccomp}) {
		t.Skip("this kernel has no Landlock 4")
	}
	listen := func(address string) (string, int) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return "", 0
		}
		t.Cleanup(func() { _ = l.Close() })
		return l.Addr().String(), l.Addr().(*net.TCPAddr).Port
	}
	open, _ := listen("127.0.0.1:0")
	shut, port := listen("127.0.0.1:0")
	everywhere, ports := []string{shut}, []int{port}
	if _, other := listen("[::]:0"); other > 0 { // a machine without IPv6 has none
		everywhere = append(everywhere, "127.0.0.1:"+strconv.Itoa(other), "[::1]:"+strconv.Itoa(other))
		ports = append(ports, other)
	}
	for _, tier := range tiers(t) {
		if !CanShut(tier.Means) {
			continue
		}
		t.Run(tier.name, func(t *testing.T) {
			p := newPlace(t)
			pol := p.policy(tier.Means)
			pol.Shut = ports
			for _, address := range everywhere {
				control(t, "", "dial", "tcp", address)
				p.try(t, pol, "dial", "tcp", address)
			}
			for _, way := range []string{"fast open", "multipath"} {
				p.try(t, pol, way, strconv.Itoa(port))
			}
			if r := run(t, pol, p.work, os.Args[0], tryCommand, "dial", "tcp", open); r.code != 0 {
				t.Errorf("another port: %s", r.out)
			}
		})
	}
}

// sendAtOnce connects with the first bytes, and by no call of connect.
func sendAtOnce(a []string) error {
	s, to, err := socketTo(0, a[0])
	if err == nil {
		err = unix.Sendto(s, []byte("x"), unix.MSG_FASTOPEN, to)
	}
	return err
}

// connectByPaths connects with multipath TCP, which falls back to TCP.
func connectByPaths(a []string) error {
	s, to, err := socketTo(unix.IPPROTO_MPTCP, a[0])
	if err == nil {
		err = unix.Connect(s, to)
	}
	return err
}

func socketTo(protocol int, port string) (int, unix.Sockaddr, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol)
	n, _ := strconv.Atoi(port)
	return s, &unix.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}}, err
}
