// Package docs has the schemas of pawl.yaml and of workflow files as they are
// published. They are written by the tests of internal/ask/config.
package docs

import _ "embed"

// The schemas are JSON Schema, draft 2020-12.
var (
	//go:embed pawl.schema.json
	Schema string
	//go:embed workflow.schema.json
	WorkflowSchema string
)
