package main

// nightFault is what happens to an agent at a call of its own.
type nightFault struct {
	name string
	paid bool // the model answered, so that the call is work of the task
	slow bool // seconds go by, so a small night has none
}

// nightFaults are the words of nightAgent.
var nightFaults = []nightFault{
	{name: "no-name"},
	{name: "refused"},
	{name: "reset-before"},
	{name: "reset-middle"},
	{name: "hang", slow: true},
	{name: "garbage"},
	{name: "half"},
	{name: "429-in-2s"},
	{name: "429"},
	{name: "500"},
	{name: "503"},
	{name: "529"},
	{name: "credits"},
	{name: "model"},
	{name: "key"},
	{name: "no-end", paid: true, slow: true},
	{name: "killed-after", paid: true},
	{name: "children", paid: true},
	{name: "idle"},
	{name: "idle"},
	{name: "flip", paid: true},
	{name: "red", paid: true},
}

// nightAgent prints what Claude Code prints. At each call it meets the next fault of its task, else it works.
// Paid is counted as the model's answer is there.
const nightAgent = `cat >/dev/null
fault=$(ls FAULTS/$PAWL_CASE 2>/dev/null | head -n1)
test -z "$fault" || mv "FAULTS/$PAWL_CASE/$fault" "FAULTS/met-$PAWL_CASE-$fault"
fault=${fault#*-}
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
answered() { sleep 0.4; echo "$PAWL_CASE" >>FAULTS/paid; }
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
