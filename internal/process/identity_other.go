//go:build !linux

package process

import (
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bootID is the time of the last boot: there is no boot id here.
var bootID = sync.OnceValue(func() string {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return strconv.FormatInt(tv.Sec, 10)
})

func bootTime() time.Time {
	secs, err := strconv.ParseInt(bootID(), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(secs, 0)
}

func pidSpace() string { return "" }
