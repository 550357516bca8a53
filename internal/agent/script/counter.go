package script

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// stateVar names the folder of the turn counters.
const stateVar = "PAWL_SCRIPT_STATE"

// turnNumber takes the next turn of the scene, counted from 1.
func turnNumber(scenario, scene string, env environment) (int, error) {
	dir := env.get(stateVar)
	if dir == "" {
		if n, err := strconv.Atoi(env.get("PAWL_ITERATION")); err == nil && n > 0 {
			return n, nil
		}
		return 1, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, fmt.Errorf("cannot keep the turn: %v", err)
	}
	h := fnv.New64a()
	h.Write([]byte(scenario + "\x00" + env.get("PAWL_RUN")))
	return increment(filepath.Join(dir, fmt.Sprintf("%016x.%s", h.Sum64(), scene)))
}

// increment adds one to the number in a file and returns it. Processes that
// do so at once get different numbers.
func increment(path string) (n int, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, fmt.Errorf("cannot keep the turn: %v", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("cannot keep the turn: %v", cerr)
		}
	}()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return 0, fmt.Errorf("cannot lock %s: %v", path, err)
	}
	b := make([]byte, 32)
	size, _ := f.ReadAt(b, 0) // an empty file is turn 0
	// The number only grows, so it never leaves a digit of an older one behind.
	n, err = strconv.Atoi(strings.TrimSpace(string(b[:size])))
	if err != nil && size > 0 {
		return 0, fmt.Errorf("cannot read the turn in %s: %v", path, err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(n+1)), 0); err != nil {
		return 0, fmt.Errorf("cannot keep the turn: %v", err)
	}
	return n + 1, nil
}
