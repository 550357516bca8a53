package telemetry

// The names of attributes and metrics. Those of GenAI are conventions of
// OpenTelemetry that are still in development; they are nowhere else.
const (
	attrOperation    = "gen_ai.operation.name"
	attrAgentName    = "gen_ai.agent.name"
	attrModel        = "gen_ai.request.model"
	attrResponse     = "gen_ai.response.model"
	attrConversation = "gen_ai.conversation.id"
	attrTokensIn     = "gen_ai.usage.input_tokens"
	attrTokensOut    = "gen_ai.usage.output_tokens"
	attrTokenType    = "gen_ai.token.type" // "input" or "output"
	attrTool         = "gen_ai.tool.name"
	attrError        = "error.type"

	attrRun        = "pawl.run"
	attrProcedure  = "pawl.procedure"
	attrStatus     = "pawl.status"
	attrWhy        = "pawl.why"
	attrIteration  = "pawl.iteration"
	attrAttempt    = "pawl.attempt"
	attrStrategy   = "pawl.strategy"
	attrOutcome    = "pawl.outcome"
	attrCost       = "pawl.cost_usd"
	attrCostSource = "pawl.cost_source"
	attrCalls      = "pawl.model_calls"
	attrScore      = "pawl.score_per_mille"
	attrGate       = "pawl.gate"
	attrRequired   = "pawl.gate.required"
	attrGateStatus = "pawl.gate.status"

	metricTokens     = "gen_ai.client.token.usage"
	metricAgentTime  = "gen_ai.client.operation.duration"
	metricIterations = "pawl.iterations"
	metricCost       = "pawl.cost"
	metricGates      = "pawl.gates"
	metricGateTime   = "pawl.gate.duration"
	metricWaits      = "pawl.waits"

	opInvokeAgent = "invoke_agent"
	opExecuteTool = "execute_tool"
)
