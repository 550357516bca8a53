package egress

import (
	_ "embed"
	"net/netip"
	"strings"
	"sync"
)

//go:embed special.txt
var specialText string

// special are ranges of addresses that no public service has, with what they
// are called in messages. The first match counts.
var special = sync.OnceValue(func() (all []specialRange) {
	for line := range strings.Lines(specialText) {
		prefix, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, specialRange{netip.MustParsePrefix(prefix), name})
	}
	return all
})

type specialRange struct {
	prefix netip.Prefix
	name   string
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
	for _, s := range special() {
		if s.prefix.Contains(a) {
			return s.name
		}
	}
	if a.Is6() && !global6.Contains(a) {
		return "a reserved address"
	}
	return ""
}
