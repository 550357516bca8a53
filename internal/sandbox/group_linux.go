package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// group is a control group of a box: a folder for each hierarchy that limits
// something. A nil group has none.
type group struct{ dirs []string }

// controller is what limits one thing in a hierarchy, in both versions.
type controller struct {
	name, file, old string // old is the file of version 1
}

var (
	pids   = controller{"pids", "pids.max", "pids.max"}
	memory = controller{"memory", "memory.max", "memory.limit_in_bytes"}
)

// groupRoot is where the hierarchies are mounted.
const groupRoot = string(filepath.Separator) + "sys/fs/cgroup"

var groups atomic.Int64 // number of groups made by this process

// newGroup makes a control group with these limits, where this process may:
// in its own group with version 1, and with version 2 in the nearest group
// above that hands the controllers down. nil when it may nowhere.
func newGroup(l Limits) *group {
	if l.Processes <= 0 && l.Memory <= 0 {
		return nil
	}
	g := &group{}
	name := fmt.Sprintf("pawl-%d-%d", os.Getpid(), groups.Add(1))
	for _, c := range []struct {
		controller
		limit int64
	}{{pids, int64(l.Processes)}, {memory, l.Memory}} {
		if c.limit <= 0 {
			continue
		}
		g.add(c.controller, name, strconv.FormatInt(c.limit, 10))
	}
	if len(g.dirs) == 0 {
		return nil
	}
	return g
}

// add limits one thing; without success nothing is left.
func (g *group) add(c controller, name, limit string) {
	for _, place := range places(c) {
		dir := filepath.Join(place.parent, name)
		made := os.Mkdir(dir, 0o755) == nil
		if err := os.WriteFile(filepath.Join(dir, place.file), []byte(limit), 0o644); err != nil { //nolint:gosec // a file of the kernel
			if made {
				_ = os.Remove(dir)
			}
			continue
		}
		if made {
			g.dirs = append(g.dirs, dir)
		}
		return
	}
}

// groupPlace is a folder in which a group can be tried, and the file with its limit.
type groupPlace struct{ parent, file string }

// places are the folders in which a group with that controller may be made.
func places(c controller) []groupPlace {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var out []groupPlace
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			out = append(out, places2(c, parts[2])...)
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			if name == c.name {
				out = append(out, groupPlace{filepath.Join(groupRoot, parts[1], parts[2]), c.old})
			}
		}
	}
	return out
}

// places2 are those of version 2: a group with processes has no children with
// controllers, so the group is made beside this process's or above.
func places2(c controller, own string) []groupPlace {
	var out []groupPlace
	for path := filepath.Dir(own); ; path = filepath.Dir(path) {
		dir := filepath.Join(groupRoot, path)
		control, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err == nil && strings.Contains(" "+strings.TrimSpace(string(control))+" ", " "+c.name+" ") {
			out = append(out, groupPlace{dir, c.file})
		}
		if path == "/" {
			return out
		}
	}
}

// joins are the files that a process writes itself into to become a member.
func (g *group) joins() []string {
	if g == nil {
		return nil
	}
	var out []string
	for _, dir := range g.dirs {
		out = append(out, filepath.Join(dir, "cgroup.procs"))
	}
	return out
}

// remove removes the group. One that still has processes stays.
func (g *group) remove() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		_ = os.Remove(dir)
	}
}

// join makes this process a member. Where the kernel refuses a move (the group
// above belongs to somebody else) the box goes without.
func join(files []string) error {
	for _, file := range files {
		if err := os.WriteFile(file, []byte("0"), 0o644); err != nil && !os.IsPermission(err) { //nolint:gosec // a file of the kernel
			return fmt.Errorf("cannot enter its control group: %w", err)
		}
	}
	return nil
}

// groupsWork is whether a control group that limits processes can be made.
func groupsWork() bool {
	g := newGroup(Limits{Processes: 1 << 20})
	g.remove()
	return g != nil
}
