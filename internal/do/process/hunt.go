package process

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Proc is one process as the system's table shows it.
type Proc struct {
	PID     int
	Parent  int
	Group   int
	Session int
	Start   uint64 // differs for two processes with the same pid
	Zombie  bool   // ended, waits for its parent
	Stopped bool
	Name    string // of its program, where it is known
	leaving bool   // it has given up its memory and is about to end
	init    bool   // see Command.Init
}

// key is a process that is not mixed up with a later one of the same pid.
type key struct {
	pid   int
	start uint64
}

// killBound is how long the killing may take in all. Only a process that is
// stuck in the system, or a bomb that outruns us, takes that long.
const killBound = 10 * time.Second

// hunt ends a set of processes that may grow while it is being ended.
type hunt struct {
	find func() []Proc // the members that live now
	// wait waits at most d; true means that no member is left.
	wait func(ctx context.Context, d time.Duration) bool
}

// endAllMembers asks with TERM, waits up to grace, then kills until none is left.
func (h hunt) endAllMembers(ctx context.Context, grace time.Duration) Ended {
	asked := map[key]string{}
	if h.askMembers(asked) == 0 && h.wait(ctx, time.Millisecond) {
		return Ended{}
	}
	// Those that appear while the others go are asked as well, soon at first.
	deadline := time.Now().Add(grace)
	for pause := 20 * time.Millisecond; ctx.Err() == nil; pause *= 4 {
		left := time.Until(deadline)
		if left <= 0 {
			break
		}
		if h.wait(ctx, min(pause, left)) {
			return Ended{Found: len(asked)}
		}
		h.askMembers(asked)
	}
	killed := map[key]bool{}
	left := h.killMembers(context.WithoutCancel(ctx), killed)
	for k := range killed {
		asked[k] = ""
	}
	return Ended{Found: len(asked), Killed: len(killed), Left: left}
}

// askMembers sends TERM to the members that did not get it yet, and wakes stopped
// ones to receive it. It returns how many members there are. A shell's child
// loses a TERM that comes between fork and exec, so one that runs another
// program by now is asked again; twice the same would make some programs exit
// in a hurry. The init of a namespace is not asked: it would pass TERM on to one
// that has it.
func (h hunt) askMembers(asked map[key]string) int {
	members := h.find()
	inits := 0
	for _, p := range members {
		if p.init {
			inits++
			continue
		}
		k := key{p.PID, p.Start}
		if name, done := asked[k]; !done || name != p.Name {
			asked[k] = p.Name
			_ = signalProc(p, syscall.SIGTERM)
			if p.Stopped {
				_ = signalProc(p, syscall.SIGCONT)
			}
		}
	}
	return len(members) - inits
}

// killMembers kills until nothing is left and returns how many could not be.
func (h hunt) killMembers(ctx context.Context, killed map[key]bool) int {
	deadline := time.Now().Add(killBound)
	denied := 0
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		members := h.freezeMembers()
		reached := h.killEachMember(members, killed)
		if h.wait(ctx, pause) {
			return 0
		}
		if len(members) > 0 && reached == 0 {
			denied++
		}
		if denied > 5 || time.Now().After(deadline) {
			return len(h.find())
		}
	}
}

// freezeMembers stops all members, so that none can start another one or revive one
// that was killed, and returns them.
func (h hunt) freezeMembers() []Proc {
	stopped := map[key]bool{}
	for range 10 {
		members := h.find()
		groups := map[int]bool{}
		fresh := 0
		for _, p := range members {
			if k := (key{p.PID, p.Start}); !stopped[k] && !p.init {
				stopped[k] = true
				fresh++
				killGroup(p, groups, syscall.SIGSTOP)
				_ = signalProc(p, syscall.SIGSTOP)
			}
		}
		if fresh == 0 {
			return members
		}
	}
	return h.find()
}

// killEachMember kills members and returns how many of them it was allowed to.
func (h hunt) killEachMember(members []Proc, killed map[key]bool) int {
	reached := 0
	groups := map[int]bool{}
	for _, p := range members {
		killGroup(p, groups, syscall.SIGKILL)
		// One that is gone by now was killed with its group.
		if err := signalProc(p, syscall.SIGKILL); !errors.Is(err, os.ErrPermission) {
			if !p.init {
				killed[key{p.PID, p.Start}] = true
			}
			reached++
		}
	}
	return reached
}

// killGroup signals the group of p, once per round. The system does it in one
// step, which a process that forks all the time cannot outrun. A group in our
// own session is left alone: it may have others in it.
func killGroup(p Proc, done map[int]bool, sig syscall.Signal) {
	if done[p.Group] || p.Group <= 1 || p.Session == ownSession() || !ownsGroups {
		return
	}
	done[p.Group] = true
	_ = syscall.Kill(-p.Group, sig)
}

// descendantsOf returns the living processes of all below one of the roots, the
// roots themselves left out.
func descendantsOf(all []Proc, roots map[int]bool) []Proc {
	children := make(map[int][]Proc, len(all))
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var out []Proc
	var queue []int
	seen := make(map[int]bool, len(roots))
	for pid := range roots {
		queue = append(queue, pid)
		seen[pid] = true
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			if seen[p.PID] {
				continue
			}
			seen[p.PID] = true
			queue = append(queue, p.PID)
			if !p.Zombie {
				out = append(out, p)
			}
		}
	}
	return out
}
