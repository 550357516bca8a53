//go:build !linux

package postgres

import "syscall"

// giveUp leaves it to the system when a connection ends.
func giveUp(string, string, syscall.RawConn) error { return nil }
