//go:build !linux

package postgres

import "syscall"

// setSendTimeout leaves it to the system when a connection ends.
func setSendTimeout(string, string, syscall.RawConn) error { return nil }
