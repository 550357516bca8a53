package command

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// keyBound is how long a command may take to print a key: a person may have to
// unlock it.
const keyBound = 2 * time.Minute

// Keys are those that commands printed: a person is asked for a password once.
type Keys struct {
	mu   sync.Mutex
	have map[string]string
}

// KeyFrom is the first line that a command of gateway.keys or forge prints. It runs outside
// of any box, and finds no program that an agent may have put in the tree.
func (a *App) KeyFrom(root, command string) (string, error) {
	a.Keys.mu.Lock()
	defer a.Keys.mu.Unlock()
	if key := a.Keys.have[command]; key != "" {
		return key, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env, _ = a.Outside(root)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = root, a.Stderr, time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("the command did not end within %s", keyBound)
	}
	if err != nil {
		return "", fmt.Errorf("the command failed: %v", err)
	}
	key, _, _ := strings.Cut(string(out), "\n")
	key = strings.TrimSpace(key)
	if key == "" {
		return "", errors.New("the command printed nothing")
	}
	if a.Keys.have == nil {
		a.Keys.have = map[string]string{}
	}
	a.Keys.have[command] = key
	return key, nil
}
