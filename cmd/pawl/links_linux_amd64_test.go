package main

import "golang.org/x/sys/unix"

var linkCalls = []uint32{unix.SYS_LINK, unix.SYS_LINKAT}
