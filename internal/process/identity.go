package process

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// Liveness is what can be said about a process from here.
type Liveness int

// Unknown is the answer about another machine or container.
const (
	Unknown Liveness = iota
	Dead
	Living
)

// Self is the identity of this process.
func Self() (Identity, error) { return Identify(os.Getpid()) }

// Identify names the process that has pid now. A zombie counts as none.
func Identify(pid int) (Identity, error) {
	p, ok := readProc(pid)
	if !ok || p.Zombie {
		return Identity{}, fmt.Errorf("cannot identify process %d: there is none", pid)
	}
	host, _ := os.Hostname()
	return Identity{Host: host, Boot: Boot(), Space: pidSpace(), PID: pid, Start: p.Start}, nil
}

// Look says whether id lives. Another boot of the same host means dead. A
// process of another host or another pid namespace is Unknown: only its lease
// can tell.
func Look(id Identity) Liveness {
	if id.PID <= 0 {
		return Dead
	}
	host, _ := os.Hostname()
	if id.Boot != Boot() {
		if id.Host == host {
			return Dead
		}
		return Unknown
	}
	if id.Space != pidSpace() {
		return Unknown
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
// that nobody takes over what another machine may still own.
func Alive(id Identity) bool { return Look(id) != Dead }

// Signal signals the process if it is still the same one, and else returns
// os.ErrProcessDone.
func (id Identity) Signal(sig syscall.Signal) error {
	if Look(id) != Living {
		return os.ErrProcessDone
	}
	return signalProc(Proc{PID: id.PID, Start: id.Start}, sig)
}

// AwaitEnd waits until the process has ended, whoever's child it is: it looks
// in growing steps. It returns false when ctx is done first.
func (id Identity) AwaitEnd(ctx context.Context) bool {
	return poll(ctx, func() bool { return Look(id) != Living })
}

// poll asks in growing steps whether something is over, until it is or ctx is done.
func poll(ctx context.Context, over func() bool) bool {
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
