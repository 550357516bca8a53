//go:build !linux

package peer

import "net"

func (c *Check) look(net.Conn) bool { return true }
