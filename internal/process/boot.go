package process

import (
	"sync/atomic"
	"time"
)

// pretended is a boot that tests speak of.
var pretended atomic.Pointer[boot]

type boot struct {
	id string
	at time.Time
}

// PretendBoot makes this process take the machine for one that was started at
// that time, for tests of what is left after a power loss.
func PretendBoot(id string, at time.Time) { pretended.Store(&boot{id, at}) }

// Boot is the id of the machine's last start. Nothing that ran before it runs.
func Boot() string {
	if p := pretended.Load(); p != nil {
		return p.id
	}
	return bootID()
}

// Booted is when the machine was started, to the second; zero when it does not
// tell.
func Booted() time.Time {
	if p := pretended.Load(); p != nil {
		return p.at
	}
	return bootTime()
}
