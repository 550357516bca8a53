package reading

import (
	"fmt"
	"strings"
)

// Samples are a few lines of each format, as the programs write them.
var Samples = map[string][]string{
	"claude": {`{"type":"system","subtype":"init","session_id":"s","model":"claude-sonnet-4-5"}`,
		`{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"Hi."},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":5}}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}}`,
		`{"type":"result","subtype":"success","is_error":false,"num_turns":1,"total_cost_usd":0.5,"usage":{"input_tokens":9,"output_tokens":2},"result":"Hi."}`},
	"codex": {`{"type":"thread.started","thread_id":"1"}`, `{"type":"turn.started"}`,
		`{"type":"item.started","item":{"id":"i","type":"command_execution","command":"ls","status":"in_progress"}}`,
		`{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"ls","aggregated_output":"a","exit_code":0,"status":"completed"}}`,
		`{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"Hi."}}`, `{"type":"error","message":"Reconnecting... 1/5 (status 503)"}`,
		`{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":3,"output_tokens":2}}`},
	"gemini": {`{"type":"init","session_id":"s","model":"gemini-2.5-flash"}`, `{"type":"message","role":"user","content":"Work."}`,
		`{"type":"message","role":"assistant","content":"Hi","delta":true}`, `{"type":"message","role":"assistant","content":".","delta":true}`,
		`{"type":"tool_use","tool_name":"run_shell_command","tool_id":"t","parameters":{"command":"ls"}}`, `{"type":"tool_result","tool_id":"t","status":"success","output":"a"}`,
		`{"type":"result","status":"success","stats":{"total_tokens":9,"input_tokens":7,"output_tokens":2}}`},
	"opencode": {`{"type":"step_start","sessionID":"s","part":{"type":"step-start"}}`,
		`{"type":"tool_use","sessionID":"s","part":{"tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"a","metadata":{"output":"a","exit":0}}}}`,
		`{"type":"text","sessionID":"s","part":{"text":"Hi."}}`,
		`{"type":"step_finish","sessionID":"s","part":{"id":"p2","reason":"stop","tokens":{"input":7,"output":2,"cache":{"read":1}},"cost":0.01}}`},
	"script": {`{"type":"start","session":"s","model":"m"}`, `{"type":"delta","text":"Hi"}`, `{"type":"delta","text":"."}`, `{"type":"tool","name":"run","command":"ls"}`,
		`{"type":"tool_end","name":"run"}`, `{"type":"usage","input":7,"output":2}`, `{"type":"end","ok":true,"message":"Hi."}`},
	"text": {"I did it.", "<promise>COMPLETE</promise>"},
	"qwen": {`{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"[API Error: 429 slow]"}],"usage":{"input_tokens":5,"cache_read_input_tokens":3}}}`,
		`{"type":"system","subtype":"retry","data":{"attempt":1,"delayMs":60000}}`,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"[API Error: 429 slow]"}}`},
	"amp": {`{"type":"assistant","message":{"content":[{"type":"text","text":"Hi."}],"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"error":"out of credits"}`},
	"cursor": {`{"type":"tool_call","subtype":"started","call_id":"1","tool_call":{"shellToolCall":{"args":{"command":"ls"}}}}`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"Done.","usage":{"inputTokens":5,"outputTokens":2}}`},
	"droid": {`{"type":"message","role":"assistant","id":"1","text":"Hi."}`, `{"type":"error","source":"agent_loop","message":"429 slow"}`,
		`{"type":"tool_call","messageId":"1","toolName":"Execute","parameters":{"command":"ls","file_path":"/a"}}`,
		`{"type":"completion","finalText":"Hi.","numTurns":2,"usage":{"input_tokens":5}}`},
	"copilot": {`{"type":"assistant.message_delta","data":{"deltaContent":"Hi."}}`, `{"type":"tool.execution_start","data":{"toolCallId":"1","toolName":"bash","arguments":{"command":"ls"}}}`,
		`{"type":"model.call_failure","data":{"statusCode":429,"errorMessage":"{\"code\":\"slow\",\"resets_at\":1795183346}"}}`, `{"type":"session.error","data":{"errorType":"query","message":"no"}}`,
		`{"type":"abort","data":{}}`, `{"type":"result","exitCode":0}`},
	"cline": {`{"type":"agent_event","event":{"type":"content_start","contentType":"text","text":"Hi."}}`, `{"type":"agent_event","event":{"type":"error","errorClass":"unknown","error":{"message":"slow"}}}`,
		`{"type":"agent_event","event":{"type":"content_start","contentType":"tool","toolName":"run_commands","input":{"commands":["ls","cat a"]}}}`,
		`{"type":"run_result","finishReason":"error","aggregateUsage":{"inputTokens":5,"totalCost":0.5},"text":"slow"}`},
	"kimi": {`{"role":"meta","type":"system.version","version":"2.1.0"}`,
		`{"role":"assistant","content":"I look.","tool_calls":[{"type":"function","id":"c","function":{"name":"Bash","arguments":"{\"command\":\"ls\"}"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":"a"}`, `{"role":"meta","type":"turn.step.retrying","failed_attempt":1,"delay_ms":1000,"error_message":"429 slow","status_code":429}`,
		`{"role":"assistant","content":"Hi."}`, `{"role":"meta","type":"session.resume_hint","session_id":"s"}`},
	"goose": {`{"type":"message","message":{"id":"1","role":"assistant","content":[{"type":"text","text":"Hi."},{"type":"toolRequest","id":"t","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"ls"}}}}]}}`,
		`{"type":"error","error":"429 slow"}`, `{"type":"complete","input_tokens":5,"cost_usd":0.5}`},
}

// Stream is a stream as they are in practice: most bytes are results of tools.
func Stream(name string) [][]byte {
	code := strings.Repeat("\tfmt.Println(\"a line of code\")\n", 700)
	output := map[string]string{
		"codex":    `{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"ls","aggregated_output":%q,"exit_code":0,"status":"completed"}}`,
		"gemini":   `{"type":"tool_result","tool_id":"t","status":"success","output":%q}`,
		"opencode": `{"type":"tool_use","sessionID":"s","part":{"tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":%[1]q,"metadata":{"output":%[1]q,"exit":0}}}}`,
		"script":   `{"type":"tool_end","name":"run","output":%q}`,
		"droid":    `{"type":"tool_result","id":"1","messageId":"2","toolId":"Execute","isError":false,"value":%q}`,
		"copilot":  `{"type":"tool.execution_complete","data":{"toolCallId":"1","success":true,"result":{"content":%q}},"id":"2"}`,
		"cline":    `{"type":"agent_event","event":{"type":"content_end","contentType":"tool","toolName":"run_commands","toolCallId":"1","output":[{"query":"ls","result":%q,"success":true}]}}`,
		"goose":    `{"type":"message","message":{"id":"9","role":"user","content":[{"type":"toolResponse","id":"t","toolResult":{"status":"success","value":{"content":[{"type":"text","text":%q}],"isError":false}}}]}}`,
		"kimi":     `{"role":"tool","tool_call_id":"c","content":%q}`,
		"cursor":   `{"type":"tool_call","subtype":"completed","call_id":"1","tool_call":{"shellToolCall":{"args":{"command":"ls"},"result":{"success":{"stdout":%q}}}}}`,
	}[name]
	if output == "" {
		output = `{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":%q}]}}`
	}
	var lines [][]byte
	for _, l := range Samples[name] {
		lines = append(lines, []byte(l))
	}
	if name == "text" {
		for line := range strings.Lines(code) {
			lines = append(lines, []byte(strings.TrimSuffix(line, "\n")))
		}
		return lines
	}
	return append(lines, fmt.Appendf(nil, output, code))
}
