package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	otherNumbers = 0
)

// refuseOldCalls are none: the architecture has the newer calls only.
func (*filter) refuseOldCalls() {}
