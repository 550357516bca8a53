package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Main is the hidden command: it enters the box that [Prepare] described and
// becomes the command, or the init of its process namespace. It returns when
// that fails or ends.
func Main(stderr io.Writer) int {
	// Rights, filters and rules are those of a thread; the thread that has them
	// must be the one that executes.
	runtime.LockOSThread()
	o, err := readOrder(os.NewFile(policyFD, "policy"))
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "pawl: %v\n", err)
		return 1
	}
	// Neither these are the command's, nor what pawl was started with.
	if err := unix.CloseRange(policyFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		reportFailure(startFailure{Message: fmt.Sprintf("cannot keep descriptors from it: %v", err)})
		return 1
	}
	if err := enterBox(o); err != nil {
		reportFailure(startFailure{Message: err.Error()})
		return 1
	}
	if o.Probe {
		return 0
	}
	if o.Policy.Means.PID {
		return runAsInit(o)
	}
	tellNotExecuted(syscall.Exec(o.Path, o.Args, o.Env))
	return 1
}

func tellNotExecuted(err error) {
	code := syscall.EINVAL
	_ = errors.As(err, &code)
	reportFailure(startFailure{Message: err.Error(), Errno: int(code)})
}

// reportFailure reports to who started this.
func reportFailure(f startFailure) {
	data, err := json.Marshal(f)
	if err == nil {
		_, _ = unix.Write(statusFD, data)
	}
}

// enterBox restricts the calling thread. What needs rights comes first.
func enterBox(o order) error {
	p := o.Policy
	preferAsVictim()
	if err := setLimits(p.Limits, p.Means); err != nil {
		return err
	}
	if p.HasLoopback() {
		if err := openLoopback(p.listenPorts()); err != nil {
			return err
		}
	}
	if p.Own {
		if err := openWayOut(); err != nil {
			return err
		}
	}
	p, links := resolvePaths(p)
	if p.Means.PID {
		const shown = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
		if err := unix.Mount("proc", "/proc", "proc", shown, ""); err != nil {
			return fmt.Errorf("cannot show it its own processes: %w", err)
		}
	}
	if p.Means.Mounts {
		// Shared memory and queues have names that are the whole machine's.
		if err := unix.Unshare(unix.CLONE_NEWIPC); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("cannot have shared memory of its own: %w", err)
		}
		all, root := layOutMounts(p, links)
		if err := mountAll(all, root); err != nil {
			return err
		}
		if err := newTerminals(); err != nil {
			return err
		}
	}
	// The working folder of before is the original, below what was mounted.
	if o.Dir != "" {
		if err := os.Chdir(o.Dir); err != nil {
			return fmt.Errorf("its working folder cannot be entered: %w", err)
		}
	}
	if err := dropRights(p.Means); err != nil {
		return err
	}
	if p.Means.Landlock > 0 {
		if err := landlock(p); err != nil {
			return err
		}
	}
	if p.Means.Seccomp {
		return installFilter(filterFor(p))
	}
	return nil
}

// resolvePaths follows symbolic links and leaves out what is not there. links are
// those that were followed, and where they lead.
func resolvePaths(p Policy) (_ Policy, links map[string]string) {
	links = map[string]string{}
	if p.Means.Mounts {
		p.Hide, p.Write = append(slices.Clone(p.Hide), "/dev"), append(slices.Clone(p.Write), devices...)
		p.Show = append(slices.Clone(p.Show), "/proc")
		for _, path := range []string{"/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"} {
			links[path], _ = os.Readlink(path) // what they lead to is no concern of the policy
		}
		for _, path := range slices.Concat(p.Write, p.Show, writableTargets(p)) {
			noteLinks(path, links, maxLinks)
		}
	}
	var binds, temp []Bind
	for _, b := range p.Temp {
		to := followExistingLinks(b.To)
		if !slices.ContainsFunc(temp, func(t Bind) bool { return t.To == to }) {
			temp = append(temp, Bind{From: b.From, To: to})
		}
	}
	p.Temp = temp
	for _, b := range p.Binds {
		if _, err := os.Lstat(b.From); err != nil && b.ReadOnly {
			continue
		}
		binds = append(binds, Bind{From: b.From, To: followExistingLinks(b.To), ReadOnly: b.ReadOnly})
	}
	p.Binds = binds
	var over []Over
	for _, o := range p.Over {
		if err := os.MkdirAll(o.Scratch, 0o700); err != nil {
			continue // the tool says what it misses
		}
		if o.To == "" || !p.Means.Mounts {
			p.Write = append(slices.Clone(p.Write), o.Scratch)
		} else {
			o.To = followExistingLinks(o.To)
			over = append(over, o)
		}
	}
	p.Over = over
	for _, list := range []*[]string{&p.Write, &p.Keep, &p.Hide, &p.Show} {
		out := lists.Pick(*list, func(path string) (string, bool) { return followShownPath(binds, path) })
		*list = out
	}
	// What the user adds may be named through a link: /var/run/docker.sock.
	p.Hide = slices.DeleteFunc(p.Hide, func(path string) bool { return slices.Contains(p.Write, path) })
	return p, links
}

// followExistingLinks follows the links of path, as far as anything is there.
func followExistingLinks(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil || path == "/" || path == "." {
		return cmp.Or(to, path)
	}
	return filepath.Join(followExistingLinks(filepath.Dir(path)), filepath.Base(path))
}

// maxLinks is how many links one path is followed through.
const maxLinks = 40

// noteLinks notes the links on the way to path.
func noteLinks(path string, links map[string]string, left int) {
	at := "/"
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		next := filepath.Join(at, name)
		to, err := os.Readlink(next)
		if err == nil && left > 0 {
			links[next] = to
			if !filepath.IsAbs(to) {
				to = filepath.Join(at, to)
			}
			noteLinks(to, links, left-1)
			next, err = filepath.EvalSymlinks(next)
			if err != nil {
				return
			}
		}
		at = next
	}
}

// followShownPath is where path leads to, if anything is there. What a bind shows is
// looked for where it is shown from: what the machine has at path does not count.
func followShownPath(binds []Bind, path string) (string, bool) {
	if b, ok := innermostBindOf(binds, filepath.Clean(path)); ok {
		path = filepath.Clean(path)
		_, err := os.Lstat(b.From + path[len(b.To):])
		return path, err == nil
	}
	found, err := filepath.EvalSymlinks(path)
	return found, err == nil && filepath.IsAbs(found)
}
