package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Identity names one process for good: a pid alone is used again. It is kept
// in files, so field names must not change.
type Identity struct {
	Host  string `json:"host"`
	Boot  string `json:"boot"`            // the kernel's boot id
	Space string `json:"space,omitempty"` // the pid namespace, where pids mean something else
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot
}

// Liveness is the state of a process, as far as it can be known from here.
type Liveness int

// Unknown is the answer about another machine or container.
const (
	Unknown Liveness = iota
	Dead
	Living
)

// Self is the identity of this process. From then on others see that it lives; see [ShowIn].
func Self() (Identity, error) {
	id, err := Identify(os.Getpid())
	if err == nil {
		id.Space = id.showPresence()
	}
	return id, err
}

// Identify names the process that has pid now. A zombie counts as none.
func Identify(pid int) (Identity, error) {
	p, ok := readProc(pid)
	if !ok || p.Zombie {
		return Identity{}, fmt.Errorf("cannot identify process %d: it does not exist", pid)
	}
	host, _ := os.Hostname()
	return Identity{Host: host, Boot: Boot(), Space: pidSpace(), PID: pid, Start: p.Start}, nil
}

// Look finds out whether id lives. Another boot of the same host means dead. A
// process of another host or another pid namespace is Unknown, unless it showed itself in
// the folder of [ShowIn]: only its lease shows it.
func Look(id Identity) Liveness {
	if id.PID <= 0 {
		return Dead
	}
	host, _ := os.Hostname()
	if id.Boot != Boot() && id.Host == host {
		return Dead
	}
	if space, _, _ := strings.Cut(id.Space, shownIn); id.Boot != Boot() || space != pidSpace() {
		return id.livenessByLock()
	}
	if p, ok := readProc(id.PID); ok {
		if p.Start == id.Start && !p.Zombie {
			return Living
		}
		return Dead
	}
	// The table may hide processes of others; EPERM proves that one is there.
	if err := syscall.Kill(id.PID, 0); errors.Is(err, syscall.EPERM) {
		return Living
	}
	return Dead
}

// Alive reports whether id lives or may live: Unknown counts as alive, so
// that what another machine may still own is not taken over.
func Alive(id Identity) bool { return Look(id) != Dead }

// Signal signals the process if it is still the same one, and else returns
// os.ErrProcessDone.
func (id Identity) Signal(sig syscall.Signal) error {
	if Look(id) != Living {
		return os.ErrProcessDone
	}
	return signalProc(Proc{PID: id.PID, Start: id.Start}, sig)
}

// AwaitEnd waits until the process has ended, which need not be a child: it looks
// in growing steps. It returns false when ctx is done first.
func (id Identity) AwaitEnd(ctx context.Context) bool {
	return pollUntil(ctx, func() bool { return Look(id) != Living })
}

// pollUntil asks in growing steps whether something is over, until it is or ctx is done.
func pollUntil(ctx context.Context, over func() bool) bool {
	for pause := time.Millisecond; !over(); pause = min(2*pause, 50*time.Millisecond) {
		if !Sleep(ctx, pause) {
			return over()
		}
	}
	return true
}

// Sleep waits for d. It is false when ctx is done first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

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

// Booted returns the start of the machine, to the second; zero when that is not
// known.
func Booted() time.Time {
	if p := pretended.Load(); p != nil {
		return p.at
	}
	return bootTime()
}

var started = time.Now()

// began is when this process began: the time of day, and how long the machine had
// been up, standing still included, which cannot be set.
var began = reading{time.Now(), machineUptime()}

type reading struct {
	wall time.Time
	up   time.Duration
}

// noticeable is what a clock is off before it counts as set: a clock that is kept
// right from the network is never far off.
const noticeable = 2 * time.Second

// ClockSet is by how much the machine's clock was set since this process began:
// positive is forward, less than two seconds are none.
func ClockSet() time.Duration { return began.clockSetBy(reading{time.Now(), machineUptime()}) }

func (r reading) clockSetBy(now reading) time.Duration {
	by := now.wall.Round(0).Sub(r.wall.Round(0)) - (now.up - r.up)
	if by.Abs() < noticeable {
		return 0
	}
	return by
}

// Cautious is the time for who removes what is old enough: a clock that was set
// forward since this process began makes nothing older.
func Cautious() time.Time { return time.Now().Add(-max(0, ClockSet())) }
