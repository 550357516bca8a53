package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// otherNumbers is where the numbers of the x32 calls begin.
	otherNumbers = 0x40000000
)
