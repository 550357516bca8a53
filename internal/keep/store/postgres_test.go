package store

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// onServer has all tests of the room use databases of the server at this address.
const onServer = "PAWL_TEST_STORE_SERVER"

// The suite runs again, on PostgreSQL: the same tests in a second process.
func TestOnPostgreSQL(t *testing.T) {
	if os.Getenv(onServer) != "" || testing.Short() {
		t.Skip("this is the second process")
	}
	server := pgtest.Start(t)
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), onServer+"="+server.Address("postgres"))
	out, err := cmd.CombinedOutput()
	if passed := strings.Count(string(out), "\n--- PASS"); err != nil || passed < 30 {
		t.Errorf("%d passed (%v):\n%s", passed, err, out)
	}
}

var boards atomic.Int64

// another is the address of a new board; "" where the tests use files.
func another() string {
	address := os.Getenv(onServer)
	if address == "" {
		return ""
	}
	return address + "&repository=" + strconv.Itoa(int(boards.Add(1)))
}

// fileOnly skips a test of what a file does.
func fileOnly(t testing.TB) {
	t.Helper()
	if os.Getenv(onServer) != "" {
		t.Skip("this is about files")
	}
}
