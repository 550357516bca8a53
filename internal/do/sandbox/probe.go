package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// Offer is what a machine has to make boxes with.
type Offer struct {
	Means
	System string // as runtime.GOOS
	Root   bool   // pawl runs as root
	Groups bool   // control groups limit processes and memory
	// Frozen: the root file system is read-only, so nothing outside of what is
	// writable anyway can be changed. It is so inside of another box.
	Frozen bool
	// Missing says for people why the namespaces cannot be had; empty when
	// they can.
	Missing string
}

// String lists what there is, e.g. "user, mount and network namespaces,
// Landlock 7, seccomp".
func (o Offer) String() string {
	var spaces, parts []string
	for _, s := range []struct {
		has  bool
		name string
	}{{o.User, "user"}, {o.Mounts, "mount"}, {o.PID, "process"}, {o.Net, "network"}} {
		if s.has {
			spaces = append(spaces, s.name)
		}
	}
	switch n := len(spaces); {
	case n == 1:
		parts = append(parts, spaces[0]+" namespace")
	case n > 1:
		parts = append(parts, strings.Join(spaces[:n-1], ", ")+" and "+spaces[n-1]+" namespaces")
	}
	if o.Landlock > 0 {
		parts = append(parts, fmt.Sprintf("Landlock %d", o.Landlock))
	}
	if o.Seccomp {
		parts = append(parts, "seccomp")
	}
	if o.Groups {
		parts = append(parts, "control groups")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// Verdict is what a level comes to on a machine.
type Verdict struct {
	Boxed   bool   // there is a box
	Refused string // why the level must not run here; "" when it may
	Means   Means  // what makes the box
	// Gaps are sentences on what the level wants and the machine cannot enforce.
	Gaps []string
	// Enforced is one line for reports, e.g. "writes, secrets and signals,
	// by a mount namespace, Landlock 7 and seccomp".
	Enforced string
}

// The levels.
const (
	Permissive = "permissive"
	Normal     = "normal"
	Paranoid   = "paranoid"
)

// Judge says what a level comes to on a machine with that offer. unsandboxed
// is that a person asked for no box.
func Judge(level string, o Offer, unsandboxed bool) Verdict {
	switch {
	case level == Permissive:
		return Verdict{Enforced: "nothing is enforced"}
	case unsandboxed:
		return Verdict{Enforced: "nothing: --unsandboxed"}
	case level == Paranoid:
		return judgeParanoid(o)
	}
	return judgeNormal(o)
}

func judgeParanoid(o Offer) Verdict {
	v := Verdict{Boxed: true, Means: o.Means}
	switch {
	case o.System != "linux":
		v = Verdict{Refused: "pawl cannot enforce the level paranoid on " + o.System}
	case !o.Mounts || !o.Net:
		const needs = "the level paranoid needs a mount and a network namespace, which this machine does not allow"
		v = Verdict{Refused: needs + reasonInBrackets(o)}
	case !o.Seccomp:
		v = Verdict{Refused: "the level paranoid needs seccomp, which this kernel does not have"}
	default:
		v.Gaps = smallGaps(o)
		v.Enforced = "writes, secrets, signals and network, by " + o.String()
	}
	return v
}

func judgeNormal(o Offer) Verdict {
	none := Verdict{Enforced: "nothing: not possible on this machine"}
	switch {
	case o.System != "linux":
		const gap = " pawl cannot limit what an agent writes or reads; limits on cost, calls and time work"
		none.Gaps = []string{"on " + o.System + gap}
		return none
	case o.Mounts:
		m := o.Means
		if m.Landlock == 1 {
			m.Landlock = 0 // it would refuse renames between folders, and adds little to mounts
		}
		used := m
		used.Net = m.Tun // else only for what is offline
		by := Offer{Means: used, Groups: o.Groups}.String()
		v := Verdict{Boxed: true, Means: m, Gaps: slices.Concat(abstractSocketGaps(o), sharedLoopback(o), smallGaps(o)),
			Enforced: "writes, secrets and signals, by " + by}
		if m.Tun {
			v.Enforced = "writes, secrets, signals and a loopback of its own, by " + by
		}
		return v
	case o.Root && !o.Frozen:
		return Verdict{Refused: "pawl runs as root without a mount namespace" + reasonInBrackets(o) +
			": without one root could change mode, owner and times of every file"}
	case o.Landlock == 0:
		const gap = ": nothing limits what an agent writes or reads"
		none.Gaps = []string{"neither mount namespaces nor Landlock are available" + reasonInBrackets(o) + gap}
		return none
	}
	m := Means{Landlock: o.Landlock, Seccomp: o.Seccomp}
	by := Offer{Means: m, Groups: o.Groups}.String()
	unlocked := "without a mount namespace" + reasonInBrackets(o) + " mode, owner and times of your own files outside can be changed, " +
		"sockets of other programs can be reached, and /tmp is shared with them"
	gaps := slices.Concat([]string{unlocked}, abstractSocketGaps(o), sharedLoopback(o), smallGaps(o))
	v := Verdict{Boxed: true, Means: m, Gaps: gaps,
		Enforced: "writes and secrets, by " + by}
	if m.Landlock == 1 {
		v.Gaps = append(v.Gaps, "this kernel's Landlock refuses to rename a file from one folder to another; "+
			"programs that do not copy instead will fail")
	}
	return v
}

func reasonInBrackets(o Offer) string {
	if o.Missing == "" {
		return ""
	}
	return " (" + o.Missing + ")"
}

// abstractSocketGaps tells of sockets that have no place in the file system. A network
// namespace keeps them from a box that has one.
func abstractSocketGaps(o Offer) []string {
	if o.Tun || o.Landlock >= landlockScopes {
		return nil
	}
	return []string{
		"abstract sockets of other programs, such as X11's, can be reached: the kernel does not have Landlock 6",
	}
}

// sharedLoopback returns a warning where a box has no loopback of its own.
func sharedLoopback(o Offer) []string {
	if o.Tun {
		return nil
	}
	needs := "namespaces, of processes and networks too, and /dev/net/tun"
	if o.Net && o.PID {
		needs = "/dev/net/tun (sudo modprobe tun; in a container --device /dev/net/tun)"
	}
	return []string{"agents and gates share this machine's loopback: they reach the ports of your servers and of " +
		"other tasks. A loopback of their own needs " + needs}
}

// smallGaps are the smaller things that a machine cannot enforce.
func smallGaps(o Offer) []string {
	var out []string
	if !o.PID {
		out = append(out, "without a process namespace, which a container with a masked /proc does not allow, the machine's processes "+
			"can be seen, and what empties its environment outlives pawl and its supervisor when both are killed")
	}
	if !o.PID && o.Landlock < landlockScopes && !o.Seccomp {
		out = append(out, "a process may signal pawl and other processes of yours: the kernel has neither Landlock 6 nor seccomp")
	}
	return out
}

// CanShut reports whether a box can be kept from ports that it reaches otherwise.
func CanShut(m Means) bool {
	byLandlock := m.Landlock >= landlockPorts && m.Seccomp
	return m.Tun || byLandlock
}

// landlockPorts is the ABI from which Landlock knows ports.
const landlockPorts = 4

// landlockScopes is the ABI from which Landlock keeps signals and abstract
// sockets inside.
const landlockScopes = 6
