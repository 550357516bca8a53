package program

import "github.com/pawl-dev/pawl/internal/do/agent"

// Flags are the arguments of a program.
type Flags struct {
	Args     []string // the flags that make it work headless, after the user's own
	Allow    []string // no permission prompts
	Careful  []string // instead of Allow at the level paranoid; nil is Allow
	ReadOnly []string // instead of Allow for an agent that must change nothing; nil is Allow
	Model    string   // the flag before a model's name; "" when it has none
	MaxCost  string   // the flag before the most that a run may cost, in USD; "" when it has none
	Tools    []string // the arguments that give it pawl's tools, with {pawl} and {tools} quoted; nil is not known how
	Warm     []string // arguments that make it set up its state, see [agent.Start.Warm]; nil when it need not

	// Talk are the flags with which it takes messages on stdin while it works; nil is
	// not known how. Only a program that has one of Installed in its path gets them: its
	// makers put it there. Anything else of its name, such as a script that starts it,
	// gets the prompt as it is, and a message waits for the next one.
	Talk      []string
	Installed []string

	// Offline switches off, at the level paranoid, the tools that the model's provider runs for the program,
	// since pawl's gateway refuses them there, as [Gateway.Settings] does.
	Offline []string
}

// Gateway is how a program is pointed at pawl's gateway.
type Gateway struct {
	// Doors are the providers that the program can be pointed at pawl's gateway
	// for; nil is none. Pointer is a variable that points it for all of them, K=V,
	// with the doors' parts for "{parts}". Closed are variables with which it is
	// not to be pointed.
	Doors   []Door
	Pointer string
	Closed  []string
	// Pointing is a file of settings below pawl's folder that points a program which no variable
	// does. Such a program is pointed only with isolation: its own folder may have a login, and the
	// user did not ask to pay with a key. Prefix is what it wants before the name of a model that
	// its settings have.
	Pointing agent.File
	Prefix   string
	// Settings is a file of settings below pawl's folder that does what [Flags.Offline] does.
	Settings agent.File
}

// Account is where a program keeps its user's login, and whom it calls.
type Account struct {
	// Folders are where it keeps logins, settings and sessions of the user, below
	// the home folder. They are hidden from all other programs.
	Folders []string
	Moves   []Move
	// Login is the file of a login, below the home folder; "" is that only Folders are known.
	Login string
	// Variables are patterns of the names of variables that it reads credentials
	// and addresses from; * stands for any characters. Those of all model providers
	// come to them unless Single: it talks to no provider but its own.
	Variables []string
	Single    bool
	// Unread are keys of that kind which it reads for a provider of the user's own only: no login.
	Unread []string
	Clouds []Cloud
	// Services are where it calls its models: measured for programs that were run,
	// from their documentation for the others.
	Services []Service
}
