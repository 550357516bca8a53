package boxnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// PortsIn is how many ports a workspace has.
const PortsIn = 20

// Dial connects to a port of a workspace: in the boxes that are open in it, whose sockets are in
// the folder, or where there is none on this machine's loopback.
func Dial(ctx context.Context, folder string, port int) (net.Conn, error) {
	c, err := dialBoxes(ctx, folder, port)
	if errors.Is(err, errNoBox) {
		return dialLoopback(ctx, strconv.Itoa(port))
	}
	return c, err
}

var (
	errNoBox    = errors.New("no sandbox is open in this workspace")
	errNoServer = errors.New("nothing answers on this port of the workspace")
)

func dialBoxes(ctx context.Context, folder string, port int) (net.Conn, error) {
	entries, _ := os.ReadDir(folder) // none has been open
	none := errNoBox
	for _, e := range entries {
		text, _, _ := strings.Cut(e.Name(), "-")
		if first, err := strconv.Atoi(text); err != nil || port < first || port >= first+PortsIn {
			continue
		}
		c, err := dialBoxPort(ctx, folder, e.Name(), port)
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, syscall.ECONNREFUSED): // who had it was killed
			_ = os.Remove(filepath.Join(folder, e.Name()))
		default:
			none = errNoServer
		}
	}
	return nil, none
}

// dialBoxPort asks the init of a box, which passes the connection out.
func dialBoxPort(ctx context.Context, folder, name string, port int) (net.Conn, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	c, err := new(net.Dialer).DialContext(ctx, "unix", short)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := c.Write(binary.LittleEndian.AppendUint16(nil, uint16(port))); err != nil { //nolint:gosec // a port
		return nil, err
	}
	u, _ := c.(*net.UnixConn)
	oob := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := u.ReadMsgUnix(make([]byte, 2), oob)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return nil, errNoServer
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil, errNoServer
	}
	f := os.NewFile(uintptr(fds[0]), "inside") //nolint:gosec // a descriptor fits
	defer func() { _ = f.Close() }()
	return net.FileConn(f)
}
