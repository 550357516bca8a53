package sandbox

import "golang.org/x/sys/unix"

// unavailable is what a call returns that programs do without when the kernel
// does not have it: what it asks for lies in memory, where no filter can look.
const unavailable = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)

const (
	// setID is what lets a file be executed with the rights of its owner or group.
	setID = unix.S_ISUID | unix.S_ISGID
	// making is what the flags of an open that makes a file have.
	making = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	// namespaces are the flags of clone and unshare that make one.
	namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// refuseMachineCalls refuses what no program that builds, tests or talks to a model needs,
// and what would act on the machine outside of the box.
func (f *filter) refuseMachineCalls() {
	// In a namespace of its own a process has rights over parts of the kernel
	// that are open to no user otherwise.
	f.refuse(
		unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
		unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT,
		unix.SYS_MOUNT_SETATTR,
	)
	f.refuseBits(unix.SYS_CLONE, 0, namespaces)
	f.refuseBits(unix.SYS_UNSHARE, 0, namespaces|unix.CLONE_NEWTIME)
	// What a file can be given outlives the box, and is there for other users.
	f.refuseBits(unix.SYS_FCHMOD, 1, setID)
	f.refuseBits(unix.SYS_FCHMODAT, 2, setID)
	f.refuseBits(unix.SYS_FCHMODAT2, 2, setID)
	f.refuseBits(unix.SYS_MKNODAT, 2, setID)
	f.refuseMaking(unix.SYS_OPENAT, 2, 3)
	// A lease on a file that can only be read holds up whoever opens it to write, for
	// most of a minute each time.
	f.refuseWith(unix.SYS_FCNTL, 1, unix.F_SETLEASE)
	f.refuseOldCalls()
	f.answerCalls(unavailable, unix.SYS_CLONE3, unix.SYS_OPENAT2)
	// What another process has open is its own.
	f.refuse(unix.SYS_PIDFD_GETFD)
	// The kernel's insides: programs in it, its counters and its log, page faults
	// held up by a user, files by number instead of by path.
	f.refuse(unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_SYSLOG, unix.SYS_USERFAULTFD, unix.SYS_OPEN_BY_HANDLE_AT)
}

// refuseMaking refuses an open that makes a file with one of setID. The mode
// counts only in an open that makes a file: in others it is anything.
func (f *filter) refuseMaking(number, flags, mode uint32) {
	f.addLoad(dataNumber)
	f.append(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, number, 0, 5)
	f.addLoad(dataArgument + 8*flags)
	f.append(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, making, 0, 3)
	f.addLoad(dataArgument + 8*mode)
	f.append(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, setID, 0, 1)
	f.addReturn(refusal)
}

// noSockets refuses the sockets that reach others by a name in the file system.
// Pairs, which pipes between processes are made of, know each other only: but
// for those of datagrams, which can be sent anywhere.
func (f *filter) noSockets() {
	f.refuseWith(unix.SYS_SOCKET, 0, unix.AF_UNIX)
	var pairs []uint32
	for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
		pairs = append(pairs, kind, kind|unix.SOCK_CLOEXEC, kind|unix.SOCK_NONBLOCK,
			kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	}
	f.refuseBut(unix.SYS_SOCKETPAIR, 1, pairs...)
}
