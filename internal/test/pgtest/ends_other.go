//go:build !linux

package pgtest

import "syscall"

func withTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
