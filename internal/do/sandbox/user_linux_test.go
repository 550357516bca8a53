package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobodys is a user that no machine has, and that owns nothing.
const nobodys = 64321

// Root is held otherwise than a user, so where root runs the tests, all of them
// are run once more as a user, who has no name and no home.
func TestAllOfThisAsAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a user runs the tests")
	}
	dir := reachable(t)
	if err := os.Chown(dir, nobodys, nobodys); err != nil {
		t.Skipf("nothing can be given to another user: %v", err)
	}
	program := filepath.Join(dir, "sandbox.test")
	copyProgram(t, program)
	cmd := exec.CommandContext(t.Context(), program, "-test.skip", "TestOrdinaryProgramsWork", "-test.failfast=false")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir, "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodys, Gid: nobodys}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		text := string(out)
		t.Errorf("as a user: %v\n%s", err, text[max(0, strings.LastIndex(text[:max(0, len(text)-8000)], "\n")):])
	}
}

// reachable is a new folder in one that every user reaches: the tests' own
// folders are their owner's alone.
func reachable(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{"/dev/shm", os.TempDir(), "/tmp", "/var/tmp"} {
		open := true
		for at := parent; at != "/"; at = filepath.Dir(at) {
			info, err := os.Stat(at)
			open = open && err == nil && info.Mode()&0o001 != 0
		}
		if !open {
			continue
		}
		dir, err := os.MkdirTemp(parent, "u-") //nolint:usetesting // see above
		if err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			return dir
		}
	}
	t.Skip("no temporary folder is open to other users")
	return ""
}

// copyProgram copies this program to where the user may execute it.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // a program
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(f, from); err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
