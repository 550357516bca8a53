package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is the unit of start times, the same on every Linux.
const ticksPerSecond = 100

// Youngest is when the newest process below this one was started, to a
// hundredth of a second; false when there is none, or no way to tell.
func (r *Reaper) Youngest() (time.Time, bool) {
	var last uint64
	for _, p := range r.descendants() {
		if !p.Zombie {
			last = max(last, p.Start)
		}
	}
	var up unix.Timespec
	if last == 0 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}, false
	}
	age := time.Duration(up.Nano()) - time.Duration(last)*(time.Second/ticksPerSecond)
	return time.Now().Add(-age), true
}
