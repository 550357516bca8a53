package pgtest

import "syscall"

// withTest has the server end with the process that started it.
func withTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }
