//go:build !linux

package process

import "time"

// Youngest is when the newest process below this one was started; here there
// is no way to tell.
func (r *Reaper) Youngest() (time.Time, bool) { return time.Time{}, false }
