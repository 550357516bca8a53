//go:build linux && !amd64

package main

import "golang.org/x/sys/unix"

var linkCalls = []uint32{unix.SYS_LINKAT}
