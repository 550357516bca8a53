package netstack

import (
	"cmp"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/do/netlink"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

const dnsPort = 53

// refusal is why an address is not dialled.
type refusal string

func (r refusal) Error() string { return string(r) }

// reach is what one box may reach.
type reach struct{ doors, shut []int }

// clouds are addresses besides the link-local ones at which clouds describe a machine to itself.
var clouds = []netip.Addr{
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
}

// findTarget returns what to dial for a program that wants to reach an address.
func (r reach) findTarget(network string, to netip.AddrPort) (netip.AddrPort, error) {
	a, port := to.Addr().Unmap(), int(to.Port())
	if i := slices.Index(sandbox.Resolvers(), a); i >= 0 {
		if port == dnsPort {
			return findResolver(i)
		}
		return to, syscall.ECONNREFUSED
	}
	switch {
	case network == "tcp" && slices.Contains(r.shut, port):
		return to, refusal("the port of the cluster's database or engine")
	case a.IsLinkLocalUnicast(), slices.Contains(clouds, a):
		return to, refusal("a link-local address, or one of a cloud's for its machines")
	}
	kind, err := routeKindOf(a)
	switch {
	case err != nil:
		return to, err
	case kind == unix.RTN_LOCAL && slices.Contains(r.doors, port) && network == "tcp", kind == unix.RTN_UNICAST:
		return netip.AddrPortFrom(a, to.Port()), nil
	case kind == unix.RTN_LOCAL:
		return to, refusal("an address of this machine")
	}
	return to, syscall.EHOSTUNREACH
}

// routeKindOf asks the kernel where packets to an address go: to this machine, to another one, to
// several, or nowhere. It is the kernel that knows all addresses that are this machine's.
func routeKindOf(a netip.Addr) (kind uint8, err error) {
	ask := unix.RtMsg{Family: unix.AF_INET, Dst_len: uint8(a.BitLen())} //nolint:gosec // small
	if a.Is6() {
		ask.Family = unix.AF_INET6
	}
	to := netlink.Attribute(unix.RTA_DST, a.AsSlice())
	answer, err := netlink.Ask(unix.RTM_GETROUTE, 0, netlink.Fixed(&ask), to)
	if err != nil || len(answer) < unix.SizeofRtMsg {
		return 0, cmp.Or[error](err, unix.EBADMSG)
	}
	const kindAt = 7 // in what a route is
	return answer[kindAt], nil
}

// resolvConf is where the machine's resolvers are named.
var resolvConf = "/etc/resolv.conf"

// nameserver is a line of it.
var nameserver = lazy.Regexp(`(?m)^[ \t]*nameserver[ \t]+(\S+)`)

// findResolver finds the one of the machine's resolvers that stands at a place in the file. It is
// read each time: a machine changes its network.
func findResolver(i int) (netip.AddrPort, error) {
	text, _ := os.ReadFile(resolvConf)
	found := nameserver().FindAllSubmatch(text, -1)
	if len(found) == 0 { // programs ask this machine then
		found = [][][]byte{{nil, []byte("127.0.0.1")}}
	}
	if i >= len(found) {
		return netip.AddrPort{}, syscall.ECONNREFUSED
	}
	a, err := netip.ParseAddr(string(found[i][1]))
	return netip.AddrPortFrom(a, dnsPort), err
}
