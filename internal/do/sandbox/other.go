//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
)

const self = ""

var errNone = errors.New("there is no sandbox on " + runtime.GOOS)

// Probe finds nothing on this system.
func Probe(context.Context) Offer {
	return Offer{System: runtime.GOOS, Root: os.Geteuid() == 0, Missing: "pawl has no sandbox on " + runtime.GOOS}
}

// Main fails: there is no sandbox on this system.
func Main(stderr io.Writer) int {
	_, _ = fmt.Fprintf(stderr, "pawl: %v\n", errNone)
	return 1
}

// DefaultLimits are those that every system has.
func DefaultLimits() Limits { return Limits{Processes: maxProcesses, FileSize: maxFileSize} }

func errnoOf(n int) error { return syscall.Errno(n) } //nolint:gosec // small

func orderFile(order) (*os.File, error) { return nil, errNone }

func foreignSockets(Policy) []string { return nil }

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errNone }

func attributes(Means) *syscall.SysProcAttr { return new(syscall.SysProcAttr) }

func readStatus(*os.File) ([]byte, []*os.File, error) { return nil, nil, errNone }

func listenInward(Policy, []string) (*os.File, string) { return nil, "" }

// LimitGroup does nothing: there are no control groups.
func LimitGroup(Limits) (held bool, leave func()) { return false, func() {} }
