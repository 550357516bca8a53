package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long the machine is up, asleep too.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Since(started)
	}
	return time.Duration(ts.Nano())
}
