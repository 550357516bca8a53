package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// nightFault is what happens to an agent at a call of its own.
type nightFault struct {
	name    string
	paid    bool // the model answered, so that the call is work of the task
	slow    bool // seconds go by, so a small night has none
	gateway bool // it happens between the gateway and the provider: only in a night that has them
	ends    bool // the agent has done its work in this call
	waits   bool // it is the provider's: waited for, and no iteration of the task
}

// nightFaults are the words of nightAgent. What else can go wrong in a night is tried elsewhere:
//
//	each real program without a network      e2e/network_all_test.go; agent/agents/testdata/recordings
//	a loop that stands still                 loop/testdata: 27, 28, 140 to 142
//	faults of gates, set-up, disk and files  scripts doctor_gates, on_base, lfs, setup_commands, place_…, edge_disk_full
//	a task in words that is not complete     script run_words
//	windows of a subscription                script limits_plan
//	an agent that repairs its commits        scripts signoff, collect_told
//	a model without a price, limits of a day scripts money_unknown, limits_per_day, limits_of_counts
//	requests at a forge under kills          TestStoryUnderKills
//	what a month keeps on the disk           BenchmarkKeep
var nightFaults = []nightFault{
	{name: "no-name", waits: true},
	{name: "refused", waits: true},
	{name: "reset-before", waits: true},
	{name: "reset-middle", waits: true},
	{name: "hang", slow: true},
	{name: "garbage", waits: true},
	{name: "half"},
	{name: "429-in-2s", waits: true},
	{name: "429", waits: true},
	{name: "500", waits: true},
	{name: "503", waits: true},
	{name: "529", waits: true},
	{name: "credits"},
	{name: "model"},
	{name: "key"},
	{name: "no-end", paid: true, slow: true, ends: true},
	{name: "killed-after", paid: true, ends: true},
	{name: "children", paid: true, ends: true},
	{name: "amended", paid: true, ends: true},
	{name: "idle"},
	{name: "idle"},
	{name: "flip", paid: true},
	{name: "red", paid: true},
	{name: "gateway-cut", gateway: true, waits: true},
	{name: "gateway-swallowed", gateway: true, waits: true},
	{name: "gateway-429-in-1s", paid: true, gateway: true, ends: true},
	{name: "gateway-429", gateway: true, paid: true, ends: true},
	{name: "gateway-529", gateway: true, paid: true, ends: true},
	{name: "gateway-hang", gateway: true, slow: true},
	{name: "gateway-garbage", gateway: true, waits: true},
	{name: "gateway-credits", gateway: true},
	{name: "gateway-key", gateway: true},
	{name: "gateway-model", gateway: true},
}

// nightAgent prints what Claude Code prints. At each call it meets the next fault of its task, else what all meet, else it
// works. Paid is counted as the model's answer is there.
const nightAgent = `cat >/dev/null
fault=$(ls FAULTS/$PAWL_CASE 2>/dev/null | head -n1)
test -z "$fault" || mv "FAULTS/$PAWL_CASE/$fault" "FAULTS/met-$PAWL_CASE-$fault"
fault=${fault#*-}
test -n "$fault" || fault=$(cat FAULTS/all 2>/dev/null)
echo "$PAWL_CASE ${fault:-work}" >>FAULTS/calls
json() { sed 's/\\/\\\\/g; s/"/\\"/g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'; }
said() {
  printf '{"type":"assistant","message":{"id":"m1","model":"claude-sonnet-4-5","role":"assistant","usage":{"input_tokens":9,"output_tokens":4},"content":[{"type":"text","text":"%s"}]},"session_id":"s"}\n' "$(printf '%s' "$1" | json)"
}
result() {
  printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"%s","total_cost_usd":0.01,"usage":{"input_tokens":9,"output_tokens":4},"session_id":"s"}\n' "$(printf '%s' "$1" | json)"
}
broken() {
  text=$(printf '%s' "$1" | json)
  printf '{"type":"assistant","message":{"id":"m2","model":"<synthetic>","role":"assistant","usage":{"input_tokens":0,"output_tokens":0},"content":[{"type":"text","text":"%s"}]},"error":"%s","is_api_error_message":true,"session_id":"s"}\n' "$text" "${2:-unknown}"
  printf '{"type":"result","subtype":"success","is_error":true,"num_turns":1,"result":"%s","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0},"session_id":"s"}\n' "$text"
  exit 1
}
works() { case $PAWL_CASE in *[05]) sleep 3 ;; *) sleep 0.4 ;; esac; }
answered() {
  test -e FAULTS/gateway || { echo "$PAWL_CASE" >>FAULTS/paid; works; return; }
  said=$(callmodel "$PAWL_CASE $fault") && { works; return; }
  test "$fault" != gateway-swallowed || { said 'I will now'; result 'I will now'; exit 0; }
  broken "API Error: $said"
}
work() { mkdir -p tasks && echo "${1:-done}" >tasks/$PAWL_CASE; }
printf '{"type":"system","subtype":"init","cwd":"/r","session_id":"s","tools":["Bash"],"model":"claude-sonnet-4-5"}\n'
case $fault in
no-name) broken 'API Error: Unable to connect to API (ENOTFOUND)' ;;
refused) broken 'API Error: Unable to connect to API (ECONNREFUSED)' ;;
reset-before) broken 'API Error: Connection error.' ;;
reset-middle) said 'I begin.'; broken 'API Error: The socket connection was closed unexpectedly.' ;;
hang) exec sleep 1000 ;;
garbage) broken 'API Error: Unexpected token < in JSON at position 0' ;;
half) said 'I will now'; result 'I will now' ; exit 0 ;;
429-in-2s) broken 'API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"Too many requests. Please try again in 2s"}}' rate_limit ;;
429) broken 'API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"Too many requests"}}' rate_limit ;;
500) broken 'API Error: 500 {"type":"error","error":{"type":"api_error","message":"Internal server error"}}' server_error ;;
503) broken 'API Error: 503 {"type":"error","error":{"type":"api_error","message":"Service unavailable"}}' server_error ;;
529) broken 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}' server_error ;;
credits) broken 'Credit balance is too low' billing_error ;;
model) broken 'API Error: 404 {"type":"error","error":{"type":"not_found_error","message":"model: claude-none"}}' invalid_request ;;
key) broken 'Invalid API key · Fix external API key' authentication_failed ;;
idle) said 'Let me think.'; result 'I thought about it.'; exit 0 ;;
flip) answered; work a; said 'Once more.'; result 'Once more.'; exit 0 ;;
red) answered; work bad; said 'Done.
<promise>COMPLETE</promise>'; result 'Done.
<promise>COMPLETE</promise>'; exit 0 ;;
esac
answered
work
said 'Done.
<promise>COMPLETE</promise>'
test "$fault" != amended || { git add -A && git commit -q --amend -m mine; }
test "$fault" != children || setsid sleep 1000 &
result 'Done.
<promise>COMPLETE</promise>'
case $fault in
no-end) exec sleep 1000 ;;
killed-after) kill -9 $$ ;;
esac
exit 0
`

const nightGate = `set -e
! test -e broken
for f in tasks/*; do test ! -e "$f" || grep -qx done "$f"; done
echo "1 passed"
`

// callModel asks the model that the environment names, as an agent program does: its words are the arguments. It fails
// with what the provider said, or that the stream has no end.
func callModel() {
	if why := callingModel(strings.Join(os.Args[1:], " ")); why != "" {
		fmt.Println(why)
		os.Exit(1)
	}
	os.Exit(0)
}

func callingModel(words string) (why string) {
	if os.Getenv("ANTHROPIC_API_KEY") == nightKey {
		return "the key is in the environment, and the gateway is not between"
	}
	body := fmt.Sprintf(`{"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": true,
		"tools": [{"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}],
		"messages": [{"role": "user", "content": %q}]}`, words)
	res, err := request(os.Getenv("ANTHROPIC_API_KEY"), http.MethodPost, os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", body)
	if err != nil {
		return "Unable to connect to API: " + err.Error()
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	switch {
	case res.StatusCode != http.StatusOK:
		return fmt.Sprint(res.StatusCode, " ", string(said))
	case err != nil || !strings.Contains(string(said), "message_stop"):
		return "The socket connection was closed unexpectedly."
	}
	return ""
}

const nightKey = "a-key"

// nightModel is the provider of a night whose agents call it through pawl's gateway. What a call asks for goes wrong
// once; the gateway may ask again. Calls that have their whole answer are written down as paid.
func nightModel(t *testing.T, faults string) *modelserver.Server {
	t.Helper()
	var mu sync.Mutex
	met := map[string]bool{}
	words := regexp.MustCompile(`(task-\d+) ([-a-z0-9]*)"`)
	s := modelserver.New(modelserver.Scenario{Decide: func(r modelserver.Request) modelserver.Reply {
		mu.Lock()
		defer mu.Unlock()
		asked := words.FindStringSubmatch(string(r.Body))
		if asked == nil {
			return modelserver.Reply{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: string(r.Body)}
		}
		if reply, wrong := nightReplies[asked[2]]; wrong && !met[asked[0]] {
			met[asked[0]] = true
			return reply
		}
		f, err := os.OpenFile(filepath.Join(faults, "paid"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, asked[1])
			_ = f.Close()
		}
		if err != nil {
			t.Error(err)
		}
		return modelserver.Reply{Text: "It is done."}
	}})
	t.Cleanup(s.Close)
	return s
}

var nightReplies = map[string]modelserver.Reply{
	"gateway-cut":       {Text: "I will now look at the files.", Cut: 3},
	"gateway-swallowed": {Text: "I will now look at the files.", Cut: 3},
	"gateway-429-in-1s": {Status: 429, Type: "rate_limit_error", Message: "Too many requests", Header: map[string]string{"retry-after": "1"}},
	"gateway-429":       {Status: 429, Type: "rate_limit_error", Message: "Too many requests"},
	"gateway-529":       {Status: 529, Type: "overloaded_error", Message: "Overloaded"},
	"gateway-hang":      {Hang: true},
	"gateway-garbage":   {Body: "<html><body>Log in to the guest network</body></html>", BodyType: "text/html"},
	"gateway-credits":   {Status: 400, Type: "invalid_request_error", Message: "Your credit balance is too low to access the Anthropic API."},
	"gateway-key":       {Status: 401, Type: "authentication_error", Message: "invalid x-api-key"},
	"gateway-model":     {Status: 404, Type: "not_found_error", Message: "model: claude-none"},
}
