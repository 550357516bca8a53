package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// otherNumbers is where the numbers of the x32 calls begin.
	otherNumbers = 0x40000000
)

// refuseOldCalls are those of calls that newer architectures do not have.
func (f *filter) refuseOldCalls() {
	f.refuseBits(unix.SYS_CHMOD, 1, setID)
	f.refuseBits(unix.SYS_CREAT, 1, setID)
	f.refuseBits(unix.SYS_MKNOD, 1, setID)
	f.refuseMaking(unix.SYS_OPEN, 1, 2)
}
