package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// changes tells of changes to the files below some folders.
type changes struct {
	*os.File

	fd      int // [os.File.Fd] would make it wait without a limit
	folders []string
}

// watch watches folders; where the kernel has no watch left, nothing is waited for.
func watch(folders ...string) *changes {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return &changes{}
	}
	c := &changes{File: os.NewFile(uintptr(fd), "inotify"), fd: fd, folders: folders}
	c.look()
	return c
}

// look watches the folders that are new. One that is watched stays so, and one that is
// gone, or is one too many, is left out.
func (c *changes) look() {
	for _, folder := range c.folders {
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_, _ = unix.InotifyAddWatch(c.fd, path, unix.IN_CREATE|unix.IN_MODIFY|unix.IN_MOVED_TO|unix.IN_DELETE)
			}
			return nil
		})
	}
}

// await returns when something has changed since the last time. Not all that a command
// shows is in files, so it does not wait for long.
func (c *changes) await() {
	if c.File == nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = c.Read(make([]byte, 64<<10)) // what has changed does not matter
	c.look()
}
