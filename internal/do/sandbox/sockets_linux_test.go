package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func kinds(kind int) []string { return []string{strconv.Itoa(unix.AF_UNIX), strconv.Itoa(kind), "0"} }

// listenAt opens sockets of other programs: a stream and datagrams.
func listenAt(t *testing.T, dir string) (stream, datagram string) {
	t.Helper()
	stream, datagram = filepath.Join(dir, "s"), filepath.Join(dir, "d")
	l, err := net.Listen("unix", stream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	d, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: datagram, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return stream, datagram
}

func TestNoSocketOfAnyProgramInAClosedBox(t *testing.T) {
	p, pol := closed(t)
	made := p.outside
	stream, datagram := listenAt(t, made)
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET, unix.SOCK_RAW} {
		control(t, "", "socket", kinds(kind)...)
		p.try(t, pol, "socket", kinds(kind)...)
		p.try(t, pol, "socket", kinds(kind|unix.SOCK_CLOEXEC)...)
	}
	control(t, "", "dial", "unix", stream)
	p.try(t, pol, "dial", "unix", stream)
	control(t, "", "send", "unixgram", datagram)
	p.try(t, pol, "send", "unixgram", datagram)
	for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW} {
		control(t, "", "pair that sends", strconv.Itoa(kind), datagram)
		p.try(t, pol, "pair that sends", strconv.Itoa(kind), datagram)
		p.try(t, pol, "pair that sends", strconv.Itoa(kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC), datagram)
	}
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
		for _, flags := range []int{0, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK} {
			if r := run(t, pol, p.work, os.Args[0], tryCommand, "pair", strconv.Itoa(kind|flags)); r.code != 0 {
				t.Errorf("a pair of kind %#x: %s", kind|flags, r.out)
			}
		}
	}
}

// A closed box that may have sockets reaches none of those that are there.
func TestSocketsOfItsOwnInAClosedBox(t *testing.T) {
	p, pol := closed(t)
	pol.Sockets, pol.Hide, pol.Show = true, []string{"/"}, p.fromNothing(pol.Means).Show
	stream, datagram := listenAt(t, p.outside)
	p.try(t, pol, "dial", "unix", stream)
	p.try(t, pol, "send", "unixgram", datagram)
	if r := run(t, pol, p.work, os.Args[0], tryCommand, "own socket"); r.code != 0 {
		t.Error(r.out)
	}
}

func TestSocketsThatAreNotShown(t *testing.T) {
	for _, tier := range tiers(t) {
		if !tier.Mounts {
			continue
		}
		t.Run(tier.name, func(t *testing.T) {
			p := newPlace(t)
			stream, datagram := listenAt(t, p.outside)
			within, _ := listenAt(t, p.work)
			pol := p.fromNothing(tier.Means)
			control(t, "", "dial", "unix", stream)
			control(t, "", "send", "unixgram", datagram)
			p.try(t, pol, "dial", "unix", stream)
			p.try(t, pol, "send", "unixgram", datagram)
			p.try(t, pol, "dial", "unix", "/proc/self/root"+stream)
			for _, path := range []string{within, "own"} {
				args := []string{os.Args[0], tryCommand, "dial", "unix", path}
				if path == "own" {
					args = []string{os.Args[0], tryCommand, "own socket"}
				}
				if r := run(t, pol, p.work, args...); r.code != 0 {
					t.Error(r.out)
				}
			}
		})
	}
}
