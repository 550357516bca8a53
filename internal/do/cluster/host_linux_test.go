package cluster_test

import "syscall"

// onHost gives a process a host name of its own: others judge it by its lease.
func onHost() *syscall.SysProcAttr { return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS} }

func rename(host string) error { return syscall.Sethostname([]byte(host)) }
