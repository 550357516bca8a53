package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Pids mean something else in another container, and a container that was killed ends nothing
// in files. So who owns something holds a lock on a file of its own, in a folder that containers
// with the same state share: the kernel takes the lock away with the process.

// shownIn stands in an identity's Space before the folder in which it has its file.
const shownIn = "+"

// presence is the file by which this process shows that it lives.
var presence struct {
	mu      sync.Mutex
	dir, id string
	own     *os.File // nil before it was asked who it is
}

// ShowIn names the folder in which processes show that they live. id distinguishes it from those of
// other machines and users.
func ShowIn(dir, id string) {
	presence.mu.Lock()
	defer presence.mu.Unlock()
	presence.dir, presence.id = dir, id
}

// showPresence has this process show that it lives, and returns its Space: with the folder, where
// it does.
func (id Identity) showPresence() string {
	p := &presence
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir != "" && p.own == nil {
		removeEnded(p.dir)
		f, err := os.OpenFile(id.presenceFileIn(p.dir), os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
				_ = f.Close() // it has nothing in it
				f = nil
			}
		}
		p.own = f
	}
	if p.own == nil {
		return id.Space
	}
	return id.Space + shownIn + p.id
}

// livenessByLock finds out whether a process lives that cannot be seen from here.
func (id Identity) livenessByLock() Liveness {
	presence.mu.Lock()
	dir, here := presence.dir, presence.id
	presence.mu.Unlock()
	space, there, _ := strings.Cut(id.Space, shownIn)
	if id.Space = space; here == "" || there != here {
		return Unknown
	}
	return lockedFile(id.presenceFileIn(dir))
}

// presenceFileIn is the name of the file of a process.
func (id Identity) presenceFileIn(dir string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %d", id.Boot, id.Space, id.PID, id.Start))
	return filepath.Join(dir, hex.EncodeToString(sum[:8]))
}

// lockedFile finds out whether the process lives that holds the lock on a file.
func lockedFile(name string) Liveness {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Dead
	}
	if err != nil {
		return Unknown
	}
	defer func() { _ = f.Close() }() // nothing was written
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case err == nil:
		return Dead
	case errors.Is(err, unix.EWOULDBLOCK):
		return Living
	}
	return Unknown
}

// removeEnded removes the files of processes that have ended, but for new ones, which may not
// be locked yet.
func removeEnded(dir string) {
	entries, _ := os.ReadDir(dir) // what cannot be read stays
	for _, e := range entries {
		info, err := e.Info()
		name := filepath.Join(dir, e.Name())
		if err == nil && time.Since(info.ModTime()) > time.Hour && lockedFile(name) == Dead {
			_ = os.Remove(name)
		}
	}
}
