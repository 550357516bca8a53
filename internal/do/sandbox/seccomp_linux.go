package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter is a list of checks of the system call at hand; what none of them
// refuses is allowed.

// refusal is what a refused call returns.
const refusal = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)

// Numbers that x/sys does not know.
const (
	fiosetown     = 0x8901
	siocspgrp     = 0x8902
	ioprioProcess = 1
	getRegs       = 12 // of ptrace; not on every architecture
	getFPRegs     = 14
)

// Offsets in the data that a filter sees.
const (
	dataNumber   = 0
	dataArch     = 4
	dataArgument = 16 // 8 bytes each, the low half first
)

type filter []unix.SockFilter

func (f *filter) append(code uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

func (f *filter) addLoad(offset uint32) { f.append(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }

func (f *filter) addReturn(action uint32) { f.append(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

// refuse refuses a call whatever its arguments.
func (f *filter) refuse(numbers ...uint32) { f.answerCalls(refusal, numbers...) }

// answerCalls gives one answer to calls whatever their arguments.
func (f *filter) answerCalls(action uint32, numbers ...uint32) {
	for _, n := range numbers {
		f.addLoad(dataNumber)
		f.append(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, n, 0, 1)
		f.addReturn(action)
	}
}

// refuseBits refuses a call when the low half of an argument has one of bits.
func (f *filter) refuseBits(number, argument, bits uint32) {
	f.addLoad(dataNumber)
	f.append(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, number, 0, 3)
	f.addLoad(dataArgument + 8*argument)
	f.append(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits, 0, 1)
	f.addReturn(refusal)
}

// refuseWith refuses a call when the low half of an argument is one of values.
func (f *filter) refuseWith(number uint32, argument uint32, values ...uint32) {
	f.addLoad(dataNumber)
	f.append(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, number, 0, uint8(1+2*len(values))) //nolint:gosec // a handful
	f.addLoad(dataArgument + 8*argument)
	for _, v := range values {
		f.append(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, v, 0, 1)
		f.addReturn(refusal)
	}
}

// refuseBut refuses a call unless the low half of an argument is one of values.
func (f *filter) refuseBut(number uint32, argument uint32, values ...uint32) {
	n := uint8(len(values)) //nolint:gosec // a handful
	f.addLoad(dataNumber)
	f.append(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, number, 0, n+2)
	f.addLoad(dataArgument + 8*argument)
	for i, v := range values {
		f.append(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, v, n-uint8(i), 0) //nolint:gosec // a handful
	}
	f.addReturn(refusal)
}

// filterFor is the filter of a policy.
func filterFor(p Policy) filter {
	var f filter
	// Calls of another architecture have other numbers.
	f.addLoad(dataArch)
	f.append(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0)
	f.addReturn(refusal)
	if otherNumbers != 0 {
		f.addLoad(dataNumber)
		f.append(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, otherNumbers, 0, 1)
		f.addReturn(refusal)
	}
	// Keyrings are of the user, whatever the namespace. TIOCSTI types into a
	// terminal, TIOCLINUX into a console.
	f.refuse(unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL)
	f.refuseWith(unix.SYS_IOCTL, 1, unix.TIOCSTI, unix.TIOCLINUX)
	f.refuseMachineCalls()
	if p.Judges {
		f.keepVerdict()
	}
	if p.Means.PID {
		f.spareInit()
	} else {
		f.keepToItself(p)
	}
	// What no namespace keeps in: vsock reaches the host, packet and others have
	// no use here. io_uring opens sockets unseen.
	f.refuse(unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER)
	f.refuseBut(unix.SYS_SOCKET, 0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	f.refuseBut(unix.SYS_SOCKETPAIR, 0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	if len(p.Shut) > 0 && !p.HasLoopback() { // Landlock looks at calls of connect, and at TCP alone
		f.refuseWith(unix.SYS_SOCKET, 2, unix.IPPROTO_MPTCP)
		f.refuseBits(unix.SYS_SENDTO, 3, unix.MSG_FASTOPEN)
		f.refuseBits(unix.SYS_SENDMSG, 2, unix.MSG_FASTOPEN)
		f.refuseBits(unix.SYS_SENDMMSG, 3, unix.MSG_FASTOPEN)
	}
	if p.Closed && !p.Sockets {
		f.noSockets()
	}
	f.addReturn(unix.SECCOMP_RET_ALLOW)
	return f
}

// keepVerdict lets no process write into another, such as the shell above it whose exit
// status is the verdict. Looking into one stays allowed: tools that find leaks do.
func (f *filter) keepVerdict() {
	f.refuse(unix.SYS_PROCESS_VM_WRITEV)
	f.refuseBut(unix.SYS_PTRACE, 0, unix.PTRACE_TRACEME, unix.PTRACE_PEEKTEXT, unix.PTRACE_PEEKDATA, unix.PTRACE_PEEKUSR,
		unix.PTRACE_CONT, unix.PTRACE_KILL, unix.PTRACE_SINGLESTEP, getRegs, getFPRegs, unix.PTRACE_ATTACH,
		unix.PTRACE_DETACH, unix.PTRACE_SYSCALL, unix.PTRACE_SETOPTIONS, unix.PTRACE_GETEVENTMSG, unix.PTRACE_GETSIGINFO,
		unix.PTRACE_GETREGSET, unix.PTRACE_SEIZE, unix.PTRACE_INTERRUPT, unix.PTRACE_LISTEN, unix.PTRACE_PEEKSIGINFO,
		unix.PTRACE_GETSIGMASK, unix.PTRACE_GET_SYSCALL_INFO)
}

// spareInit lets nobody slow the init of the box down, which has to end it.
func (f *filter) spareInit() {
	const init = 1
	for _, n := range []uint32{
		unix.SYS_PRLIMIT64,
		unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETAFFINITY,
	} {
		f.refuseWith(n, 0, init)
	}
	f.refuseWith(unix.SYS_SETPRIORITY, 1, init)
	f.refuseWith(unix.SYS_IOPRIO_SET, 1, init)
}

// keepToItself stands in for a process namespace: it refuses to change another
// process, as far as a call shows which one it means. A thread is named like a
// process, so what libraries do to their own threads must be allowed for all.
func (f *filter) keepToItself(p Policy) {
	f.refuseBut(unix.SYS_PRLIMIT64, 0, 0)
	f.refuseBut(unix.SYS_SCHED_SETATTR, 0, 0)
	f.refuseBut(unix.SYS_IOPRIO_SET, 0, ioprioProcess)
	f.refuseBut(unix.SYS_IOPRIO_SET, 1, 0)
	f.refuseBut(unix.SYS_SETPRIORITY, 0, unix.PRIO_PROCESS)
	if p.Means.Landlock < landlockScopes {
		f.spareProcesses(p.Spare)
		// Who owns a descriptor gets signals.
		f.refuseWith(unix.SYS_FCNTL, 1, unix.F_SETOWN, unix.F_SETOWN_EX)
		f.refuseWith(unix.SYS_IOCTL, 1, fiosetown, siocspgrp)
	}
}

// spareProcesses refuses to signal some processes and their groups, and everything at
// once.
func (f *filter) spareProcesses(pids []int) {
	values := []uint32{^uint32(0)} // kill(-1)
	for _, pid := range pids {
		// Pids are small; their negatives wrap as the kernel's do.
		values = append(values, uint32(pid), uint32(-pid)) //nolint:gosec // see above
	}
	for _, n := range []uint32{
		unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL,
		unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN,
	} {
		f.refuseWith(n, 0, values...)
	}
}

// installFilter installs the filter on the calling thread; it must have no_new_privs.
func installFilter(f filter) error {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]} //nolint:gosec // a few dozen
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("cannot install a seccomp filter: %w", errno)
	}
	return nil
}

// hasSeccomp asks the kernel whether a filter may refuse calls.
func hasSeccomp() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0 && auditArch != 0
}
