//go:build !linux

package supervisor

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// socketAddress is a short path in a private folder, as the path of a socket
// must be shorter than 104 bytes and that of a run may not be.
func socketAddress(runDir string, create bool) (string, func(), error) {
	dir := filepath.Join("/tmp", fmt.Sprintf("pawl-%d", os.Getuid()))
	if create {
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return "", nil, fmt.Errorf("cannot make the sockets' folder: %v", err)
		}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", nil, fmt.Errorf("cannot open the sockets' folder: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm() != 0o700 {
		return "", nil, fmt.Errorf("cannot use %s: it must be a folder of yours alone", dir)
	}
	name := fmt.Sprintf("%x.sock", sha256.Sum256([]byte(runDir)))
	return filepath.Join(dir, name[:16]+".sock"), func() {}, nil
}

// isOwnUnboxedPeer reports whether the private folder keeps others out.
func isOwnUnboxedPeer(*net.UnixConn) bool { return true }

func isPeerAlive(*net.UnixConn, time.Duration) bool { return true }

func peerProcessID(*net.UnixConn) int { return 0 }

func changedAt(info fs.FileInfo) time.Time { return info.ModTime() }
