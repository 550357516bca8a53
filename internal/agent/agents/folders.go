package agents

import (
	"path/filepath"
	"slices"
)

// folders are where the programs keep logins, settings and sessions of the
// user, below the home folder.
var folders = map[string][]string{
	"aider": {".aider", ".aider.conf.yml"},
	"amp":   {".config/amp", ".local/share/amp", ".cache/amp"},
	"claude": {".claude", ".claude.json", ".claude.json.backup", ".cache/claude-cli-nodejs", ".cache/claude",
		".local/state/claude"},
	"cline":    {".cline"},
	"codex":    {".codex"},
	"copilot":  {".copilot", ".config/github-copilot"},
	"crush":    {".config/crush", ".local/share/crush", ".cache/crush"},
	"cursor":   {".cursor", ".config/cursor"},
	"droid":    {".factory"},
	"gemini":   {".gemini"},
	"goose":    {".config/goose", ".local/share/goose", ".local/state/goose", ".cache/goose"},
	"kilo":     {".config/kilo", ".local/share/kilo", ".local/state/kilo", ".cache/kilo"},
	"kiro":     {".kiro", ".local/share/kiro-cli"},
	"opencode": {".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"},
	"qwen":     {".qwen"},
}

// move is a variable by which a program's folders are elsewhere.
type move struct {
	variable, below string   // the folder is below what the variable names
	instead         []string // of these
}

func xdg(program string) []move {
	return []move{
		{"XDG_CONFIG_HOME", program, []string{".config/" + program}},
		{"XDG_DATA_HOME", program, []string{".local/share/" + program}},
		{"XDG_STATE_HOME", program, []string{".local/state/" + program}},
		{"XDG_CACHE_HOME", program, []string{".cache/" + program}},
	}
}

var moves = map[string][]move{
	"amp":      xdg("amp"),
	"claude":   {{"CLAUDE_CONFIG_DIR", "", []string{".claude", ".claude.json", ".claude.json.backup"}}},
	"codex":    {{"CODEX_HOME", "", []string{".codex"}}},
	"crush":    xdg("crush"),
	"gemini":   {{"GEMINI_CLI_HOME", ".gemini", []string{".gemini"}}},
	"goose":    xdg("goose"),
	"kilo":     xdg("kilo"),
	"opencode": xdg("opencode"),
}

// Program is the known program that an agent runs: the one of its name, else
// the one that its command is named after, else the one whose format it
// prints; "" when none is known.
func Program(name, format string, argv []string) string {
	if folders[name] != nil {
		return name
	}
	if len(argv) > 0 && folders[filepath.Base(argv[0])] != nil {
		return filepath.Base(argv[0])
	}
	if folders[format] != nil {
		return format
	}
	return ""
}

// Folders are where a program keeps what is the user's: logins, settings,
// sessions. getenv looks up the environment that the program will have.
func Folders(program, home string, getenv func(string) string) []string {
	names := slices.Clone(folders[program])
	var out []string
	for _, m := range moves[program] {
		dir := getenv(m.variable)
		if !filepath.IsAbs(dir) {
			continue
		}
		out = append(out, filepath.Join(dir, m.below))
		names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(m.instead, n) })
	}
	if filepath.IsAbs(home) {
		for _, n := range names {
			out = append(out, filepath.Join(home, n))
		}
	}
	return out
}

// OthersFolders are those of all other programs, wherever they may be.
func OthersFolders(program, home string, getenv func(string) string) []string {
	var out []string
	none := func(string) string { return "" }
	for _, p := range keys(folders) {
		if p == program {
			continue
		}
		for _, f := range slices.Concat(Folders(p, home, none), Folders(p, home, getenv)) {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}
