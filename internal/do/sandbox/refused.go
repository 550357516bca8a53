package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/process"
)

const (
	maxRefused = 3   // lines that are reported
	maxLine    = 300 // bytes of a line
)

// Refused are the lines of output, at most three, that tell of something that
// a box with this policy refused: "Read-only file system" is said nowhere
// else, "Permission denied" counts with a path that is out of bounds, "busy"
// with one that is kept, and "No such file" or "not found" with what the machine has
// and the box does not show.
func Refused(p Policy, output string) []string {
	var out []string
	named := localPortsIn(p, output)
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if len(out) == maxRefused || !tellsRefusal(p, line, named) {
			continue
		}
		if line = fault.Cut(line, maxLine); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

func tellsRefusal(p Policy, line string, named []int) bool {
	low := strings.ToLower(line)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	switch {
	case has("read-only file system", "erofs"):
		return true
	case has("permission denied", "operation not permitted", "eacces", "eperm"):
		if namesShut(p, line) {
			return true
		}
		return anyPathInLine(line, func(path string) bool { return filepath.IsAbs(path) && outOfBounds(p, path) })
	case refusedPort(p, line, named) > 0:
		return true
	case has("resource busy", "ebusy"):
		return NamesKept(p, line)
	}
	return NotShown(p, line) != ""
}

// namesShut reports whether a line names a port that the box does not reach.
func namesShut(p Policy, line string) bool {
	words := strings.FieldsFunc(line, func(r rune) bool { return r < '0' || r > '9' })
	return slices.ContainsFunc(p.Shut, func(port int) bool { return slices.Contains(words, strconv.Itoa(port)) })
}

// refusedWords are how programs say that no server answers.
var refusedWords = []string{"refused", "t connect", "not connect", "failed to connect", "connection failed"}

// portNumber is what may be one.
var portNumber = lazy.Regexp(`\b\d{2,5}\b`)

// refusedPort finds the port that a line of output cannot connect to, where this machine has a server at it:
// a box whose loopback is its own does not reach that. If the line has no address, it is the first of named,
// what the rest of the output names. 0 is none.
func refusedPort(p Policy, line string, named []int) int {
	low := strings.ToLower(line)
	has := func(word string) bool { return strings.Contains(low, word) }
	if !p.Own || !slices.ContainsFunc(refusedWords, has) {
		return 0
	}
	if has("localhost") || has("127.0.") || has("::1") {
		named = p.listeningOf(portNumber().FindAllString(line, -1))
	} else if anyAddress().MatchString(line) {
		return 0
	}
	if len(named) == 0 {
		return 0
	}
	return named[0]
}

// anyAddress is a host and a port, or words that introduce them.
var anyAddress = lazy.Regexp(`(?i)://|\bport\b|[\w\])]:\d{2,5}\b`)

// localPort is a port of the loopback that a program, its output or its source names.
var localPort = lazy.Regexp(`(?i)(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1)[^\d\n]{1,16}(\d{2,5})\b`)

// localPortsIn finds the ports of the loopback that an output names, where this machine has servers that a box
// with this policy does not reach.
func localPortsIn(p Policy, output string) []int {
	if !p.Own {
		return nil
	}
	return p.listeningOf(lists.Each(localPort().FindAllStringSubmatch(output, maxNamed), func(found []string) string {
		return found[1]
	}))
}

// listeningOf picks the ports at which this machine has a server to which the box has no door.
func (p Policy) listeningOf(words []string) []int {
	open := listeningPorts()
	return lists.Pick(words, func(word string) (int, bool) {
		port, err := strconv.Atoi(word)
		return port, err == nil && open[port] && !slices.Contains(p.Doors, port)
	})
}

// listening is a server in the kernel's table, and its port.
var listening = lazy.Regexp(`(?m)^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 0A `)

// listeningPorts asks the kernel at which ports of TCP this machine has a server.
func listeningPorts() map[int]bool {
	out := map[int]bool{}
	for _, name := range []string{"tcp", "tcp6"} {
		table, _ := os.ReadFile("/proc/net/" + name) // a kernel may have either alone
		for _, found := range listening().FindAllSubmatch(table, -1) {
			port, _ := strconv.ParseUint(string(found[1]), 16, 16) // it is one
			out[int(port)] = true                                  //nolint:gosec // a port
		}
	}
	return out
}

// missingWords are how programs say that something is not there.
var missingWords = []string{
	"no such file", "enoent", "nonexistent", "not found", "does not exist", "doesn't exist", "cannot find",
	"can't find", "could not find", "cannot open", "can't open", "unable to find", "connect to", "permission denied",
}

// NotShown finds what a line of output misses, the machine has, and a box with this
// policy does not show: a path that the line names, or a program of the user's PATH.
func NotShown(p Policy, line string) string {
	low := strings.ToLower(line)
	if !slices.ContainsFunc(missingWords, func(w string) bool { return strings.Contains(low, w) }) {
		return ""
	}
	found := ""
	anyPathInLine(line, func(word string) bool {
		word = strings.TrimPrefix(word, "unix:/") // of unix:///run/some.sock
		if !strings.Contains(word, "/") {
			path, err := process.Command{Args: []string{word}, Env: os.Environ(), Dir: "/"}.Resolve()
			if err != nil || !filepath.IsAbs(path) {
				return false
			}
			word = path
		}
		found = pathNotShown(p, word)
		return found != ""
	})
	return found
}

// pathNotShown is path where the machine has it and a box does not show it, or the folder
// that path would be made in; "" is neither.
func pathNotShown(p Policy, path string) string {
	if !filepath.IsAbs(path) || !slices.Contains(p.Hide, "/") {
		return ""
	}
	for _, at := range []string{path, filepath.Dir(path)} {
		if _, err := os.Lstat(at); err == nil {
			if isShownInBox(p, at) {
				return ""
			}
			return at
		}
	}
	return ""
}

// isShownInBox asks whether a box has what the machine has at path.
func isShownInBox(p Policy, path string) bool {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	deepest := func(list []string) int {
		most := -1
		for _, one := range list {
			if to, err := filepath.EvalSymlinks(one); err == nil {
				one = to
			}
			if isWithin(one, path) {
				most = max(most, len(one))
			}
		}
		return most
	}
	shown := slices.Concat(p.Write, p.Show, p.Keep, devices, []string{"/proc"})
	shown = append(shown, lists.Each(p.Binds, func(b Bind) string { return b.To })...)
	shown = append(shown, lists.Each(p.Over, func(o Over) string { return o.To })...)
	for _, b := range p.Temp { // the box's own is there, and nothing of what the machine has in it
		if b.To == path {
			return true
		}
	}
	return deepest(shown) >= deepest(p.Hide) && deepest(shown) >= 0
}

// NamesKept is whether a line names a path that is kept from being changed.
func NamesKept(p Policy, line string) bool {
	return anyPathInLine(line, func(path string) bool { return isKeptInPlace(p, path) })
}

// anyPathInLine is whether a word of the line is a path that is so.
func anyPathInLine(line string, so func(path string) bool) bool {
	between := func(r rune) bool { return strings.ContainsRune(" \t'\"`‘’“”:,;()[]", r) }
	return slices.ContainsFunc(strings.FieldsFunc(line, between), func(word string) bool {
		return len(word) > 1 && !strings.HasPrefix(word, "//") && so(filepath.Clean(word))
	})
}

// isKeptInPlace is whether path, which may be relative to anything, is kept or holds
// what is: to replace or to move it fails as a mount that is in use.
func isKeptInPlace(p Policy, path string) bool {
	return slices.ContainsFunc(p.Keep, func(k string) bool {
		for dir := k; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
			if dir == path || strings.HasSuffix(dir, "/"+path) {
				return true
			}
		}
		return false
	})
}

func outOfBounds(p Policy, path string) bool {
	in := func(w string) bool { return isWithin(w, path) }
	if slices.ContainsFunc(p.Temp, func(b Bind) bool { return isWithin(b.To, path) }) {
		return slices.ContainsFunc(p.Show, in)
	}
	return slices.ContainsFunc(p.Hide, in) || slices.ContainsFunc(p.Keep, in) || !slices.ContainsFunc(p.Write, in)
}

// devices are what a program expects in /dev. All else there acts on the machine,
// as disks do, terminals, and what simulates a keyboard.
var devices = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts",
}
