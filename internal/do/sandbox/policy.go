package sandbox

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// Command is the hidden command of pawl that enters a box. See [Main].
const Command = "__sandbox"

// Policy is what a process and all that it starts may touch. Paths are
// absolute; one that is not there is left out. Symbolic links are followed.
// Of two paths that lie in each other the deeper one counts.
type Policy struct {
	// Level is what the policy was made for; it is shown to people only.
	Level string `json:"level"`
	// Write are folders and files that may be changed. All others are read-only.
	Write []string `json:"write"`
	// Keep are paths below Write that may not be changed after all.
	Keep []string `json:"keep,omitempty"`
	// Hide are folders that look empty, and files and sockets that are not there.
	// With "/" the box is built from nothing: what Write, Show, Binds, Over and Temp
	// do not name does not exist in it.
	Hide []string `json:"hide,omitempty"`
	// Show are paths below Hide that may be read.
	Show []string `json:"show,omitempty"`
	// Binds show one folder or file in the place of another, which need not be there
	// outside; what Write and Keep say of paths in it counts for what is shown. They
	// need mounts.
	Binds []Bind `json:"binds,omitempty"`
	// Over are folders whose changes go elsewhere.
	Over []Over `json:"over,omitempty"`
	// Temp are folders of the run's own in the place of those that all programs
	// share for temporary files. Of what the machine has there the box shows what
	// Write, Keep, Show and Binds name. They need mounts; [Policy.TempIn] says
	// where they are.
	Temp []Bind `json:"temp,omitempty"`
	// Spare are processes that may not be signalled, where the kernel does not
	// keep all signals inside.
	Spare []int `json:"spare,omitempty"`
	// Judges: how a command ends is a verdict, so what it starts cannot write into it.
	Judges bool `json:"judges,omitempty"`
	// Closed: no network but the box's own loopback, and there the proxy.
	Closed bool `json:"closed,omitempty"`
	// Sockets: a closed box may have Unix sockets that others can reach by name.
	Sockets bool `json:"sockets,omitempty"`
	// Own: the loopback is the box's own, and what it sends elsewhere comes out as packets,
	// see [Entry]. It needs a process namespace and what Tun says.
	Own bool `json:"own,omitempty"`
	// Doors are ports of the loopback of a box that is closed or has its own, which lead to
	// the same ports of the machine's, besides ProxyPort: a model server of the user's own.
	Doors []int `json:"doors,omitempty"`
	// Shut are TCP ports that an open box reaches on no machine. It needs Landlock 4, or Own.
	Shut []int `json:"shut,omitempty"`
	// Inward is the folder with the sockets by which the ports of the box are reached from
	// outside; "" is none.
	Inward string `json:"inward,omitempty"`
	// Reach is what the proxy lets through, for who serves it.
	Reach  []string `json:"reach,omitempty"`
	Limits Limits   `json:"limits"`
	Means  Means    `json:"means"`
}

// Bind shows From at To, writable or not. One that is read-only is left out
// where From is gone.
type Bind struct {
	From     string `json:"from"`
	To       string `json:"to"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Over is a folder that may be changed in the box, and stays as it is outside:
// what is changed goes to Scratch, a folder that is made. Where the kernel
// cannot lay folders over each other, or where nothing is at To, it is empty at
// first. Without To, or without mounts, Scratch itself is the folder. A file at To
// is copied to Scratch once.
type Over struct {
	To      string `json:"to,omitempty"`
	From    string `json:"from,omitempty"` // where the folder is, if not at To
	Scratch string `json:"scratch"`        // "" is set by [Policy.TempIn]
	// Whole: what the kernel cannot lay over each other is shown as it is, to be written.
	Whole bool `json:"whole,omitempty"`
	// Back are files in it that whoever closes the box takes out of Scratch again.
	Back []string `json:"back,omitempty"`
}

// Offline returns p without a network but the box's own loopback, where the machine can do that. Nil stays nil.
func (p *Policy) Offline() *Policy {
	if p == nil || !p.Means.Net {
		return p
	}
	out := *p
	out.Closed, out.Own, out.Sockets, out.Doors, out.Reach = true, false, p.Sockets || !p.Closed, nil, nil
	return &out
}

// usedMeans returns what the box has of them: an open one may share the machine's network.
func (p *Policy) usedMeans() Means {
	m := p.Means
	m.Net = m.Net && p.HasLoopback()
	return m
}

// HasLoopback reports whether the loopback of the box is not the machine's.
func (p *Policy) HasLoopback() bool { return p.Closed || p.Own }

// listenPorts lists the ports of its loopback that lead out of the box.
func (p *Policy) listenPorts() []int {
	if p.Closed {
		return append([]int{ProxyPort}, p.Doors...)
	}
	return p.Doors
}

// TempIn is p with its folders for temporary files, and what is changed in Over,
// below dir, if it has them nowhere yet; they are made when they are needed. Nil
// stays nil.
func (p *Policy) TempIn(dir string) *Policy {
	if p == nil {
		return nil
	}
	out := *p
	out.Temp = make([]Bind, len(p.Temp))
	for i, b := range p.Temp {
		out.Temp[i] = Bind{From: cmp.Or(b.From, filepath.Join(dir, flattenPath(b.To))), To: b.To}
	}
	out.Over = slices.Clone(p.Over)
	for i, o := range out.Over {
		out.Over[i].Scratch = cmp.Or(o.Scratch, filepath.Join(dir, "over", flattenPath(o.To)))
	}
	return &out
}

// flattenPath is a name for what is shown at path.
func flattenPath(path string) string { return strings.ReplaceAll(strings.Trim(path, "/"), "/", "-") }

// Limits bound what a box may use of the machine. Zero is no limit.
type Limits struct {
	// Processes that exist at a time, threads included. For root it holds with
	// a control group only.
	Processes int `json:"processes,omitempty"`
	// FileSize is the most that one file may have, in bytes.
	FileSize int64 `json:"file_size,omitempty"`
	// Memory of all processes together, in bytes; with a control group only.
	Memory int64 `json:"memory,omitempty"`
}

// Means are the mechanisms that make a box.
type Means struct {
	User     bool `json:"user,omitempty"`     // a user namespace
	PID      bool `json:"pid,omitempty"`      // a process namespace; it needs Mounts
	Mounts   bool `json:"mounts,omitempty"`   // a mount namespace
	Net      bool `json:"net,omitempty"`      // a network namespace
	Tun      bool `json:"tun,omitempty"`      // a way out of that, by packets; it needs PID
	Landlock int  `json:"landlock,omitempty"` // ABI version; 0 is none
	Seccomp  bool `json:"seccomp,omitempty"`
}

// ProxyPort is where the proxy is in a closed box, on its loopback.
const ProxyPort = 47128

const (
	maxProcesses = 8192
	maxFileSize  = 64 << 30
)
