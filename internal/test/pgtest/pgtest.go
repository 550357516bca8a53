// Package pgtest starts the PostgreSQL that is installed, for tests: in a folder
// of its own, on a socket there, as an unprivileged user where the test is root,
// since the server refuses root. It does not wait for the disk.
package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Server is one that runs.
type Server struct {
	dir  string
	bin  string
	as   *syscall.SysProcAttr
	cmd  *exec.Cmd
	made int
}

// Start starts a server, or skips the test where none is installed. Who starts it
// calls Stop.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{as: withTest()}
	if s.bin = installed(); s.bin == "" {
		t.Skip("PostgreSQL is not installed: apt-get install postgresql")
	}
	must := func(err error) {
		if err != nil {
			t.Fatalf("cannot start PostgreSQL: %v", err)
		}
	}
	var err error
	s.dir, err = os.MkdirTemp(place(), "pg") //nolint:usetesting // t.TempDir is for the test's user alone
	must(err)
	t.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	must(s.unprivileged())
	out, err := s.command("initdb", "-D", s.data(), "-A", "trust", "-U", "pawl", "-E", "UTF8", "--locale=C.UTF-8", "-N").
		CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	t.Cleanup(s.Stop)
	must(s.Run())
	return s
}

// place is where servers have their folders: in memory where the tests are. Any other
// TMPDIR may be one that the server's user does not reach, or too long for a socket.
func place() string {
	dir := os.TempDir()
	if info, err := os.Stat(dir); strings.HasPrefix(dir, "/dev/shm/") && err == nil && info.Mode()&0o001 != 0 {
		return dir
	}
	return "/tmp"
}

// installed is the folder of the newest server's programs; "" is none.
func installed() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is right
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// unprivileged has the server run as Debian's user for it where the test is root.
func (s *Server) unprivileged() error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	s.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // they are small
	return errors.Join(err1, err2, os.Chown(s.dir, uid, gid))
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), filepath.Join(s.bin, program), args...) //nolint:gosec // a program of PostgreSQL
	cmd.Dir, cmd.SysProcAttr = s.dir, s.as
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	return cmd
}

// Run starts the server, again after Stop, and waits until it can be used. A crash takes up
// to three seconds of what did not have to be on disk, more than in a server as it comes.
func (s *Server) Run() error {
	s.cmd = s.command("postgres", "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "full_page_writes=off", "-c", "wal_writer_delay=1s", "-c", "max_connections=200", "-c", "shared_buffers=64MB")
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	var said strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), "ready to accept connections") {
			go func() {
				for lines.Scan() { // it must not wait for a reader
				}
			}()
			return nil
		}
	}
	return fmt.Errorf("it ended: %s", &said)
}

// Stop ends the server at once, as a crash does; to stop it twice does nothing.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	_ = s.cmd.Wait() // its exit status is the signal's
	s.cmd = nil
}

// FailOver ends the server at once, and starts it from a copy that was made before meanwhile
// was done: it has lost what was stored then, also what was on disk.
func (s *Server) FailOver(meanwhile func()) error {
	other := filepath.Join(s.dir, "copy")
	backup := s.command("pg_basebackup", "-h", s.dir, "-U", "pawl", "-D", other, "-X", "stream", "-c", "fast")
	if out, err := backup.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %v\n%s", err, out)
	}
	meanwhile()
	s.Stop()
	return errors.Join(os.RemoveAll(s.data()), os.Rename(other, s.data()), s.Run())
}

// Address is that of a database of the server.
func (s *Server) Address(name string) string {
	return "postgres://pawl@/" + name + "?host=" + s.dir
}

// SQL runs statements in a database, and returns what they print.
func (s *Server) SQL(t testing.TB, name, text string) string {
	t.Helper()
	cmd := s.command("psql", "-h", s.dir, "-U", "pawl", "-d", name, "-qAt", "-v", "ON_ERROR_STOP=1", "-c", text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// Dump is what a schema of a database holds, as a backup has it.
func (s *Server) Dump(t testing.TB, name, schema string) string {
	t.Helper()
	out, err := s.command("pg_dump", "-h", s.dir, "-U", "pawl", "-d", name, "-n", schema, "--restrict-key", "x").Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return string(out)
}

// PutBack puts a dump in the place of a schema, as a person does who restores a backup, in one transaction: a
// client that starts in between would make a schema of its own. A server whose clients work may end what it waits
// for as a deadlock: then it is done again.
func (s *Server) PutBack(t testing.TB, name, schema, dump string) {
	t.Helper()
	for {
		cmd := s.command("psql", "-h", s.dir, "-U", "pawl", "-d", name, "-q", "-1", "-v", "ON_ERROR_STOP=1")
		cmd.Stdin = strings.NewReader("DROP SCHEMA " + schema + " CASCADE;\n" + dump)
		out, err := cmd.CombinedOutput()
		if err == nil {
			return
		}
		if !strings.Contains(string(out), "deadlock detected") {
			t.Fatalf("psql: %v\n%s", err, out)
		}
	}
}

// New makes a database and returns its address.
func (s *Server) New(t testing.TB) string {
	t.Helper()
	s.made++
	name := fmt.Sprint("t", s.made)
	s.SQL(t, "postgres", "CREATE DATABASE "+name)
	return s.Address(name)
}
