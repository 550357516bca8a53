// Package program is an agent program as data: what to call, which flags make
// it work headless, how it takes its prompt, where it keeps its state. One
// [Adapter] makes command lines for all of them, so that a new program is a
// [Program] and, if its output is a format of its own, a parser.
//
// Permission prompts are off at every safety level, since a headless program
// cannot ask: what it may touch is enforced by pawl's sandbox, not by the
// program that is to be held. Where a program has a narrower mode that still
// gets the work done alone, the level paranoid uses it.
//
// The package starts nothing. It reads the prompt's file only when the prompt
// is an argument.
package program

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// MaxArgument is the longest argument that Linux passes to a program, in
// bytes, with the NUL at its end.
const MaxArgument = 128 << 10

// Delivery is how a program takes its prompt.
type Delivery string

// The deliveries. With all but Stdin the program's stdin is the null device.
const (
	Stdin    Delivery = ""         // the prompt is stdin
	Argument Delivery = "argument" // the prompt is the last argument, behind PromptAt if that is set
	File     Delivery = "file"     // the path of the prompt's file follows PromptAt
)

// Program describes one agent program.
type Program struct {
	Name    string   // as pawl calls it
	Binary  string   // looked up in PATH
	Wrapped []string // where the real binary is, from the folder of the npm package's wrapper; nil is no wrapper
	Flags

	Prompt   Delivery
	PromptAt string // the flag before the prompt or its file, or the argument that stands for stdin
	// Limit is the longest prompt that the program takes whole, in bytes; 0 is
	// none known. With Characters it is in characters.
	Limit      int64
	Characters bool

	Gateway
	Account

	Env   []string // updates and telemetry off, K=V
	Unset []string
	State State

	Grace  time.Duration // after TERM, before KILL
	Quiet  time.Duration // how long it is silent at work; 0 is nothing special
	Parser string        // the stream format that it prints
	// Own is that format, nil where it is another program's or plain text.
	Own *Format `json:"-"`
	// Structured: the stream has a terminal event. Live: it has tokens before its end.
	Structured, Live bool

	// Usage is where it notes what it uses while it works; nil is nowhere.
	// UsageFlag stands before a file to which it writes that at its end, where it is
	// the program as its makers install it and the gateway does not count.
	Usage     *agent.UsageFile
	UsageFlag string

	Install string
	// Exits are the meanings of the program's own exit statuses.
	Exits map[int]failure.APIError
	Facts agent.Facts
}

// State describes how a program's state folder is set. The user's own folder is used unless one of
// Keys is set or the user asks for isolation: a login lives in the user's folder, with a key
// nothing of it is needed. "{state}" stands for pawl's folder.
type State struct {
	Env    []string // variables, K=V
	Flag   string   // or the flag before the folder
	Keys   []string // variables with a provider's key
	Unless []string // variables with which a key is not enough
	// WithKey are flags that are needed when a key is all there is.
	WithKey []string
	// Always are further arguments that keep the program's files out of the
	// repository.
	Always []string
	// Settings is a file below pawl's folder whose path is in SettingsVar, unless
	// the user has set that.
	SettingsVar string
	Settings    agent.File
	// Routed is a file of settings below pawl's folder, instead, where the gateway is used.
	Routed agent.File
}

// Adapter starts a [Program].
type Adapter struct {
	Program

	// Getenv looks up pawl's own environment, which the program inherits; nil
	// finds nothing.
	Getenv func(string) string
	// Native returns the program's real binary for what its name finds, if the
	// name may find a wrapper that does not pass signals on; nil is none.
	Native func(binary string) string
	// Found returns the file that a program's name means in the end; "" is none.
	Found func(name string) string
}

// About returns a copy of the facts, with the limit of a prompt as this system has it.
func (a Adapter) About() agent.About {
	f := a.Facts
	f.Program, f.Format, f.PromptLimit = a.Binary, a.Parser, a.promptLimit()
	f.Problems = slices.Clone(f.Problems)
	traits := agent.Traits{LiveUsage: a.Live, Structured: a.Structured}
	return agent.About{Name: a.Name, Install: a.Install, Traits: traits, Idle: a.Quiet,
		Tools: a.Tools != nil, Exits: a.Exits, Facts: &f}
}

// Start makes the command line. A command of the user's replaces the
// program's name, and may have arguments of its own before pawl's.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	if err := a.checkPrompt(in); err != nil {
		return agent.Start{}, err
	}
	if in.Model != "" && a.Model == "" {
		return agent.Start{}, fmt.Errorf("cannot start %s with the model %s: the program chooses its model itself;"+
			" remove model from agents.%s", a.Name, in.Model, a.Name)
	}
	call := in.Program(a.Binary)
	if len(in.Command) == 0 && a.Native != nil {
		call[0] = a.Native(a.Binary)
	}
	start := agent.Start{
		Args:   slices.Concat(call, a.Args, a.permissionArgs(in)),
		Env:    slices.Clone(a.Env),
		Unset:  slices.Clone(a.Unset),
		Parser: a.Parser,
		Grace:  a.Grace,
		Usage:  a.Usage,
	}
	if a.Warm != nil {
		start.Warm = slices.Concat(call, a.Warm)
	}
	a.addState(&start, in)
	start.Env = append(start.Env, in.Env...)
	a.Point(&start, in)
	if in.Model != "" {
		start.Args = append(start.Args, a.Model, in.Model)
	}
	if in.MaxCost > 0 && a.MaxCost != "" {
		start.Args = append(start.Args, a.MaxCost, strconv.FormatFloat(float64(in.MaxCost)/1e6, 'f', -1, 64))
	}
	if in.Tools != "" {
		quoted := strings.NewReplacer("{pawl}", strconv.Quote(in.Pawl), "{tools}", strconv.Quote(in.Tools))
		start.Args = append(start.Args, lists.Each(a.Tools, quoted.Replace)...)
	}
	if a.UsageFlag != "" && in.StateDir != "" && len(in.Routes) == 0 && a.isGenuine(in.Command) {
		path := filepath.Join(in.StateDir, fmt.Sprintf("usage-%d.json", in.Now.UnixNano()))
		start.Args = append(start.Args, a.UsageFlag, path)
		start.Usage = &agent.UsageFile{Path: path}
	}
	return a.deliverPrompt(start, in)
}

// checkPrompt refuses a prompt that the program would refuse or cut off.
func (a Adapter) checkPrompt(in agent.Invocation) error {
	limit, size, unit := a.promptLimit(), in.PromptSize, "bytes"
	if limit == 0 || size <= limit {
		return nil
	}
	if a.Characters && size <= limit*utf8.UTFMax {
		text, err := os.ReadFile(in.PromptFile)
		if err != nil {
			return fmt.Errorf("cannot read the prompt for %s: %v", a.Name, err)
		}
		size, unit = int64(utf8.RuneCount(text)), "characters"
	}
	if size <= limit {
		return nil
	}
	return fmt.Errorf("cannot start %s: the prompt has %d %s and the program takes at most %d;"+
		" shorten the prompt, or name files in it instead of their content", a.Name, size, unit, limit)
}

// promptLimit returns the largest prompt that the program or, for an argument, the system takes; 0
// for any.
func (a Adapter) promptLimit() int64 {
	if a.Prompt == Argument {
		return MaxArgument - 2 // the NUL, and the newline before a leading dash
	}
	return a.Limit
}

func (a Adapter) permissionArgs(in agent.Invocation) []string {
	args := a.Allow
	if in.ReadOnly && a.ReadOnly != nil {
		args = a.ReadOnly
	} else if in.Safety == "paranoid" && a.Careful != nil {
		args = a.Careful
	}
	if in.Safety == "paranoid" {
		args = slices.Concat(args, a.Offline)
	}
	return args
}

// addState adds the arguments and variables for the program's state.
func (a Adapter) addState(start *agent.Start, in agent.Invocation) {
	keyed := in.HasValue(a.Getenv, a.State.Keys...) && !in.HasValue(a.Getenv, a.State.Unless...)
	if len(in.Routes) > 0 {
		keyed = a.State.Keys != nil
	}
	if keyed {
		start.Args = append(start.Args, a.State.WithKey...)
	}
	if in.StateDir == "" {
		return
	}
	inState := func(texts []string) []string {
		return lists.Each(texts, func(text string) string { return strings.ReplaceAll(text, "{state}", in.StateDir) })
	}
	start.Args = append(start.Args, inState(a.State.Always)...)
	name, settings := a.State.SettingsVar, a.State.Settings
	if routed := a.State.Routed; len(in.Routes) > 0 && routed.Path != "" {
		name, settings = "", routed
	}
	if path := filepath.Join(in.StateDir, settings.Path); settings.Path != "" && !in.HasValue(a.Getenv, name) {
		start.Files = []agent.File{{Path: path, Content: settings.Content}}
		if name != "" {
			start.Env = append(start.Env, name+"="+path)
		}
	}
	if !keyed && !in.Isolate {
		return
	}
	if a.State.Flag != "" {
		start.Args = append(start.Args, a.State.Flag, in.StateDir)
	}
	start.Env = append(start.Env, inState(a.State.Env)...)
}

// deliverPrompt hands the prompt over.
func (a Adapter) deliverPrompt(start agent.Start, in agent.Invocation) (agent.Start, error) {
	switch a.Prompt {
	case Argument:
		prompt, err := a.readArgument(in)
		if err != nil {
			return agent.Start{}, err
		}
		if a.PromptAt != "" {
			start.Args = append(start.Args, a.PromptAt)
		}
		start.Args = append(start.Args, prompt)
	case File:
		start.Args = append(start.Args, a.PromptAt, in.PromptFile)
	case Stdin:
		start.Stdin = in.PromptFile
		if start.Talks = a.Talk != nil && a.isGenuine(in.Command); start.Talks {
			start.Args = append(start.Args, a.Talk...)
		}
		if a.PromptAt != "" {
			start.Args = append(start.Args, a.PromptAt)
		}
	}
	return start, nil
}

// isGenuine reports whether a command is the program as its makers install it.
func (a Adapter) isGenuine(command []string) bool {
	if len(command) > 1 || a.Found == nil {
		return false
	}
	name := a.Binary
	if len(command) == 1 {
		name = command[0]
	}
	found := filepath.ToSlash(a.Found(name))
	return slices.ContainsFunc(a.Installed, func(part string) bool { return strings.Contains(found, part) })
}

// readArgument reads the prompt as an argument.
func (a Adapter) readArgument(in agent.Invocation) (string, error) {
	b, err := os.ReadFile(in.PromptFile)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot read the prompt for %s: %v", a.Name, err)
	case bytes.IndexByte(b, 0) >= 0:
		return "", fmt.Errorf("cannot start %s: the prompt contains a NUL byte, which an argument cannot; remove it",
			a.Name)
	case int64(len(b)) > a.promptLimit(): // it grew after it was measured
		return "", a.checkPrompt(agent.Invocation{PromptSize: int64(len(b))})
	case bytes.HasPrefix(b, []byte("-")):
		return "\n" + string(b), nil // else it would be a flag
	}
	return string(b), nil
}

// Beside returns a finder of native binaries: look finds what a name means,
// and the first of candidates that is there, relative to the folder of the
// file that this is in the end, is the binary. Without one it is the name.
func Beside(look func(string) (string, error), candidates ...string) func(string) string {
	find := Finally(look)
	return func(name string) string {
		path := find(name)
		if path == "" {
			return name
		}
		for _, c := range candidates {
			native := filepath.Join(filepath.Dir(path), c)
			if info, err := os.Stat(native); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return native
			}
		}
		return name
	}
}

// Finally returns a finder of the file that a name means in the end, through all links;
// "" is none.
func Finally(look func(string) (string, error)) func(string) string {
	return func(name string) string {
		path, err := look(name)
		if err != nil {
			return ""
		}
		path, err = filepath.EvalSymlinks(path)
		if err != nil {
			return ""
		}
		return path
	}
}

// Format is the stream format that a program prints, named as the program is.
type Format struct {
	// New returns a parser for one run. prompt is the prompt of the agent; only a format that is
	// EchoCut needs it.
	New     func(prompt []byte) agent.Parser
	EchoCut bool // the parser cuts the prompt's echo off
}

// Lines is a format whose parser needs nothing but the stream.
func Lines[P agent.Parser](parser func() P) *Format {
	return &Format{New: func([]byte) agent.Parser { return parser() }}
}

// Move is a variable by which a program's folders are elsewhere.
type Move struct {
	Variable, Below string   // the folder is below what the variable names
	Instead         []string // of these
}

// MovedHome are the parts of the home folder that variables move, wherever getenv puts them.
func MovedHome(getenv func(string) string) (folders []string) {
	for _, x := range xdg {
		folders = append(folders, InHome("", x.below, getenv))
	}
	return folders
}

// xdg are the parts of a home folder that variables move.
var xdg = []struct{ variable, below string }{
	{"XDG_CONFIG_HOME", ".config/"}, {"XDG_DATA_HOME", ".local/share/"},
	{"XDG_STATE_HOME", ".local/state/"}, {"XDG_CACHE_HOME", ".cache/"},
}

// InHome finds a name of the home folder, wherever getenv puts it.
func InHome(home, name string, getenv func(string) string) string {
	for _, x := range xdg {
		if rest, ok := strings.CutPrefix(name, x.below); ok && filepath.IsAbs(getenv(x.variable)) {
			return filepath.Join(getenv(x.variable), rest)
		}
	}
	return filepath.Join(home, name)
}

// Homes are the folders of the program, wherever getenv and home put them.
func (p Program) Homes(home string, getenv func(string) string) []string {
	names := slices.Clone(p.Folders)
	var out []string
	for _, m := range p.Moves {
		dir := getenv(m.Variable)
		if !filepath.IsAbs(dir) {
			continue
		}
		out = append(out, filepath.Join(dir, m.Below))
		names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(m.Instead, n) })
	}
	for _, n := range names {
		if path := InHome(home, n, getenv); filepath.IsAbs(path) {
			out = append(out, path)
		}
	}
	return out
}

// Cloud is what a program needs of a cloud when a variable has it reach its model there.
type Cloud struct {
	When  string
	Needs []string
}
