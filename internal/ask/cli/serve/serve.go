// Package serve has pawl serve, and what browsers ask for: an action of the operator,
// or a pawl of its own in the background.
package serve

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"

	queuecli "github.com/pawl-dev/pawl/internal/ask/cli/queue"
	"github.com/pawl-dev/pawl/internal/ask/web"
	"github.com/pawl-dev/pawl/internal/ask/web/listen"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// defaultAddress is where the server listens if no flag gives an address and the
// configuration cannot be read.
const defaultAddress = "127.0.0.1:7295"

// serveFlags are those of serve.
type serveFlags struct {
	address  string
	hosts    []string
	insecure bool
	url      bool
	newToken bool
	webhooks bool
	resumed  func() // is called when an autopilot that was cut off works again; nil: none is started again
}

// Command is pawl serve.
func Command(a *command.App) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the web UI and the API on this machine",
		Args: command.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.url {
				return serveURL(a)
			}
			return runServer(cmd.Context(), a, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.address, "address", "", "listen on `HOST:PORT`; default: server.address")
	fl.StringArrayVar(&f.hosts, "host", nil, "also answer to the name `NAME`; may be repeated")
	fl.BoolVar(&f.insecure, "insecure", false, "allow other machines to connect without TLS")
	fl.BoolVar(&f.url, "url", false, "print the address of the server that runs here, with its token")
	fl.BoolVar(&f.newToken, "new-token", false, "create a new token; browsers with the old one are logged out")
	fl.BoolVar(&f.webhooks, "webhooks", false, "accept webhooks of the forge at /webhooks")
	return cmd
}

// serveURL prints how the server that runs here is reached.
func serveURL(a *command.App) error {
	root, err := a.Root()
	if err != nil {
		return err
	}
	s, err := web.LoadSession(statedir.Of(root, a.Env))
	if err != nil && !errors.Is(err, web.ErrNoSession) {
		return err
	}
	if !s.Alive() {
		return fault.Of(fault.Failed, errors.New("no server runs for this repository")).Hint("Start one: pawl serve")
	}
	return printAddress(a, s)
}

func printAddress(a *command.App, s web.Session) error {
	if a.JSON {
		return a.JSONLine(map[string]any{"url": s.Link(), "address": s.URL, "token": s.Token, "pid": s.Owner.PID})
	}
	a.Result("%s\n", s.Link())
	return nil
}

func runServer(ctx context.Context, a *command.App, f serveFlags) error {
	if err := notServedInside(a, "pawl serve"); err != nil {
		return err
	}
	db, root, err := a.Store(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, stop := untilSignal(ctx)
	defer stop()
	f.resumed = func() { a.Say("The autopilot works again, as it was cut off. To stop it: pawl autopilot stop") }
	s, err := openServer(ctx, a, db, root, f)
	if err != nil {
		return err
	}
	if err := printAddress(a, s.Session); err != nil {
		return err
	}
	a.Say("pawl serves %s. Ctrl+C ends it; 'pawl serve --url' prints the address again.", root)
	// Many pages that load at once must not take more memory than they need.
	debug.SetGCPercent(50)
	err = s.server.Serve(ctx)
	stop() // from here on a second Ctrl+C ends pawl at once
	s.runs.endAllChildren()
	return err
}

// Beside serves while something else is done in this process.
func Beside(ctx context.Context, a *command.App, db *store.Store, root string, do func() error) error {
	if before, err := web.LoadSession(statedir.Of(root, a.Env)); err == nil && before.Alive() {
		a.Say("Note: process %d serves the web UI already; 'pawl serve --url' prints its address.", before.Owner.PID)
		return do()
	}
	s, err := openServer(ctx, a, db, root, serveFlags{})
	if err != nil {
		return err
	}
	a.Say("The web UI: %s", s.Session.Link())
	serving, stop := context.WithCancel(ctx)
	wait := s.server.Start(serving)
	err = do()
	stop()
	if werr := wait(); werr != nil {
		a.Say("Warning: %v", werr)
	}
	s.runs.endAllChildren()
	return err
}

// notServedInside refuses a server that an agent or a gate starts: it would
// have the person's rights.
func notServedInside(a *command.App, what string) error {
	if run := a.Getenv("PAWL_RUN"); run != "" {
		return command.Usage("cannot serve inside of run %s: an agent or a check of it called %s", run, what)
	}
	return nil
}

// untilSignal is done when a person ends pawl. A signal that was ignored when
// pawl started stays ignored, so that nohup works.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	return signal.NotifyContext(ctx, slices.DeleteFunc(ends, signal.Ignored)...)
}

// opened is a server that is ready to serve.
type opened struct {
	server  *web.Server
	Session web.Session
	runs    *children
}

// openServer listens, and keeps how the server is reached.
func openServer(ctx context.Context, a *command.App, db *store.Store, root string, f serveFlags) (*opened, error) {
	dir := statedir.Of(root, a.Env)
	before, err := web.LoadSession(dir)
	if err != nil && !errors.Is(err, web.ErrNoSession) {
		a.Say("Warning: %v; created a new token", err)
	}
	if before.Alive() {
		return nil, command.Usage("pawl serves this repository already, as process %d", before.Owner.PID).
			Hint("Open it: pawl serve --url")
	}
	door, err := listen.Open(ctx, listenAddress(a, f))
	if err != nil {
		return nil, listenError(err)
	}
	session := web.Session{URL: door.URL(), Token: before.Token}
	if f.newToken || !web.IsToken(session.Token) {
		session.Token = web.NewToken()
	}
	if session.Owner, err = process.Self(); err == nil {
		err = session.Save(dir)
	}
	if err != nil {
		_ = door.Close() // the error that matters is the one at hand
		return nil, err
	}
	runs := &children{a: a, root: root}
	o := buildOptions(ctx, a, db, root, runs)
	o.Token, o.Resumed = session.Token, f.resumed
	if f.webhooks {
		o.Webhook = func(ctx context.Context) error { return queuecli.LookAtForge(ctx, a, o.Operator) }
		a.Say("Webhooks: POST %s/webhooks as application/json, with the secret %s", session.URL,
			session.WebhookSecret())
	}
	server := web.New(door, o)
	t, err := buildTools(server, db, dir)
	if err != nil {
		_ = door.Close() // the error that matters is the one at hand
		return nil, err
	}
	server.ServeTools(t.Handler())
	return &opened{server, session, runs}, nil
}

// buildOptions lets the server do what the commands do. The actions print nothing and
// ask no question.
func buildOptions(ctx context.Context, a *command.App, db *store.Store, root string, runs *children) web.Options {
	dir := statedir.Of(root, a.Env)
	tree, err := workspace.Open(ctx, root, workspace.Options{StateDir: dir})
	if err != nil {
		a.Say("Note: %v; there are no diffs and no rollbacks.", err)
		tree = nil
	}
	silent := *a
	silent.Stdin, silent.Stdout, silent.Stderr = strings.NewReader(""), io.Discard, io.Discard
	silent.Dir, silent.JSON, silent.Color = root, false, "never"
	return web.Options{
		Operator: silent.Operator(db, root), StateDir: dir, Version: command.BuildVersion(), Tree: tree,
		Launch: runs.launchRun, ServeRoot: runs.serveRoot, Shell: runs.shellCommand,
		AskQueue: func(ctx context.Context, ask queue.Ask) error {
			return queuecli.WithQueue(ctx, &silent, func(q *queuecli.OpenQueue) error {
				return queuecli.AskQueue(ctx, &silent, q, []queue.Ask{ask})
			})
		},
		OpenQueue: func(ctx context.Context, do func(*merge.Queue) error) error {
			return queuecli.WithQueue(ctx, &silent, func(q *queuecli.OpenQueue) error { return do(q.Queue) })
		},
		Pool: func(ctx context.Context) (*pool.Pool, error) {
			c, err := silent.Load(nil)
			if err != nil {
				return nil, err
			}
			return silent.Pool(ctx, c, db)
		},
	}
}

// listenAddress is the address by flag or configuration.
func listenAddress(a *command.App, f serveFlags) listen.Address {
	out := listen.Address{Address: f.address, Named: f.address != "", Insecure: f.insecure, Hosts: f.hosts}
	c, err := a.Load(nil)
	if err != nil {
		a.Say("Warning: the configuration cannot be read: %v", err)
		out.Address = cmp.Or(out.Address, defaultAddress)
		return out
	}
	if out.Address == "" {
		out.Address, out.Named = c.Server.Address, c.IsSet("server.address")
	}
	out.Cert, out.Key = string(c.Server.TLSCert), string(c.Server.TLSKey)
	return out
}

// listenError adds what to do about an address that cannot be used.
func listenError(err error) error {
	e := fault.Of(fault.Refused, err)
	switch {
	case errors.Is(err, listen.ErrExposed):
		return e.Hint("Set server.tls_cert and server.tls_key, so that the connection is encrypted").
			Hint("Or use --insecure, if you trust everybody on that network").
			Hint("From another machine without either: ssh -L 7295:127.0.0.1:7295 HOST")
	case errors.Is(err, listen.ErrPortInUse):
		return e.Hint("Choose another port: pawl serve --address 127.0.0.1:PORT").
			Hint("Or leave --address out: then the next free port is taken")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return e.Hint("Name an address that this machine has: pawl serve --address '[::1]:7295'")
	}
	return e
}
