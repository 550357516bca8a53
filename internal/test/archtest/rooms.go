package archtest

import "strings"

// Floor is where a room is in the house. A room may import rooms of lower
// floors, never of higher ones.
type Floor int

// The floors, lowest first.
const (
	Deciding    Floor = iota + 1 // data in, data out: no clock, I/O, goroutine, randomness
	Remembering                  // the database and the journal
	Doing                        // agents, git, gates, disk
	Asking                       // reads what a person wants, and shows what came of it
	Starting                     // main packages
	Testing                      // in no program: tests, benchmarks and what they need
)

var floorNames = map[Floor]string{
	Deciding: "deciding", Remembering: "remembering", Doing: "doing",
	Asking: "asking", Starting: "starting", Testing: "testing",
}

// String is the floor's name in messages.
func (f Floor) String() string { return floorNames[f] }

// floors has the folder of each floor. The schemas in docs are data.
var floors = map[string]Floor{
	"internal/decide": Deciding, "docs": Deciding,
	"internal/keep": Remembering,
	"internal/do":   Doing,
	"internal/ask":  Asking,
	"cmd":           Starting,
	"internal/test": Testing, "scripts": Testing, "e2e": Testing,
}

// placeOf gives the floor of a folder and the name of the room there:
// internal/do/agent/acp is agent/acp, and doing. The floor is 0 for a folder
// that is on none.
func placeOf(dir string) (Floor, string) {
	for folder, floor := range floors {
		if !within(dir, folder) {
			continue
		}
		if room, ok := strings.CutPrefix(dir, folder+"/"); ok && within(folder, "internal") {
			return floor, room
		}
		return floor, dir
	}
	return 0, strings.TrimPrefix(dir, "internal/")
}

// uses is what a room imports beside what its floor lets it import anyway:
// all may import deciding rooms; asking and starting ones all that is below
// them; tests everything. A name with a star stands for each room of that folder
// that has no line of its own.
var uses = map[string][]string{
	// asking
	"cli":             {"cli/autopilot", "cli/board", "cli/check", "cli/cluster", "cli/command", "cli/queue", "cli/run", "cli/serve", "cli/setup", "cli/trial", "console"},
	"cli/command":     {"action", "config", "console", "planner", "config/quantity", "config/statedir"},
	"cli/session":     {"action", "action/issues", "boxpolicy", "cli/command", "config", "console", "planner", "survey", "telemetry", "config/statedir"},
	"cli/run":         {"action", "cli/command", "cli/session", "config", "console", "planner", "config/quantity", "config/statedir"},
	"cli/board":       {"action", "action/issues", "cli/command", "cli/session", "console", "config/statedir"},
	"cli/autopilot":   {"action", "action/issues", "cli/command", "cli/serve", "cli/session", "config", "console", "planner", "config/quantity", "config/statedir"},
	"cli/queue":       {"action", "action/issues", "cli/command", "cli/session", "config", "planner", "config/statedir"},
	"cli/serve":       {"cli/command", "cli/queue", "mcp", "web", "web/listen", "config/statedir"},
	"cli/check":       {"cli/command", "config", "console", "planner", "config/statedir"},
	"cli/cluster":     {"cli/command", "config", "config/statedir"},
	"cli/setup":       {"action", "cli/command", "cli/session", "config", "console", "planner", "survey", "config/statedir"},
	"cli/trial":       {"cli/command", "cli/session", "config", "planner", "config/quantity", "config/statedir"},
	"boxpolicy":       {"config", "config/quantity"},
	"planner":         {"config", "config/quantity", "config/statedir"},
	"action":          {"config", "planner", "config/statedir"},
	"action/issues":   {"action"},
	"web":             {"action", "config", "planner", "web/activity", "web/begun", "web/bounds", "web/hub", "web/listen", "web/patch", "web/preview", "web/rest", "web/shell", "web/view", "config/statedir"},
	"web/activity":    {"web/hub", "web/view"},
	"web/begun":       {"web/view"},
	"web/listen":      {"web/bounds"},
	"web/rest":        {"action"},
	"web/view":        {"action", "config"},
	"web/shell":       {"web/ticket"},
	"web/preview":     {"web/ticket"},
	"config":          {"config/quantity", "config/statedir", "trust"},
	"config/statedir": {"files"}, // whose a state folder is
	"survey":          {"config", "trust", "config/quantity"},

	// doing
	"autopilot":            {"delivery", "drive", "ratelimit", "agent", "engine", "engine/lanes", "files", "gate", "git", "journal", "merge", "process", "sandbox", "store", "supervisor", "workspace", "workspace/pool", "engine/attemptdir", "engine/runplan", "engine/storedrun", "autopilot/mergebrief", "autopilot/overview"},
	"autopilot/mergebrief": {"merge", "workspace/pool"},
	"autopilot/overview":   {"engine/storedrun", "journal", "store"},
	"cluster":              {"autopilot", "drive", "engine", "engine/lanes", "files", "process", "store", "workspace", "workspace/pool", "engine/runplan", "engine/storedrun"},
	"delivery":             {"files", "gate", "git", "git/checkout", "workspace", "workspace/pool"},
	"engine":               {"delivery", "drive", "engine/lanes", "ratelimit", "agent", "files", "gate", "git", "journal", "outputs", "process", "sandbox", "spool", "statefile", "store", "supervisor", "trust", "workspace", "engine/attemptdir", "engine/runplan", "engine/storedrun", "engine/ending", "engine/providerlimit", "engine/greenfiles", "engine/recorder"},
	"engine/lanes":         {"agent", "process", "supervisor", "files"},
	"engine/attemptdir":    {"agent", "files", "supervisor", "engine/runplan"},
	"engine/runplan":       {"agent", "delivery", "files", "gate", "sandbox", "trust"},
	"engine/storedrun":     {"delivery", "engine/lanes", "engine/runplan", "journal", "process", "statefile", "store", "supervisor", "workspace"},
	"engine/ending":        {"agent", "engine/lanes", "engine/runplan", "gate", "ratelimit", "supervisor"},
	"engine/providerlimit": {"agent", "engine/ending", "engine/runplan", "process", "ratelimit", "supervisor"},
	"engine/greenfiles":    {"engine/runplan", "files", "gate", "spool"},
	"engine/recorder":      {"journal", "store"},
	"workflow/run":         {"agent", "engine", "engine/lanes", "journal", "process", "store", "supervisor", "engine/runplan", "engine/storedrun", "engine/ending"},
	"ratelimit":            {"files", "process"},
	"reexec":               {"agent", "agent/acp", "agent/agents", "agent/script", "sandbox", "supervisor"},
	"gate":                 {"process"},
	"statefile":            {"files", "process"},
	"retention":            {"files", "git", "outputs", "store", "supervisor", "workspace", "engine/storedrun"},
	"hook":                 {"engine", "process", "sandbox", "supervisor"},
	"terminal":             {"boxnet", "netstack", "process", "sandbox"},
	"boxnet":               {"sandbox"},
	"netstack":             {"boxnet", "netlink", "sandbox"},
	"supervisor":           {"agent", "boxnet", "files", "process", "sandbox", "spool"},
	"sandbox":              {"netlink", "process"},
	"workspace":            {"files", "git", "process"},
	"workspace/pool":       {"boxnet", "files", "git", "git/checkout", "process", "store", "workspace"},
	"gateway":              {"agent", "peer", "process", "ratelimit", "supervisor"},
	"merge":                {"drive", "files", "forge", "gate", "git", "git/checkout", "process", "sandbox", "store", "supervisor"},
	"trust":                {"files", "process"},
	"git":                  {"files", "git/command", "process"},
	"git/blob":             {"git", "git/command"},
	"git/checkout":         {"files", "git", "git/command", "process"},
	"git/command":          {"files", "process"},
	"agent/*":              {"agent", "agent/*"},
	"agent/jsonline":       {"agent"},
	"agent/program":        {"agent"},
	"agent/text":           {"agent"},

	// remembering
	"store":          {"journal", "outputs", "store/database", "store/postgres", "store/rows", "store/sqlite"},
	"store/postgres": {"store/database"},
	"store/sqlite":   {"files", "store/database"},
	"checklog":       {"files"},
	"outputs":        {"files", "spool"},
}

// modules is who may import which other module, with the reason. In
// _test.go files every module of the list may be used.
var modules = map[string]struct {
	rooms []string
	why   string
}{
	"github.com/spf13/cobra":                 {[]string{"cli", "cli/autopilot", "cli/board", "cli/check", "cli/cluster", "cli/command", "cli/queue", "cli/run", "cli/serve", "cli/setup", "cli/trial", "scripts/release"}, "flags and completion belong to the command line"},
	"github.com/spf13/pflag":                 {[]string{"cli", "cli/command"}, "cobra's flags"},
	"github.com/danielgtaylor/huma":          {[]string{"web", "web/rest", "web/view"}, "the API and its description are made of the same Go types"},
	"github.com/coder/websocket":             {[]string{"web/shell"}, "keys and output of a terminal in a browser"},
	"github.com/klauspost/compress":          {[]string{"web"}, "answers are compressed as a browser asks for it, but for events and parts"},
	"github.com/modelcontextprotocol/go-sdk": {[]string{"mcp"}, "the protocol has one door"},
	"github.com/goccy/go-yaml":               {[]string{"cli/check", "config", "survey", "agent/script"}, "only what reads a user's file reads YAML"},
	"github.com/expr-lang/expr":              {[]string{"workflow"}, "expressions, checked against types before anything runs; it touches nothing"},
	"github.com/ncruces/go-sqlite3":          {[]string{"store/sqlite"}, "the database has one door"},
	"github.com/jackc/pgx":                   {[]string{"store/postgres"}, "the database has one door"},
	"github.com/bmatcuk/doublestar":          {[]string{"gate"}, "patterns of files; it touches nothing"},
	"mvdan.cc/sh":                            {[]string{"safety"}, "commands are read as a shell reads them; it touches nothing"},
	"github.com/creack/pty":                  {[]string{"terminal"}, "a shell in a workspace has a terminal of its own"},
	"github.com/charmbracelet/x/term":        {[]string{"terminal"}, "hands each key of the person's terminal on"},
	"golang.org/x/net":                       {[]string{"egress", "gateway"}, "NO_PROXY means what it means to net/http, which the gateway asks; a listener with a limit"},
	"gvisor.dev/gvisor":                      {[]string{"netstack"}, "TCP and UDP of what a box sends, without rights on the machine's network"},
	"golang.org/x/sys":                       {[]string{"boxnet", "files", "netlink", "netstack", "peer", "process", "sandbox", "console", "supervisor", "workspace", "workspace/pool"}, "system calls belong to doing; console asks a terminal for its size"},
	"github.com/charmbracelet/x/ansi":        {[]string{"cli/check", "cli/command", "cli/run", "console", "cli/autopilot"}, "cuts and wraps text by the columns of a terminal"},
	"go.temporal.io":                         {[]string{"cluster", "flow"}, "the engine of a cluster; workflows touch nothing by it"},
	"github.com/hanwen/go-fuse":              {[]string{"powercut"}, "a file system that forgets what was not synced: tests only"},
	"github.com/google/jsonschema-go":        {[]string{"forgetest"}, "GitHub's description of its API: tests only"},
	"pgregory.net/rapid":                     {nil, "orders of events, and the shortest that fails: tests only"},
	"github.com/rogpeppe/go-internal":        {nil, "script tests and their archives: tests only"},
}

// stdlib is which room may import a package of the standard library, where
// it is not free for all. Testing rooms and _test.go files are free.
var stdlib = map[string]struct {
	rooms []string
	why   string
}{
	"database/sql": {[]string{"store", "store/database", "store/postgres", "store/rows", "store/sqlite"}, "the database has one door"},
	"os/exec":      {[]string{"agent/acp", "agent/agents", "agent/script", "cli/command", "cli/setup", "boxpolicy", "git/command", "process"}, "a child is started by process or git, so that it has limits and an end; cli and agent only look programs up, boxpolicy asks go for a setting"},
	"net/http":     {[]string{"web", "web/bounds", "web/preview", "web/rest", "web/shell", "mcp", "egress", "forge", "gateway", "hook", "telemetry"}, "pawl talks to nobody but a browser, a webhook, an agent's model, a forge and the user's collector"},
	"testing":      {nil, "test code in a program"},
	"plugin":       {nil, "one static binary"},
	"unsafe":       {[]string{"netlink", "sandbox"}, "only for system calls"},
	"C":            {nil, "needs cgo; pawl is one static binary"},
}

// starters is who may start goroutines, and what for.
var starters = map[string]string{
	"cli/autopilot":     "the drawing of the dashboard, beside the autopilot",
	"autopilot":         "one per slot, the merge queue's, and what is given back or made ready beside them",
	"agent":             "reads streams",
	"agent/acp":         "the bridge's reader, writer and wait, in a process of its own",
	"process":           "waits for children and drains their output",
	"supervisor":        "one per job, the lease, the socket",
	"sandbox":           "the init of a box, which ends with its process",
	"telemetry":         "messages to the collector, beside the run",
	"reexec":            "the little program that pawl is, beside the initialisation of the rest",
	"drive":             "the command under way, so that a person is heard meanwhile",
	"engine":            "a last look that a second signal cuts short",
	"engine/stopsignal": "signals",
	"outputs":           "the copy of what a run prints for other machines",
	"terminal":          "keys, output and the size of a window, until the command ends",
	"git/command":       "commands that are run side by side, which it waits for",
	"hook":              "one per run and receiver that has something to be told, and the waits for them",
	"boxnet":            "one per way out of a box and per connection through one; its Close waits for them",
	"netstack":          "one per flow of datagrams, which ends with the box",
	"egress":            "one per client of the proxy, and one per direction",
	"gateway":           "the end of its server; requests have those of net/http",
	"mcp":               "a session, which a client that reads nothing does not let end",
	"web":               "live events",
	"web/preview":       "the end of what is under way when the server ends",
	"web/shell":         "keys and output of a terminal, which ends with its connection",
	"cli/trial":         "attempts, and commits that are tried, side by side; it waits for them",
	"workflow/run":      "one per step that runs, and one that shows its output",
	"files":             "syncs several files side by side: one write of the disk's journal serves all; frees a slow git of a pipe",
	"workspace":         "copies a few folders of ignored files side by side: most of it is waiting for the disk",
	"merge":             "one per agent at a conflict",
	"store":             "the beats of what this process owns on a board of several machines",
	"cluster":           "one per task, one per order for its beats, and what a worker before left",
}

// readers is who may read the environment, and which variables they mean.
var readers = map[string]string{
	"config":       "PAWL_… and XDG_…: the one place for configuration",
	"agent/agents": "the agents' own variables, such as a key that is set, handed to the adapters",
	"cli":          "what describes the terminal (NO_COLOR, TERM, COLUMNS); never configuration",
	"git":          "where git itself looks for its configuration, to tell when it has changed",
	"git/command":  "what git gets of it: PATH, and no variable that aims it elsewhere",
	"workspace":    "where git itself looks for the user-wide ignore file",
	"process":      "the mark of a run in a child's environment",
	"supervisor":   "the mark of a run, and what a parent hands to its re-executed self",
	"sandbox":      "what a parent hands to its re-executed self",
}

// inheritors is who may pass the whole environment on to a child.
var inheritors = []string{"cli", "config", "reexec", "engine", "gate", "git", "git/command", "process", "sandbox", "supervisor"}
