package acp

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/command"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
)

// login is a way to log in that a program offers.
type login struct{ ID, Name, Description string }

// takesKey reports whether it is the way by the key in a variable: it names the variable, or its provider and a key.
func (l login) takesKey(variable string) bool {
	text, variable := strings.ToLower(l.ID+" "+l.Name+" "+l.Description), strings.ToLower(variable)
	provider := strings.TrimSuffix(variable, "_api_key")
	byKey := strings.Contains(text, provider) && strings.Contains(text, "key")
	return byKey || strings.Contains(text, variable)
}

// providerKeysIn are the variables of an environment that have a provider's key.
func providerKeysIn(env []string) []string {
	return lists.Pick(env, func(kv string) (string, bool) {
		name, value, _ := strings.Cut(kv, "=")
		return name, value != "" && strings.HasSuffix(name, "_API_KEY")
	})
}

// logInWithKey uses the key that the program is given, where it offers to.
func (b *bridge) logInWithKey(methods []login) (done bool, err error) {
	for _, method := range methods {
		if slices.ContainsFunc(b.keys, method.takesKey) {
			a, err := b.askProgram("authenticate", map[string]string{"methodId": method.ID})
			return err == nil && a.failed == nil, err
		}
	}
	return false, nil
}

// openSession opens the session, with a login where one is needed, and chooses the model and the mode.
func (b *bridge) openSession(o options, dir string, methods []login) (id string, err error) {
	create := map[string]any{"cwd": dir, "mcpServers": []any{}}
	a, err := b.askProgram("session/new", create)
	if err == nil && a.failed != nil && readError(a.failed).err.Type == kindLogin {
		var done bool
		if done, err = b.logInWithKey(methods); done {
			a, err = b.askProgram("session/new", create)
		}
	}
	if err != nil {
		return "", err
	}
	if a.failed != nil {
		return "", b.addLoginAdvice(readError(a.failed), methods)
	}
	var opened opened
	jsonline.Read(a.result, &opened)
	if opened.SessionID == "" {
		return "", newProblem("invalid_protocol", "the program opened a session without an id")
	}
	model := opened.Models.CurrentModelID
	if o.model != "" {
		if err := b.chooseModel(&opened, o.model); err != nil {
			return "", err
		}
		model = o.model
	}
	if err := b.chooseMode(&opened, o); err != nil {
		return "", err
	}
	b.out.putEvent(agent.Event{Kind: agent.Session, Session: opened.SessionID, Model: model})
	return opened.SessionID, nil
}

// opened is a session that was opened, with the choice of models.
type opened struct {
	SessionID string
	Models    struct {
		CurrentModelID  string
		AvailableModels []struct{ ModelID string }
	}
	Modes struct {
		CurrentModeID  string
		AvailableModes []struct{ ID string }
	}
	ConfigOptions []struct{ ID, Category string }
}

// addLoginAdvice adds what to do to an error that asks for a login.
func (b *bridge) addLoginAdvice(p *problem, methods []login) *problem {
	if p.err.Type != kindLogin {
		return p
	}
	p.err.Message = "the program needs a login: start it once by hand and log in, or set its key in agents.NAME.env"
	if len(b.keys) > 0 {
		p.err.Message += "; it does not take the one in " + strings.Join(b.keys, " or ")
	}
	if len(methods) > 0 {
		names := lists.Each(methods, func(l login) string { return l.Name })
		p.err.Message += " (it offers: " + strings.Join(names, ", ") + ")"
	}
	return p
}

// chooseModel asks for a model, in the way that the program offers.
func (b *bridge) chooseModel(o *opened, model string) error {
	method, params := "", map[string]any{"sessionId": o.SessionID}
	var known []string
	for _, m := range o.Models.AvailableModels {
		known = append(known, agent.Clip(m.ModelID, maxName))
	}
	if len(known) > 0 {
		method, params["modelId"] = "session/set_model", model
	}
	for _, option := range o.ConfigOptions {
		if option.ID == "model" || option.Category == "model" {
			method, params["configId"], params["value"] = "session/set_config_option", option.ID, model
			delete(params, "modelId")
			known = nil // they may be in groups: the program knows
			break
		}
	}
	switch {
	case method == "":
		return newProblem("invalid_config", "the program offers no choice of models: remove model from the agent, "+
			"or use {model} in its command")
	case len(known) > 0 && !slices.Contains(known, model):
		shown := strings.Join(known[:min(len(known), 20)], ", ")
		return newProblem("model_not_found", "the program has no model %q; it has %s", model, shown)
	}
	a, err := b.askProgram(method, params)
	if err == nil && a.failed != nil {
		return readError(a.failed)
	}
	return err
}

// widest are the modes in which programs ask for nothing, by their ids: codex-acp's,
// claude-acp's, Gemini CLI's and Qwen's. In its usual mode codex-acp runs no command.
var widest = []string{"full-access", "bypassPermissions", "yolo"}

// chooseMode chooses the mode that the person asked for, else the widest one, since the sandbox
// sets the limits. A reviewer stays in the program's own.
func (b *bridge) chooseMode(o *opened, how options) error {
	known := lists.Each(o.Modes.AvailableModes, func(m struct{ ID string }) string { return agent.Clip(m.ID, maxName) })
	mode := how.mode
	if mode == "" && !how.readOnly {
		if i := slices.IndexFunc(widest, func(id string) bool { return slices.Contains(known, id) }); i >= 0 {
			mode = widest[i]
		}
	}
	switch {
	case mode == "", mode == o.Modes.CurrentModeID:
		return nil
	case !slices.Contains(known, mode):
		shown := strings.Join(known[:min(len(known), 20)], ", ")
		return newProblem("invalid_config", "the program has no mode %q; it has: %s", mode, cmp.Or(shown, "none"))
	}
	a, err := b.askProgram("session/set_mode", map[string]any{"sessionId": o.SessionID, "modeId": mode})
	if err == nil && a.failed != nil && how.mode != "" {
		return readError(a.failed)
	}
	return err
}

// Adapter runs a user's command that speaks the protocol.
type Adapter struct {
	command.Adapter

	// executable finds the program that has [Command]: pawl itself.
	executable func() (string, error)
}

// New returns the agent that runs argv. {model} in it is the model's name. Tokens come with the
// end, if at all, and the bridge prints the end.
func New(name string, argv []string, executable func() (string, error)) Adapter {
	return Adapter{command.New(name, argv, "acp", agent.Traits{Structured: true}), executable}
}

// Start makes the command line of the bridge.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	argv, err := a.Argv(in)
	if err != nil {
		return agent.Start{}, err
	}
	if in.PromptSize > maxPrompt {
		return agent.Start{}, fmt.Errorf("cannot start agent %s: the prompt is %d bytes and ACP programs take at most "+
			"%d; shorten the prompt, or name files in it instead of their content", a.About().Name, in.PromptSize,
			maxPrompt)
	}
	all := strings.Join(argv[1:], "\x00")
	if strings.Contains(all, "{prompt}") || strings.Contains(all, "{prompt_file}") {
		return agent.Start{}, fmt.Errorf("cannot start agent %s: with output: acp the prompt goes through the "+
			"protocol; remove {prompt} from agents.%s.command", a.About().Name, a.About().Name)
	}
	self, err := a.executable()
	if err != nil {
		return agent.Start{}, errors.New("cannot find pawl's own program for an ACP agent: " + err.Error())
	}
	args := []string{self, Command}
	if in.Safety != "" {
		args = append(args, "--safety", in.Safety)
	}
	if in.ReadOnly {
		args = append(args, "--read-only")
	}
	if len(in.Routes) == 0 {
		args = append(args, "--count")
	}
	if in.Model != "" && !strings.Contains(all, "{model}") {
		args = append(args, "--model", in.Model)
	}
	if in.Mode != "" {
		args = append(args, "--mode", in.Mode)
	}
	args = append(args, "--", argv[0])
	for _, arg := range argv[1:] {
		args = append(args, strings.ReplaceAll(arg, "{model}", in.Model))
	}
	return agent.Start{
		Args: args, Program: argv[0], Env: slices.Clone(in.Env), Stdin: in.PromptFile, Parser: "acp",
		Ask: usual.cancel + usual.end, Grace: 5 * time.Second,
	}, nil
}
