package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// findHolder finds the process that holds the other end. Where none does any more, the
// answer does not matter.
func (c *Check) findHolder(conn net.Conn) bool {
	ours, theirs := addrPort(conn.LocalAddr()), addrPort(conn.RemoteAddr())
	s, err := findSocket(theirs, ours)
	switch gone := errors.Is(err, unix.ENOENT) || errors.Is(err, errListens); {
	case gone && !isOwnAddress(theirs.Addr()):
		return c.Unseen
	case gone:
		// Where the kernel shows sockets at all, it finds ours, or the one that listens.
		_, err := findSocket(ours, theirs)
		return errors.Is(err, unix.ENOENT)
	case errors.Is(err, errors.ErrUnsupported):
		return true
	case err != nil || s.inode == 0:
		return false
	}
	if c.lastPeerHolds(s) {
		return true
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.lastPeerHolds(s) || c.anyProcessHolds(s)
}

// lastPeerHolds reports whether the process that was accepted last has the socket. A browser makes
// several connections.
func (c *Check) lastPeerHolds(s socket) bool {
	pid := int(c.last.Load())
	has, _ := holdsSocket(pid, s)
	return has && c.Accepts(pid)
}

func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// isOwnAddress reports whether the address is one of this machine's.
func isOwnAddress(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(one net.Addr) bool {
		prefix, err := netip.ParsePrefix(one.String())
		return err == nil && prefix.Addr().Unmap().WithZone("") == a
	})
}

// anyProcessHolds goes through the processes, the youngest first, until one has the socket.
func (c *Check) anyProcessHolds(s socket) bool {
	var dark []int // whose files are hidden
	pids, all := listProcesses()
	for _, pid := range pids {
		has, err := holdsSocket(pid, s)
		switch {
		case has && c.Accepts(pid):
			c.last.Store(int64(pid))
			return true
		case has:
			return false
		case errors.Is(err, fs.ErrPermission):
			dark = append(dark, pid)
		}
	}
	couldHold := func(pid int) bool { return belongsToUser(pid, s.user) && c.Accepts(pid) }
	hidden := c.Unseen && !all
	return hidden || slices.ContainsFunc(dark, couldHold)
}

// listProcesses lists those in sight, the youngest first; all is false when some are hidden.
func listProcesses() (pids []int, all bool) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	for _, name := range names {
		if pid, err := strconv.Atoi(name.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	slices.Reverse(pids)
	const outermost = "pid:[4026531836]" // of the first namespace, on any machine
	space, err := os.Readlink("/proc/self/ns/pid")
	// Where /proc shows a user's own processes only, the first one is not there.
	return pids, err == nil && space == outermost && slices.Contains(pids, 1)
}

// holdsSocket reports whether the process has the socket open.
func holdsSocket(pid int, s socket) (bool, error) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(dir) }()
	want := []byte("socket:[" + strconv.FormatUint(uint64(s.inode), 10) + "]")
	var entries [8 << 10]byte
	var link [64]byte
	for {
		n, err := unix.ReadDirent(dir, entries[:])
		if err != nil || n <= 0 {
			return false, err
		}
		_, _, names := unix.ParseDirent(entries[:n], -1, nil)
		for _, name := range names {
			n, err := unix.Readlinkat(dir, name, link[:])
			switch {
			case errors.Is(err, unix.EACCES):
				return false, err
			case err == nil && bytes.Equal(link[:n], want):
				return true, nil
			}
		}
	}
}

// belongsToUser reports whether the process is, or may become, the user.
func belongsToUser(pid int, user uint32) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "\nUid:\t")
	line, _, _ := strings.Cut(rest, "\n")
	return slices.Contains(strings.Fields(line), strconv.FormatUint(uint64(user), 10))
}

// socket is the kernel's record of a socket. inode is 0 where no process holds it.
type socket struct{ inode, user uint32 }

// Sizes of the messages of sock_diag(7), and where in an answer its facts are.
const (
	headerSize   = unix.SizeofNlMsghdr
	questionSize = 56
	answerSize   = 72
	diagByFamily = 20
	portsAt      = 4
	userAt       = 64
	inodeAt      = 68
)

// never are the errors where a kernel, or what confines this process, gives no answers.
var never = []error{unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.EPERM, unix.EACCES}

// errListens is that there is no connection, but one that listens.
var errListens = errors.New("nothing is connected there")

// findSocket asks the kernel for the socket of this network that is bound to at and connected
// to to. The error is ENOENT or errListens where there is none, and
// [errors.ErrUnsupported] where the kernel does not answer such questions.
func findSocket(at, to netip.AddrPort) (socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		if slices.Contains(never, err) {
			err = errors.ErrUnsupported
		}
		return socket{}, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, socketQuestion(at, to), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socket{}, err
	}
	answer := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return socket{}, err
	}
	return readAnswer(answer[:n], at, to)
}

// socketQuestion is a request for one socket.
func socketQuestion(at, to netip.AddrPort) []byte {
	q := make([]byte, headerSize+questionSize)
	binary.NativeEndian.PutUint32(q, uint32(len(q)))
	binary.NativeEndian.PutUint16(q[4:], diagByFamily)
	binary.NativeEndian.PutUint16(q[6:], unix.NLM_F_REQUEST)
	body := q[headerSize:]
	body[0], body[1] = unix.AF_INET, unix.IPPROTO_TCP
	if at.Addr().Is6() {
		body[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(body[4:], ^uint32(0)) // in any state
	id := body[8:]
	binary.BigEndian.PutUint16(id, at.Port())
	binary.BigEndian.PutUint16(id[2:], to.Port())
	copy(id[4:20], at.Addr().AsSlice())
	copy(id[20:36], to.Addr().AsSlice())
	binary.NativeEndian.PutUint64(id[40:], ^uint64(0)) // no cookie
	return q
}

// readAnswer reads an answer.
func readAnswer(answer []byte, at, to netip.AddrPort) (socket, error) {
	if len(answer) < headerSize+4 {
		return socket{}, unix.EBADMSG
	}
	body := answer[headerSize:]
	if binary.NativeEndian.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		return socket{}, unix.Errno(-int32(binary.NativeEndian.Uint32(body))) //nolint:gosec // a small number below zero
	}
	if len(body) < answerSize {
		return socket{}, unix.EBADMSG
	}
	if binary.BigEndian.Uint16(body[portsAt:]) != at.Port() || binary.BigEndian.Uint16(body[portsAt+2:]) != to.Port() {
		return socket{}, errListens
	}
	return socket{inode: binary.NativeEndian.Uint32(body[inodeAt:]), user: binary.NativeEndian.Uint32(body[userAt:])}, nil
}
