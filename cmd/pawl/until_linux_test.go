package main

import (
	"errors"
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

func watch(folders ...string) (*changes, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	c := &changes{File: os.NewFile(uintptr(fd), "inotify"), fd: fd, folders: folders}
	err = c.look()
	return c, err
}

// look watches the folders that are new. One that is watched stays so.
func (c *changes) look() error {
	for _, folder := range c.folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil //nolint:nilerr // it is gone by now
			}
			_, err = unix.InotifyAddWatch(c.fd, path, unix.IN_CREATE|unix.IN_MODIFY|unix.IN_MOVED_TO|unix.IN_DELETE)
			if errors.Is(err, unix.ENOENT) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// await returns when something has changed since the last time. Not all that a command
// shows is in files, so it does not wait for long.
func (c *changes) await() error {
	if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 64<<10))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return c.look()
}
