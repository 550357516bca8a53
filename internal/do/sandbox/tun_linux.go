package sandbox

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/do/netlink"
)

// tunName is the device that leads out of a box with a network of its own.
const (
	tunName  = "pawl"
	tunIndex = 4096
)

// The addresses of a box. They are no machine's: of IPv4 one that means the machine that has it, and a random
// prefix that IPv6 leaves to each. A program prefers IPv4 with such an address.
var (
	tunIPv4 = []byte{192, 0, 0, 2}
	tunIPv6 = []byte{0xfd, 0x6f, 0x7c, 0x1a, 0x90, 0xe4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}
)

// openWayOut makes a device to which all goes that does not stay in the box, and passes out the
// descriptor at which the packets are.
func openWayOut() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open /dev/net/tun: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq(tunName)
	if err != nil {
		return fmt.Errorf("cannot make a network device: %w", err)
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	err = unix.IoctlSetPointerInt(fd, unix.TUNSETIFINDEX, tunIndex)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil { // it goes with the namespace; who closes the descriptor would wait for it else
		err = unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
	}
	if err != nil {
		return fmt.Errorf("cannot make a network device: %w", err)
	}
	if err := setUpDevice(); err != nil {
		return fmt.Errorf("cannot set up its network: %w", err)
	}
	return passDescriptor(fd)
}

// setUpDevice gives the device its addresses, and the routes to everywhere. A kernel without
// IPv6 has one address alone.
func setUpDevice() error {
	word := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	up := unix.IfInfomsg{Index: tunIndex, Flags: unix.IFF_UP, Change: unix.IFF_UP | unix.IFF_MULTICAST}
	// Without an address that the kernel makes it sends nothing by itself.
	quiet := netlink.Attribute(unix.IFLA_INET6_ADDR_GEN_MODE, []byte{1})
	quiet = netlink.Attribute(unix.IFLA_AF_SPEC, netlink.Attribute(unix.AF_INET6, quiet))
	_, _ = netlink.Ask(unix.RTM_NEWLINK, 0, netlink.Fixed(&unix.IfInfomsg{Index: tunIndex}), quiet)
	_, err := netlink.Ask(unix.RTM_NEWLINK, 0, netlink.Fixed(&up), netlink.Attribute(unix.IFLA_MTU, word(MTU)))
	for family, own := range map[uint8][]byte{unix.AF_INET: tunIPv4, unix.AF_INET6: tunIPv6} {
		size := uint8(8 * len(own)) //nolint:gosec // small
		address := unix.IfAddrmsg{Family: family, Prefixlen: size, Flags: unix.IFA_F_NODAD, Index: tunIndex}
		local := netlink.Attribute(unix.IFA_LOCAL, own)
		_, aerr := netlink.Ask(unix.RTM_NEWADDR, unix.NLM_F_CREATE, netlink.Fixed(&address), local)
		route := unix.RtMsg{Family: family, Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_STATIC,
			Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST}
		device := netlink.Attribute(unix.RTA_OIF, word(tunIndex))
		_, rerr := netlink.Ask(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, netlink.Fixed(&route), device)
		if family == unix.AF_INET {
			err = cmp.Or(err, aerr, rerr)
			continue
		}
		// Else what is sent to a new address of IPv6 is not taken for a little while.
		route.Table, route.Type, route.Dst_len, route.Scope = unix.RT_TABLE_LOCAL, unix.RTN_LOCAL, size, 0
		to := netlink.Attribute(unix.RTA_DST, own)
		_, _ = netlink.Ask(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, netlink.Fixed(&route), to, device)
	}
	return err
}
