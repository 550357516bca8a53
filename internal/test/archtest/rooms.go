package archtest

// Floor is where a room is in the house. A room may import rooms of lower
// floors as its line allows, never of higher ones.
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

// room is one package on the map. Every room may import the deciding floor;
// asking, starting and testing rooms may import all floors below their own,
// the others only what uses says.
type room struct {
	floor Floor
	uses  []string
	why   string
}

// adapters are the rooms below agent that know one program or one format each.
// A new one is a word here.
var adapters = []string{
	"acp", "acp", "amp", "claude", "cline", "codex", "command", "copilot", "cursor", "droid", "gemini", "goose", "kimi",
	"opencode", "plain", "qwen", "script",
}

// rooms is the map.
var rooms = withAdapters(map[string]room{
	// asking
	"cli":           {Asking, []string{"cli/autopilot", "cli/board", "cli/check", "cli/cluster", "cli/command", "cli/queue", "cli/run", "cli/serve", "cli/setup", "console"}, "the root command"},
	"cli/command":   {Asking, []string{"action", "config", "console", "planner"}, "what every command is made of: flags, database, printing, exit status"},
	"cli/session":   {Asking, []string{"action", "boxpolicy", "cli/command", "config", "console", "planner", "telemetry", "web"}, "a run, an autopilot or a landing in this process"},
	"cli/run":       {Asking, []string{"action", "cli/command", "cli/session", "config", "console", "planner"}, "commands about runs"},
	"cli/board":     {Asking, []string{"action", "cli/command", "cli/session", "config", "console"}, "commands about cases"},
	"cli/autopilot": {Asking, []string{"action", "cli/command", "cli/serve", "cli/session", "config", "console", "dashboard", "planner"}, "commands that work the board or look on"},
	"cli/queue":     {Asking, []string{"action", "cli/command", "cli/session", "config", "console", "planner"}, "commands of the merge queue"},
	"cli/serve":     {Asking, []string{"cli/command", "cli/queue", "config", "mcp", "web"}, "the servers, and what browsers and programs ask for"},
	"cli/check":     {Asking, []string{"cli/command", "config", "console", "planner"}, "commands that judge without running anything"},
	"cli/cluster":   {Asking, []string{"cli/command", "config"}, "commands about what several machines share"},
	"cli/setup":     {Asking, []string{"action", "cli/command", "cli/session", "config", "console", "planner", "survey"}, "commands about the installation"},
	"boxpolicy":     {Asking, []string{"config"}, "what the boxes of agents and gates are: folders, caches, endpoints"},
	"planner":       {Asking, []string{"config"}, "the configuration becomes the plan of a run, a task or a landing"},
	"action":        {Asking, []string{"config", "planner"}, "what a person does to runs, tasks and the autopilot"},
	"console":       {Asking, []string{"config"}, "what a person or a script sees of a run while it goes on"},
	"dashboard":     {Asking, []string{"console"}, "the autopilot in a terminal"},
	"web":           {Asking, []string{"action", "config", "planner", "web/bounds", "web/hub", "web/patch", "web/preview", "web/shell"}, "the same for browsers"},
	"web/bounds":    {Asking, nil, "holds a server to a number of connections"},
	"web/hub":       {Asking, nil, "live events, looked for once for all who follow them"},
	"web/patch":     {Asking, nil, "a patch of git, as a page draws it"},
	"web/shell":     {Asking, []string{"web/ticket"}, "a terminal in a browser"},
	"web/preview":   {Asking, []string{"web/ticket"}, "what a task serves on its own ports, on an origin of its own"},
	"web/ticket":    {Asking, nil, "one-time passes for what a browser opens by an address alone"},
	"mcp":           {Asking, nil, "the same for programs: tools made of the API's operations, and iteration control"},
	"telemetry":     {Asking, nil, "what a run does, for an OpenTelemetry collector"},
	"config":        {Asking, []string{"trust"}, "files, environment and flags become one checked value"},
	"survey":        {Asking, []string{"config", "trust"}, "what a repository needs and how it tests itself, for a first configuration"},

	// deciding
	"docs":           {Deciding, nil, "the schemas of pawl.yaml and of workflows, as they are published"},
	"board":          {Deciding, nil, "which ready task is next, and why"},
	"loop":           {Deciding, nil, "the kernel: state and event in, state and command out"},
	"queue":          {Deciding, nil, "which verified change lands next, and what becomes of conflicts and red gates"},
	"schedule":       {Deciding, nil, "slots, pauses, errors in a row, targets, and what becomes of a task whose run ended"},
	"stats":          {Deciding, nil, "what the work came to, by day, agent and sprint; where days begin"},
	"control":        {Deciding, nil, "proceed, retry, review or escalate after an attempt, and in which words"},
	"failure":        {Deciding, []string{"failure/places", "failure/waits", "failure/words"}, "what went wrong: class, fingerprint, items"},
	"failure/places": {Deciding, []string{"failure/words"}, "the places and the two values that a line names"},
	"failure/words":  {Deciding, nil, "letters, words and numbers of a text"},
	"failure/waits":  {Deciding, nil, "when a service works again, as its message says"},
	"flow":           {Deciding, nil, "the kernels as workflows of an engine"},
	"strategy":       {Deciding, nil, "what to try next"},
	"fault":          {Deciding, nil, "the form of an error that a person is to act on"},
	"lazy":           {Deciding, nil, "expressions that are compiled when they are first used"},
	"lists":          {Deciding, nil, "makes one list of another"},
	"safety":         {Deciding, nil, "levels: limits, permissions, dangerous patterns"},
	"prompt":         {Deciding, nil, "what the agent is told this time"},
	"report":         {Deciding, nil, "a run as a person reads it afterwards, as Markdown and as a page"},
	"workflow":       {Deciding, nil, "what a workflow means: checks, expressions, matrices, order, hashes"},
	"signal":         {Deciding, nil, "what an agent says about its own work"},

	// doing
	"drive":          {Doing, nil, "one loop for all kernels: command, event, step, store"},
	"autopilot":      {Doing, []string{"drive", "ratelimit", "agent", "engine", "files", "git", "journal", "merge", "process", "sandbox", "store", "supervisor", "workspace", "workspace/pool"}, "keeps the free slots busy"},
	"cluster":        {Doing, []string{"autopilot", "drive", "engine", "files", "outputs", "process", "store", "workspace"}, "tasks that an engine orders, worked by this process; buckets"},
	"engine":         {Doing, []string{"drive", "ratelimit", "agent", "files", "gate", "git", "journal", "outputs", "process", "sandbox", "spool", "statefile", "store", "supervisor", "trust", "workspace"}, "drives one run: journal, step, perform, again"},
	"workflow/run":   {Doing, []string{"agent", "engine", "journal", "process", "store", "supervisor"}, "runs the steps of a workflow's plan"},
	"ratelimit":      {Doing, []string{"files", "process"}, "limits of providers, shared by all runs of a user, and what their day costs"},
	"agent":          {Doing, nil, "what a coding agent is: adapter, events, parser, registry"},
	"agent/jsonline": {Doing, []string{"agent"}, "what the JSON-lines formats share: decoding, results, drafts"},
	"reading":        {Testing, nil, "plays streams to parsers in tests"},
	"agent/text":     {Doing, []string{"agent"}, "plain output, without the prompt's echo"},
	"agent/program":  {Doing, []string{"agent"}, "an agent program as data"},
	"reexec":         {Doing, []string{"agent", "agent/acp", "agent/agents", "agent/script", "sandbox", "supervisor"}, "what pawl is when it started itself; runs before the rest is initialised, so it imports little"},
	"gate":           {Doing, []string{"git", "process", "supervisor"}, "runs verification commands"},
	"statefile":      {Doing, []string{"files", "process"}, "the image of a procedure's run beside the user's files"},
	"retention":      {Doing, []string{"engine", "files", "git", "outputs", "store", "supervisor", "workspace"}, "removes runs, output, events and refs that are over"},
	"hook":           {Doing, []string{"engine", "process", "sandbox", "supervisor"}, "tells programs and people what happens"},
	"terminal":       {Doing, []string{"process", "sandbox"}, "a command that a person looks at while it runs"},
	"process":        {Doing, nil, "child processes: groups, limits, bounded output"},
	"supervisor":     {Doing, []string{"agent", "agent/agents", "files", "git", "process", "sandbox", "spool"}, "owns what a run starts while pawl may come and go"},
	"sandbox":        {Doing, []string{"process"}, "what a child may touch"},
	"peer":           {Doing, nil, "whether the program at the other end of a connection may speak"},
	"workspace":      {Doing, []string{"files", "git", "process"}, "snapshots, rollback, private clones"},
	"workspace/pool": {Doing, []string{"files", "git", "process", "store"}, "private clones of tasks: taken, kept, collected, cleaned"},
	"egress":         {Doing, nil, "the one way out of a sandboxed agent"},
	"gateway":        {Doing, []string{"agent", "peer", "process", "ratelimit", "supervisor"}, "passes an agent's model calls on, counts them and keeps the key"},
	"merge":          {Doing, []string{"drive", "files", "forge", "gate", "git", "process", "sandbox", "store", "supervisor"}, "the queue that lands verified work"},
	"forge":          {Doing, nil, "speaks to where issues and pull requests are, and keeps the token"},
	"trust":          {Doing, []string{"files", "process"}, "what the files that commands are taken from were before an agent could change them"},
	"git":            {Doing, []string{"files", "process"}, "the git command, typed"},

	// remembering
	"store":          {Remembering, []string{"files", "journal", "outputs", "store/database", "store/postgres", "store/sqlite"}, "the database: all the queries there are"},
	"store/database": {Remembering, nil, "what the databases have in common that a store is kept in"},
	"store/postgres": {Remembering, []string{"store/database"}, "boards in a database that several machines have: open, lock, watch"},
	"store/sqlite":   {Remembering, []string{"files", "store/database"}, "a file of SQLite: open, lock, copy, watch"},
	"files":          {Remembering, nil, "files that several processes share: replaced whole, and locked"},
	"checklog":       {Remembering, []string{"files"}, "the attempts that pawl check was asked about, one file a task"},
	"outputs":        {Remembering, []string{"spool"}, "what runs print: found here or where machines share it, copied there, and made smaller"},
	"spool":          {Remembering, nil, "streams of any length on disk, read by offset while they are written"},
	"journal":        {Remembering, nil, "events of every run in order: append, read"},

	// starting
	"cmd/pawl-cluster": {Starting, nil, "pawl with the clients of an engine and of buckets, which cost each start and 50 MB"},
	"cmd/pawl":         {Starting, nil, "hands arguments and streams to cli"},
	"scripts/testsum":  {Starting, nil, "sums up a test run"},

	// testing
	"archtest":        {Testing, nil, "this map"},
	"forgetest":       {Testing, []string{"forge"}, "a real forge for tests"},
	"gittest":         {Testing, nil, "git for tests, without the settings of whoever runs them"},
	"transcript":      {Testing, nil, "plays the stories that deciding packages are told as"},
	"benchmark":       {Testing, nil, "the loop measured against a bash loop"},
	"simulate":        {Testing, nil, "loops in worlds whose failures have causes: the kernel's choices compared"},
	"simulate/fleet":  {Testing, nil, "a whole board at work, held to its laws: schedule, loop, queue and board with crashes and late people"},
	"scripts/sim":     {Testing, []string{"simulate", "simulate/fleet"}, "prints what simulate finds"},
	"scripts/mutate":  {Testing, []string{"process"}, "breaks lines of the product and runs its tests"},
	"scripts/size":    {Testing, nil, "counts product code"},
	"scripts/release": {Testing, []string{"cli"}, "makes the archives of a release"},
	"pgtest":          {Testing, nil, "a server of PostgreSQL for tests"},
	"powercut":        {Testing, nil, "a disk in memory whose power fails, served to the kernel by FUSE"},
	"modelserver":     {Testing, nil, "a scripted model provider on loopback"},
	"e2e":             {Testing, []string{"modelserver"}, "a real agent program, driven to the end"},
})

func withAdapters(rooms map[string]room) map[string]room {
	all := []string{"agent", "agent/jsonline", "agent/program", "agent/text"}
	for _, name := range adapters {
		all = append(all, "agent/"+name)
	}
	for _, name := range adapters {
		rooms["agent/"+name] = room{Doing, all, "one agent program or format"}
	}
	rooms["agent/agents"] = room{Doing, all, "the list of all adapters, in one place"}
	return rooms
}

// modules is who may import which other module, with the reason. In
// _test.go files every module of the list may be used.
var modules = map[string]struct {
	rooms []string
	why   string
}{
	"github.com/spf13/cobra":                 {[]string{"cli", "cli/autopilot", "cli/board", "cli/check", "cli/cluster", "cli/command", "cli/queue", "cli/run", "cli/serve", "cli/setup", "scripts/release"}, "flags and completion belong to the command line"},
	"github.com/spf13/pflag":                 {[]string{"cli/command"}, "cobra's flags"},
	"github.com/danielgtaylor/huma":          {[]string{"web"}, "the API and its description are made of the same Go types"},
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
	"golang.org/x/net":                       {[]string{"egress"}, "NO_PROXY means what it means to net/http, which the gateway asks"},
	"golang.org/x/sys":                       {[]string{"agent", "engine", "files", "journal", "peer", "process", "sandbox", "console", "supervisor", "workspace", "workspace/pool"}, "system calls belong to doing; console asks a terminal for its size"},
	"github.com/charmbracelet/x/ansi":        {[]string{"cli/check", "cli/command", "cli/run", "console", "dashboard"}, "cuts and wraps text by the columns of a terminal"},
	"go.temporal.io":                         {[]string{"cluster", "flow"}, "the engine of a cluster; workflows touch nothing by it"},
	"gocloud.dev":                            {[]string{"cluster"}, "buckets; only pawl-cluster has it"},
	"github.com/johannesboyne/gofakes3":      {nil, "a server of buckets: tests only"},
	"github.com/hanwen/go-fuse":              {[]string{"powercut"}, "a file system that forgets what was not synced: tests only"},
	"github.com/google/jsonschema-go":        {[]string{"forgetest"}, "GitHub's description of its API: tests only"},
	"github.com/rogpeppe/go-internal":        {nil, "script tests and their archives: tests only"},
}

// stdlib is which room may import a package of the standard library, where
// it is not free for all. Testing rooms and _test.go files are free.
var stdlib = map[string]struct {
	rooms []string
	why   string
}{
	"database/sql": {[]string{"store", "store/database", "store/postgres", "store/sqlite"}, "the database has one door"},
	"os/exec":      {[]string{"agent", "agent/acp", "agent/agents", "agent/command", "agent/script", "cli/command", "cli/setup", "boxpolicy", "git", "process", "sandbox", "supervisor"}, "a child is started by process, supervisor or git, so that it has limits and an end; cli and agent only look programs up, boxpolicy asks go for a setting"},
	"net/http":     {[]string{"web", "web/bounds", "web/preview", "web/shell", "mcp", "autopilot", "egress", "forge", "gateway", "hook", "sandbox", "telemetry"}, "pawl talks to nobody but a browser, a webhook, an agent's model, a forge and the user's collector"},
	"testing":      {nil, "test code in a program"},
	"plugin":       {nil, "one static binary"},
	"unsafe":       {[]string{"process", "sandbox", "supervisor"}, "only for system calls"},
	"C":            {nil, "needs cgo; pawl is one static binary"},
}

// starters is who may start goroutines, and what for.
var starters = map[string]string{
	"autopilot":    "one per slot, the merge queue's, and what is given back or made ready beside them",
	"agent":        "reads streams",
	"agent/acp":    "the bridge's reader, writer and wait, in a process of its own",
	"dashboard":    "the drawing, beside the autopilot",
	"process":      "waits for children and drains their output",
	"supervisor":   "one per job, the lease, the socket",
	"sandbox":      "the init of a box, which ends with its process",
	"telemetry":    "messages to the collector, beside the run",
	"reexec":       "the little program that pawl is, beside the initialisation of the rest",
	"drive":        "the command under way, so that a person is heard meanwhile",
	"engine":       "signals, and a last look that a second one cuts short",
	"outputs":      "the copy of what a run prints for other machines; one for each iteration in a bucket that is looked at",
	"terminal":     "keys, output and the size of a window, until the command ends",
	"git":          "commands that are run side by side, which it waits for",
	"hook":         "one per run and receiver that has something to be told, and the waits for them",
	"egress":       "one per client of the proxy, and one per direction",
	"gateway":      "the end of its server; requests have those of net/http",
	"mcp":          "a session, which a client that reads nothing does not let end",
	"web":          "live events",
	"web/preview":  "the end of what is under way when the server ends",
	"web/shell":    "keys and output of a terminal, which ends with its connection",
	"workflow/run": "one per step that runs, and one that shows its output",
	"files":        "syncs several files side by side: one write of the disk's journal serves all; frees a slow git of a pipe",
	"merge":        "one per agent at a conflict",
	"store":        "the beats of what this process owns on a board of several machines",
	"cluster":      "one per task, one per order for its beats, and what a worker before left",
}

// readers is who may read the environment, and which variables they mean.
var readers = map[string]string{
	"config":       "PAWL_… and XDG_…: the one place for configuration",
	"agent/agents": "the agents' own variables, such as a key that is set, handed to the adapters",
	"cli":          "what describes the terminal (NO_COLOR, TERM, COLUMNS); never configuration",
	"git":          "where git itself looks for its configuration, to tell when it has changed",
	"workspace":    "where git itself looks for the user-wide ignore file",
	"process":      "the mark of a run in a child's environment",
	"supervisor":   "the mark of a run, and what a parent hands to its re-executed self",
	"sandbox":      "what a parent hands to its re-executed self",
}

// inheritors is who may pass the whole environment on to a child.
var inheritors = []string{"cli", "config", "reexec", "engine", "gate", "git", "process", "sandbox", "supervisor"}
