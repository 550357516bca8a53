//go:build unix

package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// LockLimit is how long [Lock] waits for another process.
const LockLimit = time.Minute

// Lock opens path with the flags of [os.OpenFile] and takes an exclusive lock
// on it, which ends when the file is closed by everyone who inherited it. It
// gives up when ctx is done, and after [LockLimit].
func Lock(ctx context.Context, path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, LockLimit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("cannot lock %s: another pawl holds it: %w", path, ctx.Err()), f.Close())
		case <-tick.C:
		}
	}
}
