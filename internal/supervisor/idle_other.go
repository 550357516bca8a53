//go:build !linux

package supervisor

import (
	"io/fs"
	"time"
)

func changed(info fs.FileInfo) time.Time { return info.ModTime() }
