//go:build !linux

package process

import "time"

// uptime counts from the start of this process. A machine that slept looks like
// one whose clock was set.
func uptime() time.Duration { return time.Since(started) }
