// Package netlink asks the kernel about the network of a namespace, and has it change that.
package netlink

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ask has the kernel change something of the network, or say it, and returns its answer.
func Ask(kind, flags uint16, parts ...[]byte) ([]byte, error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(s) }()
	body := slices.Concat(parts...)
	head := unix.NlMsghdr{Len: uint32(unix.SizeofNlMsghdr + len(body)), Type: kind, //nolint:gosec // small
		Flags: flags | unix.NLM_F_REQUEST | unix.NLM_F_ACK}
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.Sendto(s, append(Fixed(&head), body...), 0, kernel); err != nil {
		return nil, err
	}
	answer := make([]byte, 8<<10)
	n, _, err := unix.Recvfrom(s, answer, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return nil, cmp.Or[error](err, unix.EBADMSG)
	}
	said := answer[unix.SizeofNlMsghdr:n]
	code := int32(binary.NativeEndian.Uint32(said)) //nolint:gosec // negative
	if code != 0 && binary.NativeEndian.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		return nil, unix.Errno(-code)
	}
	return said, nil
}

// Attribute is one of a message, with what fills it up to whole words.
func Attribute(kind uint16, value []byte) []byte {
	size := unix.SizeofRtAttr + len(value)
	out := binary.NativeEndian.AppendUint16(nil, uint16(size)) //nolint:gosec // small
	out = append(binary.NativeEndian.AppendUint16(out, kind), value...)
	return append(out, make([]byte, -size&3)...)
}

// Fixed is the fixed part of a message, as the kernel reads it.
func Fixed[T any](v *T) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))...)
}
