package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// This file finds requests that make the provider itself open an address, whose server learns
// what the agent put into it: images and documents by URL, the provider's own
// web tools, MCP servers that it connects to. No list knows for long what tools and fields a
// provider has. So tools are refused but for those that the agent's own program runs, and so are
// addresses, but in texts and in what the provider only hands on.

// fetchPatterns recognize the parts of a request.
var fetchPatterns = sync.OnceValue(func() (p struct {
	// localTools are the types of tools that the agent's own program runs; a date may follow.
	localTools,
	// handedOn are fields whose content the provider hands on between the model and the agent's own
	// tools: arguments, results, and their schemas.
	handedOn,
	address, addressField, textField, fetchOption, fetchModel *regexp.Regexp
},
) {
	p.localTools = regexp.MustCompile(`^(function|custom|namespace|local_shell|apply_patch|computer|bash|text_editor|` +
		`memory|tool_search|tool_search_tool_(regex|bm25))(_\d{8})?$`)
	p.handedOn = regexp.MustCompile(`^((client)?metadata|messages//content//input|input//action|text/format/schema|` +
		`tools/(/tools/)?/(inputschema|inputexamples|(function/)?parameters)|` +
		`tools//functiondeclarations//(parameters|response)(jsonschema)?|` +
		`contents//parts//function(call/args|response/response)|` +
		`generationconfig/response(json)?schema|responseformat/jsonschema/schema|output(config/)?format/schema)$`)
	p.address = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	p.addressField = regexp.MustCompile(`ur[il]s?$`)
	p.textField = regexp.MustCompile(`^(text|content|input|output|thinking|arguments|description|instructions|system|` +
		`prompt|summary|title|reasoning|reasoningcontent|code|query|refusal)$`)
	p.fetchOption = regexp.MustCompile(`search|plugin|connector|datasource|mcp|browse|fetch|grounding`)
	p.fetchModel = regexp.MustCompile(`search|sonar|:online`)
	return p
})

// deepestRequest is how many values of a request may be in each other.
const deepestRequest = 200

// findFetch returns the field of a request, with its value, that makes the provider open an address.
// It returns "" for nothing, and an error for what is no JSON: what cannot be read may do so.
func findFetch(protocol agent.Protocol, body []byte) (found string, err error) {
	w := fetchWalk{in: json.NewDecoder(bytes.NewReader(body)), protocol: protocol}
	w.in.UseNumber()
	if err := w.walkValue(nil); err != nil {
		return "", err
	}
	if _, err := w.in.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("it has more than one value")
	}
	return w.found, nil
}

// refuseFetch returns the error for a request that makes the provider open an address.
func (c *call) refuseFetch() error {
	found, err := findFetch(c.via.Protocol, c.body)
	switch {
	case err != nil:
		return fmt.Errorf("pawl's gateway cannot read the request: %w", err)
	case found != "":
		return fmt.Errorf("at this safety level no request may make the model's provider open an address (%s): "+
			"switch such tools off in the agent's settings", found)
	}
	return nil
}

// fetchWalk goes through all of a request, so that a field which is there twice is seen twice.
type fetchWalk struct {
	in       *json.Decoder
	protocol agent.Protocol
	found    string // the first that was found
}

// walkValue looks at the value that is next. The fields that it is in are at, from the top.
func (w *fetchWalk) walkValue(at []string) error {
	if len(at) > deepestRequest {
		return errors.New("its values are too deep in each other")
	}
	t, err := w.in.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		for w.in.More() {
			name, err := w.in.Token()
			if err != nil {
				return err
			}
			field, _ := name.(string)
			if err := w.walkField(append(at, strings.ToLower(strings.ReplaceAll(field, "_", "")))); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for w.in.More() {
			if err := w.walkValue(append(at, "")); err != nil {
				return err
			}
		}
	default:
		w.judgeText(at, t)
		return nil
	}
	_, err = w.in.Token() // the end
	return err
}

// walkField looks at the value of the field that at ends with.
func (w *fetchWalk) walkField(at []string) error {
	name, isTop := at[len(at)-1], len(at) == 1
	isOption := isTop && fetchPatterns().fetchOption.MatchString(name)
	isGoogles := w.protocol == agent.Gemini && isOfTool(at) && name != "functiondeclarations"
	if !isOption && !isGoogles && !fetchPatterns().handedOn.MatchString(strings.Join(at, "/")) {
		return w.walkValue(at)
	}
	var value json.RawMessage
	err := w.in.Decode(&value)
	isFetch := isOption || isGoogles
	if isOff := slices.Contains([]string{"", "null", "false", "[]"}, string(value)); isFetch && !isOff {
		w.noteFirst(name, string(value))
	}
	return err
}

// judgeText looks at a text, or another single value.
func (w *fetchWalk) judgeText(at []string, value json.Token) {
	text, isText := value.(string)
	if !isText || text == "" || len(at) == 0 {
		return
	}
	name := at[len(at)-1]
	if name == "" && len(at) > 1 { // of a list
		name = at[len(at)-2]
	}
	isAddress := fetchPatterns().address.MatchString(text) && !fetchPatterns().textField.MatchString(name)
	isOpened := fetchPatterns().addressField.MatchString(name) && !strings.HasPrefix(text, "data:")
	isRemote := name == "type" && isOfTool(at) && !fetchPatterns().localTools.MatchString(text)
	isSearcher := name == "model" && len(at) == 1 && fetchPatterns().fetchModel.MatchString(strings.ToLower(text))
	if isAddress || isOpened || isRemote || isSearcher {
		w.noteFirst(name, text)
	}
}

// isOfTool reports whether a field is one of a tool that the request offers.
func isOfTool(at []string) bool {
	return strings.HasSuffix(strings.TrimSuffix(strings.Join(at[:len(at)-1], "/"), "/"), "tools")
}

func (w *fetchWalk) noteFirst(name, value string) {
	if w.found == "" {
		w.found = fmt.Sprintf("%s: %.100q", name, value)
	}
}
