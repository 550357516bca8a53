package sandbox

import (
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// MTU is the size of the packets that come out of a box with a network of its own. It is
// large, so that few carry much; IPv6 allows no more.
const MTU = 65520

// InwardFolder has the sockets by which the ports of boxes are reached. It lies below pawl's
// own folder of the repository.
func InwardFolder(state string) string { return filepath.Join(state, "ports") }

// FirstPort of a workspace, as its commands see it; 0 in none.
func FirstPort(env []string) int {
	port, _ := strconv.Atoi(lists.Getenv(env, "PAWL_PORT_BASE"))
	return port
}

// Resolvers are the addresses that stand in such a box for the machine's resolvers, of which
// programs use three.
func Resolvers() []netip.Addr {
	first := netip.AddrFrom4([4]byte{192, 0, 0, 3})
	return []netip.Addr{first, first.Next(), first.Next().Next()}
}
