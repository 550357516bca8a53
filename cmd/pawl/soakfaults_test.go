package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// fault is something that goes wrong. It says whether it happened: some find nothing
// to break.
type fault struct {
	name string
	// starts is how many more agents may be started because of it.
	starts int
	happen func(*soak) bool
}

// faults are all that a soak knows; a new one is a function and a line here.
var faults = []fault{
	{"pawl is killed", 1, (*soak).killPawl},
	{"an agent is killed", 1, (*soak).killAgent},
	{"git is killed", 1, (*soak).killGit},
	{"a gate cannot reach a service", 0, (*soak).flakyGate},
	{"the provider is down", 0, (*soak).providerDown},
	{"the disk is full", soakSlots, (*soak).fillDisk},
	{"the target is red", 0, (*soak).redTarget},
	{"another clone lands", 0, (*soak).landElsewhere},
	{"the person collects garbage", 0, (*soak).collectGarbage},
	{"the person packs everything", 0, (*soak).repack},
	{"the person commits", 0, (*soak).commit},
	{"the person locks the index", 0, (*soak).lockIndex},
}

// repair ends a fault that lasts, at its time. It is done again until it is true.
type repair struct {
	at  time.Time
	end func() bool
}

// strike has something go wrong.
func (s *soak) strike() {
	f := faults[s.random.IntN(len(faults))]
	if f.happen(s) {
		s.seen[f.name]++
		s.allowed += f.starts
	}
}

// lasts ends a fault after some seconds.
func (s *soak) lasts(seconds int, end func() bool) {
	d := time.Duration(1000+s.random.IntN(1000*seconds)) * time.Millisecond
	s.repairs = append(s.repairs, repair{at: time.Now().Add(d), end: end})
}

// mend ends the faults whose time has come, and says whether none is left.
func (s *soak) mend() bool {
	now := time.Now()
	s.repairs = slices.DeleteFunc(s.repairs, func(r repair) bool { return !r.at.After(now) && r.end() })
	return len(s.repairs) == 0
}

// killPawl happens in the first half only: what grows in one that lives longer shows
// in the second.
func (s *soak) killPawl() bool { return !s.keep && s.pilot.Process.Kill() == nil }

func (s *soak) killAgent() bool { return s.killOne("agent.sh") }

func (s *soak) killGit() bool { return s.killOne("git\x00") }

// killOne kills one of the processes of the soak whose command line holds the words.
func (s *soak) killOne(words string) bool {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	s.random.Shuffle(len(dirs), func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.Contains(string(line), words) {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), "HOME="+s.home) {
			continue
		}
		pid := 0
		if _, err := fmt.Sscan(filepath.Base(dir), &pid); err == nil {
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

// flakyGate makes one run of a gate fail, and not the next ones of the same verdict.
func (s *soak) flakyGate() bool {
	if time.Since(s.flakyAt) < 10*time.Second {
		return false
	}
	s.flakyAt = time.Now()
	f, err := os.CreateTemp(s.counts, "flaky-*")
	return err == nil && f.Close() == nil
}

// providerDown has the provider answer nobody for some seconds.
func (s *soak) providerDown() bool {
	down := filepath.Join(s.counts, "down")
	if err := os.WriteFile(down, nil, 0o600); err != nil {
		return false
	}
	s.lasts(8, func() bool { return os.Remove(down) == nil || !exists(down) })
	return true
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// fillDisk leaves no room on the disk that repository and state are on.
func (s *soak) fillDisk() bool {
	fill := filepath.Join(s.disk, "fill")
	if s.disk == "" || exists(fill) {
		return false
	}
	f, err := os.Create(fill) //nolint:gosec // a folder of the test
	if err != nil {
		return false
	}
	_, err = io.Copy(f, zeros{})
	_ = f.Close()
	s.lasts(5, func() bool { return os.Remove(fill) == nil || !exists(fill) })
	return errors.Is(err, syscall.ENOSPC)
}

// zeros is an endless file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// redTarget has the person commit what the gate refuses, and repair it later.
func (s *soak) redTarget() bool {
	if exists(filepath.Join(s.dir, "broken")) || s.put("broken", "it is\n", "break it") != nil {
		return false
	}
	s.lasts(10, func() bool {
		if s.git("rm", "-q", "-f", "--ignore-unmatch", "--", "broken").Run() != nil {
			return false
		}
		if s.git("diff", "--quiet", "HEAD", "--", "broken").Run() == nil {
			return true
		}
		return s.git("commit", "-qm", "repair it", "--", "broken").Run() == nil
	})
	return true
}

// commit changes the target beside pawl.
func (s *soak) commit() bool {
	return s.put("notes", fmt.Sprintln(s.random.Uint64()), "notes") == nil
}

// put commits a file as the person, and nothing else that the person has.
func (s *soak) put(name, text, message string) error {
	err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600)
	if err == nil {
		err = s.git("add", "--", name).Run()
	}
	if err == nil {
		err = s.git("commit", "-qm", message, "--", name).Run()
	}
	if err != nil { // the person tries no longer
		_ = s.git("reset", "-q", "--", name).Run()
		_ = s.git("checkout", "-q", "--", name).Run()
		if s.git("cat-file", "-e", "HEAD:"+name).Run() != nil {
			_ = os.Remove(filepath.Join(s.dir, name))
		}
	}
	return err
}

// landElsewhere has a pawl of another clone land a task on the same remote.
func (s *soak) landElsewhere() bool {
	if s.peer != nil || exists(filepath.Join(s.disk, "fill")) {
		return false
	}
	add := s.elsewhere("pawl", "case", "add", "Other")
	if add.Run() != nil { // the disk may be full
		return false
	}
	s.others++
	s.workElsewhere()
	s.lasts(1, func() bool { return s.peer == nil })
	return true
}

// workElsewhere starts the autopilot of the other clone.
func (s *soak) workElsewhere() {
	pilot := s.elsewhere("pawl", "autopilot", "--config", filepath.Join(s.counts, "other.yaml"))
	var said strings.Builder
	pilot.Stdout, pilot.Stderr = &said, &said
	if err := pilot.Start(); err != nil {
		s.t.Error(err)
		return
	}
	ended := make(chan error, 1)
	s.peer = ended
	go func() {
		err := pilot.Wait()
		if err != nil {
			err = fmt.Errorf("in the other clone: %w\n%s", err, said.String())
		}
		ended <- err
	}()
}

// lookElsewhere takes note of the end of the other clone's autopilot.
func (s *soak) lookElsewhere() {
	select {
	case err := <-s.peer:
		s.peerEnded(err)
	default:
	}
}

func (s *soak) peerEnded(err error) {
	s.t.Helper()
	s.peer = nil
	if err != nil {
		s.t.Fatal(err)
	}
}

// elsewhere is a command in the other clone.
func (s *soak) elsewhere(name string, args ...string) *exec.Cmd {
	cmd := s.program(name, args)
	cmd.Dir = s.other
	return cmd
}

func (s *soak) collectGarbage() bool { return s.git("gc", "-q", "--prune=now").Run() == nil }

// repack drops what nothing leads to. Git's graph of commits may still name it, which
// its own fsck complains of: that is made anew.
func (s *soak) repack() bool {
	packed := s.git("repack", "-adq").Run() == nil
	return s.git("commit-graph", "write", "--reachable").Run() == nil && packed
}

// lockIndex leaves the lock of a git that was killed, in pawl's own folder of a clone.
func (s *soak) lockIndex() bool {
	found, _ := filepath.Glob(filepath.Join(s.home, "state", "pawl", "*", "pool", "*", "index"))
	if len(found) == 0 {
		return false
	}
	return os.WriteFile(found[s.random.IntN(len(found))]+".lock", nil, 0o600) == nil
}
