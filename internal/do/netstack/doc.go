// Package netstack is the network beyond a box: it takes the packets that leave the box,
// and makes the connections of this machine that they ask for.
//
//	program ── kernel of the box ── tun ── TCP and UDP, of gVisor ── dial ──▶ another machine
//
// Only what the routing table of this machine leads away from it is dialled: neither its
// loopback nor any other of its own addresses, and no link-local address, where clouds
// give out credentials. The exceptions are the doors of the box. Names are looked up at
// addresses that stand for the machine's resolvers.
package netstack
