//go:build !linux

package peer

import "net"

func (c *Check) findHolder(net.Conn) bool { return true }
