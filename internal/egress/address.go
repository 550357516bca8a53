package egress

import "net/netip"

// special are ranges of addresses that no public service has, with what they
// are called in messages. The first match counts.
var special = []struct {
	prefix netip.Prefix
	name   string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "the cloud's metadata service"},
	{netip.MustParsePrefix("168.63.129.16/32"), "the cloud's metadata service"},
	{netip.MustParsePrefix("100.100.100.200/32"), "the cloud's metadata service"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "the cloud's metadata service"},

	{netip.MustParsePrefix("0.0.0.0/8"), "this host"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's shared address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a protocol's own address"},
	{netip.MustParsePrefix("192.0.2.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a relay's address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "an address for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},

	{netip.MustParsePrefix("::/128"), "this host"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("fc00::/7"), "a private address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a private address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("2001::/23"), "a protocol's own address"}, // Teredo is here
	{netip.MustParsePrefix("2001:db8::/32"), "an address for documentation"},
	{netip.MustParsePrefix("2002::/16"), "a relay's address"}, // 6to4
	{netip.MustParsePrefix("3fff::/20"), "an address for documentation"},
}

var (
	global6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

// notPublic says what is wrong with dialling an address for a name from
// outside, "" when nothing is.
func notPublic(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "no address"
	case a.Zone() != "":
		return "an address with a zone"
	case a.Is4In6():
		return "an IPv4 address in IPv6 clothes"
	case nat64.Contains(a):
		b := a.As16()
		return notPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.name
		}
	}
	if a.Is6() && !global6.Contains(a) {
		return "a reserved address"
	}
	return ""
}
