// Package gemini runs Gemini CLI headless and reads its stream of JSON lines
// (`gemini --output-format stream-json`).
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin; what is over 8 MiB is cut off without an
//     error, and then nothing is asked. The stream begins with an echo of it.
//   - Messages come in pieces, which may split a word.
//   - `result` ends the stream, with the usage of the whole run: cached tokens
//     are within the input, those of thoughts are outside of the output.
//   - A run that its loop detector or a turn limit stopped is "success" with an
//     `error` event before it. An answer that was cut off at the limit of its
//     tokens is success too, and nothing tells.
//   - The exit status of a failed call is the HTTP status modulo 256.
//   - Failed calls are tried ten times, told on stderr only, up to four minutes.
//   - It starts itself a second time unless it is told not to, and the first
//     process ignores TERM then. Without that it ends at TERM, but the shells of
//     its tools do not: the supervisor's sweep ends those.
//   - As a pipe its stdout loses what is over 64 KiB when it ends.
//
// Approvals are off at every safety level, since a headless program cannot
// ask: what it may touch is enforced by pawl's sandbox. The package starts
// nothing itself.
package gemini

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
	"github.com/pawl-dev/pawl/internal/failure"
)

// defaults are settings below the user's own: pawl waits itself, so that a
// failed call is tried three times, and nobody is told how the program is used.
const defaults = `{` + quiet + `}
`

// routed are the defaults with the gateway. A server that is not Google's has to
// be told how to log in.
const routed = `{"security": {"auth": {"selectedType": "gemini-api-key"}},` + quiet + `}
`

const quiet = `
  "general": {"maxAttempts": 3, "enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
`

// Program is Gemini CLI. With a key nothing of the user's own folder is needed,
// unless the key is for a server of the user's own: then the program starts
// only if the user's settings say how it logs in.
func Program() program.Program {
	return program.Program{
		Name: "gemini", Binary: "gemini",
		Args:     []string{"--output-format", "stream-json"},
		Allow:    []string{"--approval-mode", "yolo", "--skip-trust"},
		ReadOnly: []string{"--approval-mode", "plan", "--skip-trust"},
		Model:    "--model",
		Limit:    8 << 20,
		Env:      []string{"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_TELEMETRY_ENABLED=false"},
		State: program.State{
			Env: []string{"GEMINI_CLI_HOME={state}"}, Keys: []string{"GEMINI_API_KEY"},
			Unless:      []string{"GOOGLE_GEMINI_BASE_URL"},
			SettingsVar: "GEMINI_CLI_SYSTEM_DEFAULTS_PATH", Settings: agent.File{Path: "pawl-defaults.json", Content: defaults}, Routed: routed,
		},
		Doors:  []program.Door{program.ToGoogle.By("GOOGLE_GEMINI_BASE_URL={url}")},
		Closed: []string{"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"},
		Grace:  8 * time.Second,
		Parser: "gemini", Structured: true,
		Own:       program.Lines(NewParser),
		Folders:   []string{".gemini"},
		Login:     ".gemini/oauth_creds.json",
		Moves:     []program.Move{{Variable: "GEMINI_CLI_HOME", Below: ".gemini", Instead: []string{".gemini"}}},
		Variables: []string{"GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GEMINI_*", "GOOGLE_GENAI_*"}, Single: true,
		Clouds: []program.Cloud{
			{When: "GOOGLE_GENAI_USE_VERTEXAI", Needs: []string{"GOOGLE_*", "GCLOUD_*"}},
			{When: "GOOGLE_GENAI_USE_GCA", Needs: []string{"GOOGLE_*"}},
		},
		Services: services(),
		Install:  "npm install -g @google/gemini-cli",
		Exits:    exits(),
		Facts: agent.Facts{
			Package: "npm @google/gemini-cli", Versions: "0.61.0",
			Tokens: "reported at the end, none when it is ended before",
			Cost:   "estimated from tokens, when the model has a price",
			Problems: []string{
				"An answer that was cut off at the limit of its output tokens, or refused, is reported as success: only gates " +
					"notice.",
				"Retries are told on stderr only, and a connection that is refused is tried for minutes.",
				"A prompt that begins with / is taken for a command, and @path in it for a file to read: a file that is not there " +
					"ends the run.",
				"Logins of persons ended in June 2026; keys and enterprise accounts are served.",
				"It is a Node program that needs 400 MB, and twice that with big tool outputs.",
			},
		},
	}
}

func services() []program.Service {
	const vertex = "GOOGLE_GENAI_USE_VERTEXAI"
	return []program.Service{
		{Hosts: program.Google.Hosts, Base: program.Google.Base, Unless: []string{vertex}},
		{
			Hosts: []string{"cloudcode-pa.googleapis.com", "oauth2.googleapis.com"}, Base: []string{"CODE_ASSIST_ENDPOINT"},
			Unless: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", vertex},
		},
		program.Vertex.Only(vertex),
	}
}

// exits reads the exit status of a failure: the program's own below 128, else
// an HTTP status modulo 256, of those that the API answers with.
func exits() map[int]failure.APIError {
	m := map[int]failure.APIError{
		41: {Type: "authentication_missing", Message: "no way to authenticate is set"},
		42: {Type: "invalid_input", Message: "the program did not accept its input"},
		44: {Type: "sandbox_failed", Message: "the program's own sandbox failed"},
		52: {Type: "invalid_config", Message: "the program's settings are not valid"},
		53: {Type: "max_turns", Message: "reached the maximum number of turns of the program's settings"},
		54: {Type: "tool_failed", Message: "a tool failed in a way that ends the program"},
		55: {Type: "invalid_folder_trust", Message: "the program does not trust the folder"},
	}
	for status, kind := range map[int]string{
		400: "invalid_request", 401: "authentication_failed", 402: "payment_required", 403: "permission_denied",
		404: "not_found", 408: "timeout", 413: "request_too_large", 429: "rate_limit", 499: "cancelled",
		500: "server_error", 502: "server_error", 503: "server_error", 504: "timeout", 529: "overloaded",
	} {
		said := fmt.Sprintf("the program's exit status stands for HTTP %d", status)
		m[status%256] = failure.APIError{Status: status, Type: kind, Message: said}
	}
	return m
}
