package serve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/mcp"
	"github.com/pawl-dev/pawl/internal/ask/web"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// maxChildren is how many runs one server drives at once.
const maxChildren = 20

// childrenEnd is how long all children may take to end their agents.
const childrenEnd = 25 * time.Second

// children are the runs that were started from a browser: each is a pawl of its
// own in the background, as if it had been started in a terminal. They end with
// the server, as runs in a terminal end with it.
type children struct {
	a    *command.App
	root string

	mu    sync.Mutex
	list  []*child
	ended bool // no more are started
}

// child is one of them.
type child struct {
	*process.Detached
	id   process.Identity
	root string
	errs string // the file of its messages
}

// startChild starts pawl at a root with these arguments.
func (c *children) startChild(root string, args []string) (*child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, fault.Refuse("pawl ends")
	}
	c.forgetEnded()
	if len(c.list) >= maxChildren {
		return nil, fault.Refuse("this server already works on %d runs", maxChildren).
			Hint("Wait until one has ended, or start the run in a terminal")
	}
	exe, line, err := c.commandLine(root, "--quiet", "--color=never")
	if err != nil {
		return nil, err
	}
	dir := web.SessionDir(statedir.Of(c.root, c.a.Env))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot start pawl: %v", err)
	}
	errs, err := os.CreateTemp(dir, "run-*.err")
	if err != nil {
		return nil, fmt.Errorf("cannot start pawl: %v", err)
	}
	defer func() { _ = errs.Close() }()
	d, err := process.StartDetached(process.Command{Path: exe, Args: append(line, args...), Dir: root, Env: c.a.Env,
		Stderr: errs})
	if err != nil {
		_ = os.Remove(errs.Name())
		return nil, err
	}
	one := &child{Detached: d, root: root, errs: errs.Name()}
	one.id, _ = process.Identify(d.PID) // of one that has ended at once there is none, and nothing to end
	c.list = append(c.list, one)
	return one, nil
}

// commandLine returns the beginning of a command line of pawl at a root.
func (c *children) commandLine(root string, flags ...string) (exe string, args []string, err error) {
	if exe, err = os.Executable(); err != nil {
		return "", nil, fmt.Errorf("cannot start pawl: %v", err)
	}
	args = append([]string{exe, "-C", root}, flags...)
	if c.a.File != "" && root == c.root {
		if file, err := filepath.Abs(filepath.Join(c.a.Dir, c.a.File)); err == nil {
			args = append(args, "--config="+file)
		}
	}
	return exe, args, nil
}

// shellCommand returns the command that opens a shell in the workspace of a task.
func (c *children) shellCommand(task string) (process.Command, error) {
	exe, line, err := c.commandLine(c.root)
	return process.Command{Path: exe, Args: append(line, "case", "shell", task), Dir: c.root,
		Env: append(slices.Clone(c.a.Env), "TERM=xterm-256color")}, err
}

// forgetEnded forgets those that have ended.
func (c *children) forgetEnded() {
	var kept []*child
	for _, one := range c.list {
		select {
		case <-one.Done():
			_ = os.Remove(one.errs)
		default:
			kept = append(kept, one)
		}
	}
	c.list = kept
}

// lastMessage returns the end of the child's stderr. If the child has exited at once,
// that is its error.
func (c *child) lastMessage() string {
	data, err := os.ReadFile(c.errs)
	if err != nil {
		return ""
	}
	const enough = 2000
	text := strings.TrimSpace(string(data[max(0, len(data)-enough):]))
	return strings.TrimPrefix(text, "pawl: ")
}

// endAllChildren ends all that still run. They end their agents first; who takes too long
// is killed, and its supervisor ends the agent.
func (c *children) endAllChildren() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.forgetEnded()
	for _, one := range c.list {
		_ = one.id.Signal(syscall.SIGTERM) // gone already
	}
	late, kill := context.WithTimeout(context.Background(), childrenEnd)
	defer kill()
	for _, one := range c.list {
		select {
		case <-one.Done():
		case <-late.Done():
			_ = one.id.Signal(syscall.SIGKILL)
			<-one.Done()
		}
		_ = os.Remove(one.errs)
	}
	n := 0
	for _, one := range c.list {
		if one.root == c.root { // others are the servers of other repositories
			n++
		}
	}
	if n > 0 {
		c.a.Say("Stopped what was started from here: %s. 'pawl ps -a' lists them, 'pawl resume' continues one.",
			fault.Numbered(n, "run"))
	}
}

// launchTime is how long a run may take until it says that it works: the
// machine's sandbox is tried in it.
const launchTime = 30 * time.Second

// launchRun starts pawl in the background, and waits until it has begun or has ended.
func (c *children) launchRun(ctx context.Context, args []string, begun web.Begun) (id string, err error) {
	return c.launchAt(ctx, c.root, args, begun)
}

// serveRoot starts the server of another repository.
func (c *children) serveRoot(ctx context.Context, root string) error {
	_, err := c.launchAt(ctx, root, []string{"serve"}, func(pid int) (string, bool, error) {
		session, err := web.LoadSession(statedir.Of(root, c.a.Env))
		return "", err == nil && session.Owner.PID == pid, nil // what is wrong is what the server says
	})
	return err
}

func (c *children) launchAt(ctx context.Context, root string, args []string, begun web.Begun) (id string, err error) {
	child, err := c.startChild(root, args)
	if err != nil {
		return "", err
	}
	late := time.NewTimer(launchTime)
	defer late.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ended := false; ; {
		id, ok, err := begun(child.PID)
		if ok || err != nil {
			return id, err
		}
		if ended {
			if said := child.lastMessage(); said != "" {
				return "", fault.Refuse("%s", said)
			}
			return "", fault.Of(fault.Refused, web.ErrEnded)
		}
		select {
		case <-child.Done():
			ended = true // one more look: it may have been quick
		case <-tick.C:
		case <-late.C:
			return "", fmt.Errorf("pawl %s has not started within %s; see 'pawl ps'", args[0], launchTime)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// MCPCommand is pawl mcp.
func MCPCommand(a *command.App) *cobra.Command {
	var inside string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve pawl's tools to a program over the Model Context Protocol",
		Args: command.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inside != "" {
				return mcp.NewInside(inside, command.BuildVersion()).Serve(cmd.Context(), a.Stdin, a.Stdout)
			}
			return serveMCP(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&inside, "run", "", "the `FOLDER` of a run: the tools of its agent, as agents.NAME.mcp "+
		"starts them")
	return cmd
}

func serveMCP(ctx context.Context, a *command.App) error {
	if err := notServedInside(a, "pawl mcp"); err != nil {
		return err
	}
	if a.Interactive() {
		return command.Usage("'pawl mcp' talks to a program, not to a person").
			Hint("Let Claude Code start it: claude mcp add pawl -- pawl mcp")
	}
	db, root, err := a.Store(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, stop := untilSignal(ctx)
	defer stop()
	runs := &children{a: a, root: root}
	defer runs.endAllChildren()
	server, err := buildTools(web.New(nil, buildOptions(ctx, a, db, root, runs)), db, statedir.Of(root, a.Env))
	if err != nil {
		return err
	}
	err = server.Serve(ctx, a.Stdin, a.Stdout)
	stop() // from here on a second signal ends pawl at once
	return err
}

// buildTools makes MCP tools of the API's operations, and adds the iteration tools.
func buildTools(api *web.Server, db *store.Store, stateDir string) (*mcp.Server, error) {
	text, err := api.Description()
	if err != nil {
		return nil, err
	}
	return mcp.New(mcp.Options{
		API: api.API(), Description: text, Version: command.BuildVersion(), StateDir: stateDir,
		Next: func(ctx context.Context) (board.Choice, bool, error) {
			return db.NextCaseOf(ctx, store.CaseFilter{}, nil)
		},
	})
}
