// Package script is the scripted agent: a program that plays a scenario
// instead of asking a model. It is for the demo, for tests and for
// benchmarks, and can do all that a bad agent does: fail, hang, flood, leave
// daemons, delete what it should not. It talks to no network and decides
// nothing.
//
// It runs as a process of its own, `pawl __script-agent FILE`; [Main] is that
// process. Each start plays the next turn of the scenario; the last turn is
// played again and again.
//
// # Scenario
//
//	name: repair            # for the session id; optional
//	model: scripted-1       # optional
//	turns:
//	  - say: I look at the code first.
//	    edit: {path: add.go, old: a - b, new: a + b}
//	    usage: {input: 1200, output: 80, cost: 0.004}
//	  - - say: Now the last one.      # a list of steps, when one is needed twice
//	    - run: go test ./...
//	    - say: |
//	        All tests pass.
//	        <promise>COMPLETE</promise>
//	scenes:                 # turns for some prompts only; the first that fits is played
//	  - when: {prompt: "task-002", case: task-002}    # all that is given must hold
//	    turns: [...]
//
// A turn is a mapping, whose steps are done in the order in which they are
// written, or a list of such mappings. `turns` is played when no scene fits.
// The steps:
//
//	say: TEXT | [TEXT, ...]          a message each
//	think: TEXT                      reasoning; never a signal
//	tool: NAME | {name, command, files, failed, output}    a tool call, only reported
//	write: {path, content, mode}     a file, with its folders; mode is octal, "755"
//	append: {path, content}
//	edit: {path, old, new}           old must be there; every place is changed
//	delete: PATH | [PATH, ...]       files and folders; what is not there is no error
//	run: COMMAND | {command, must: true}    sh -c; must: the turn fails when it does
//	usage: {input, output, cache_read, cache_write, cost, calls}
//	                                 one model call (calls: 1); cost is in USD and added up
//	rate_limit: {retry_after: 30s, reset_in: 3h, type, message}     ends the turn, exit 1
//	api_error: {status, type, message, retry_after}                 ends the turn, exit 1
//	exit: N                          ends the turn; N > 0 is reported as a failed end
//	no_end: true                     the stream ends without its terminal event
//	sleep: D
//	hang: true                       does nothing more, for a day
//	ignore_term: true                TERM, INT and HUP no longer end it
//	raw: COMMAND                     sh -c, whose output is the agent's own: noise, the prompt
//	                                 (it is on stdin), or a process that is left behind
//	expect_prompt: TEXT | [TEXT, ...]    the prompt must hold it, else the turn fails
//
// Paths are relative to the working folder. A step that cannot be done says why
// on stderr and ends the turn with exit 97; a scenario that cannot be read is
// exit 2, with line and caret.
//
// # Which turn
//
// The number is kept in the folder PAWL_SCRIPT_STATE, one file for each run
// (PAWL_RUN), scenario and scene, so a new run starts with the first turn and
// a resumed one continues. A turn is taken before it is played: one that was
// killed is not played again. Without that folder PAWL_ITERATION is the turn,
// without both it is the first.
//
// # Output
//
// The agent prints JSON lines, which any script of a user may print too (`output:
// script`). Each has a "type"; what is not named here is kept as unknown and does
// no harm:
//
//	{"type":"start","session":"s1","model":"scripted-1"}
//	{"type":"text","text":"a whole message"}
//	{"type":"delta","text":"a piece"}         pieces up to the next line of another type are one message
//	{"type":"thinking","text":"..."}
//	{"type":"tool","name":"run","command":"go test","files":["a.go"]}
//	{"type":"tool_end","name":"run","failed":true,"output":"FAIL"}
//	{"type":"usage","input":1,"output":2,"cache_read":0,"cache_write":0,"calls":1,"total":false}
//	                                          total: the run's sums, not an addition
//	{"type":"cost","usd":0.004}               the run's cost so far
//	{"type":"retry","attempt":1,"status":529,"error":"overloaded"}
//	{"type":"rate_limit","status":429,"error":"rate_limit","message":"...","retry_after":"30s","reset_at":"2026-01-02T15:04:05Z"}
//	{"type":"error","status":401,"error":"authentication_error","message":"..."}
//	{"type":"end","ok":true,"message":"..."}  the terminal event; message is optional
package script
