package agent

// Facts are what pawl knows of an agent program beside its command line, for
// people: the table in the documentation, `pawl doctor`. A field that is empty
// is not known.
type Facts struct {
	Program     string   // as it is called on the command line
	Package     string   // what to install, e.g. "npm: @qwen-code/qwen-code"
	Versions    string   // the versions that pawl was tried with
	Format      string   // what is read, e.g. "JSON lines" or "text"
	Tokens      string   // where token counts come from, and when
	Cost        string   // where the cost comes from
	PromptLimit int64    // bytes; 0 is none known
	Problems    []string // what is wrong with the program, one sentence each
}

// Factual is optionally implemented by an [Adapter] that knows its program's facts.
type Factual interface {
	Facts() Facts
}
