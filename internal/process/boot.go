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

var started = time.Now()

// began is when this process began: the time of day, and how long the machine had
// been up, standing still included, which nobody can set.
var began = reading{time.Now(), uptime()}

type reading struct {
	wall time.Time
	up   time.Duration
}

// noticeable is what a clock is off before it counts as set: a clock that is kept
// right from the network is never far off.
const noticeable = 2 * time.Second

// ClockSet is by how much the machine's clock was set since this process began:
// positive is forward, less than two seconds are none.
func ClockSet() time.Duration { return began.set(reading{time.Now(), uptime()}) }

func (r reading) set(now reading) time.Duration {
	by := now.wall.Round(0).Sub(r.wall.Round(0)) - (now.up - r.up)
	if by.Abs() < noticeable {
		return 0
	}
	return by
}

// Cautious is the time for who removes what is old enough: a clock that was set
// forward since this process began makes nothing older.
func Cautious() time.Time { return time.Now().Add(-max(0, ClockSet())) }
