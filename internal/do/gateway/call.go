package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// call is one request on its way.
type call struct {
	g        *Gateway
	via      *way
	path     string
	request  *http.Request
	body     []byte
	release  func() // makes room for other bodies
	reader   reader
	question question
	flight   *flight
	reading  reading
}

// passOther serves what is no model call: once, uncounted.
func (c *call) passOther(w http.ResponseWriter) {
	resp, err := c.sendToEndpoint(c.request.Context(), c.via.endpointNow())
	if err != nil {
		writeRefusal(w, c.via.dialect, http.StatusBadGateway, "pawl's gateway cannot reach the provider: "+err.Error())
		return
	}
	defer func() { _ = resp.Body.Close() }()
	copyHeaders(w, resp)
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
		_, _ = w.Write(c.via.hideKeys(text))
		return
	}
	_, _ = io.Copy(w, io.LimitReader(resp.Body, maxAnswer))
}

// serveCall serves a model call.
func (c *call) serveCall(w http.ResponseWriter) {
	c.g.config.Alive()
	flight, over := c.g.account.admitCall(c.request.Context(), c.question, requestLength(c.body))
	if over != nil {
		c.refuseCall(w, over)
		return
	}
	if flight == nil { // the agent has ended
		return
	}
	c.flight = flight
	resp, err := c.askProvider()
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		c.copyAnswer(w, resp)
		return
	}
	if errors.Is(err, errSent) { // the provider may count it all the same
		c.landAnswer()
		return
	}
	c.g.account.dropCall(flight)
	var t *trouble
	if errors.As(err, &t) && c.question.isAgentStep() { // what the program says of it later has no time
		c.g.keepFlaw(&t.err, len(c.question.tools))
	}
	switch {
	case errors.As(err, &over):
		c.refuseCall(w, over)
	case t == nil: // the agent has ended
	case resp == nil:
		const unreachable = "pawl's gateway cannot reach the provider: "
		writeRefusal(w, c.via.dialect, http.StatusBadGateway, unreachable+t.err.Message)
		c.endForTrouble(t)
	default:
		defer func() { _ = resp.Body.Close() }()
		copyHeaders(w, resp)
		_, _ = io.Copy(w, resp.Body)
		c.endForTrouble(t)
	}
}

// refuseCall answers a call for which a limit has no room, and ends the attempt.
func (c *call) refuseCall(w http.ResponseWriter, over *over) {
	writeRefusal(w, c.via.dialect, http.StatusBadRequest, "pawl: "+over.why)
	c.g.config.End(over.ended, over.why)
}

// endForTrouble ends the attempt if the trouble lasts.
func (c *call) endForTrouble(t *trouble) {
	why := "the provider does not answer: " + t.Error()
	switch t.err.Status {
	case 0:
	case http.StatusUnauthorized:
		why = "the provider refuses the key: " + t.Error() + "; set another in " + c.via.KeyIn + " or gateway.keys"
	default:
		why = "the provider answers: " + t.Error()
	}
	if t.lasts {
		c.g.config.End(loop.EndedRetries, why)
	}
}

// errSent is the end of an agent that has asked and did not wait for the answer.
var errSent = errors.New("the agent has ended")

// askProvider asks the provider until it answers, or its trouble lasts: then the error
// is a [trouble], with the provider's answer if there was one. It is an [over]
// when there may be no further call.
func (c *call) askProvider() (*http.Response, error) {
	ctx := c.request.Context()
	var held time.Duration
	for try := 1; ; try++ {
		if over := c.g.account.countTry(c.flight); over != nil {
			return nil, over
		}
		to := c.via.endpointNow()
		resp, err := c.sendToEndpoint(ctx, to)
		if ctx.Err() != nil {
			return nil, errSent
		}
		t := c.troubleOf(resp, err)
		if t == nil {
			return resp, nil
		}
		calls := 1
		if resp == nil {
			c.g.account.takeTryBack(c.flight)
			calls = 0
		}
		wait := t.waitBeforeRetry(try, held)
		heard := t.err
		if t.lasts && c.via.leaveEndpoint(to) {
			c.g.emitEvent(agent.Event{Kind: agent.Retry, Attempt: try, Calls: calls, Error: &heard})
			if resp != nil {
				_ = resp.Body.Close()
			}
			try, held = 0, 0
			continue
		}
		if wait == 0 {
			c.g.emitEvent(agent.Event{Kind: agent.Error, Calls: calls, Error: &heard})
			return resp, t
		}
		held += wait
		c.g.emitEvent(agent.Event{Kind: agent.Retry, Attempt: try, Calls: calls, Error: &heard})
		if resp != nil {
			_ = resp.Body.Close()
		}
		if !c.g.config.Sleep(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// troubleOf an answer; nil when it is a good one. The beginning of
// an error's text is read, and put back.
func (c *call) troubleOf(resp *http.Response, err error) *trouble {
	if err != nil {
		return unreachedTrouble(err)
	}
	if resp.StatusCode < 300 {
		return nil
	}
	if resp.StatusCode < 400 {
		_ = resp.Body.Close()
		resp.StatusCode, resp.Header = http.StatusBadGateway, http.Header{}
		resp.Body = io.NopCloser(strings.NewReader("pawl's gateway follows no redirect"))
		const why = "the provider redirects to another address; correct its base URL"
		return &trouble{lasts: true, err: failure.APIError{Type: "redirect", Message: why}}
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	text = c.via.hideKeys(text)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return refusedBy(resp, text, time.Now())
}

// sendToEndpoint asks an endpoint of the provider once, with its key.
func (c *call) sendToEndpoint(ctx context.Context, to *agent.Route) (*http.Response, error) {
	target := to.Base + c.path
	query := url.Values{}
	for name, values := range c.request.URL.Query() {
		if isListed(name, parameters) {
			query[name] = values
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, c.request.Method, target, bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	r.Header = c.via.requestHeaders(c.request.Header)
	r.Header.Set("Accept-Encoding", "identity")
	for name, value := range to.Extra {
		r.Header.Set(name, value)
	}
	switch {
	case to.Key == "": // a server of one's own
	case to.Header == "Authorization":
		r.Header.Set("Authorization", "Bearer "+to.Key)
	default:
		r.Header.Set(to.Header, to.Key)
	}
	resp, err := c.g.config.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return decompressBody(resp)
}

// decompressBody undoes a compression that was not asked for.
func decompressBody(resp *http.Response) (*http.Response, error) {
	switch coding := resp.Header.Get("Content-Encoding"); coding {
	case "", "identity":
		return resp, nil
	case "gzip":
		unzipped, err := gzip.NewReader(resp.Body)
		if err != nil {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("the provider's answer says that it is compressed, and is not: %v", err)
		}
		resp.Body = struct {
			io.Reader
			io.Closer
		}{unzipped, resp.Body}
		resp.Header.Del("Content-Length")
		return resp, nil
	default:
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the provider's answer is compressed by %q, which was not asked for", coding)
	}
}

func copyHeaders(w http.ResponseWriter, resp *http.Response) {
	for key, values := range resp.Header {
		if isListed(key, answerHeaders) {
			w.Header()[key] = values
		}
	}
	w.WriteHeader(resp.StatusCode)
}

const pieceSize = 32 << 10

// copyAnswer passes an answer on as it comes, and counts it.
func (c *call) copyAnswer(w http.ResponseWriter, resp *http.Response) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	streams := kind == "text/event-stream"
	c.reading.page = kind == "text/html"
	copyHeaders(w, resp)
	out := http.NewResponseController(w)
	_ = out.Flush()
	c.body = nil
	c.release()
	buffer := make([]byte, pieceSize)
	var split lines
	var all []byte // of an answer that is no stream
	var passed int64
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 {
			c.g.config.Alive()
			_, failed := w.Write(buffer[:n])
			_ = out.Flush()
			passed += int64(n)
			if streams {
				split.feedLines(buffer[:n], c.readLine)
			} else if len(all) < longestLine {
				all = append(all, buffer[:n]...)
			}
			if failed != nil { // the agent has ended
				c.landAnswer()
				return
			}
			if over := c.g.account.checkProgress(c.flight, &c.reading); over != nil && streams {
				c.cutAnswer(w, over)
				return
			}
		}
		if err == nil && passed < maxAnswer {
			continue
		}
		if !streams {
			c.reader.readWhole(all, &c.reading)
		}
		c.landAnswer()
		if err != nil && errors.Is(err, io.EOF) {
			return
		}
		panic(http.ErrAbortHandler) // the agent sees the same broken answer
	}
}

// readLine takes a line of a stream.
func (c *call) readLine(b []byte) {
	if d := eventData(b); len(d) > 0 {
		c.reader.readEvent(d, &c.reading)
	}
}

// cutAnswer ends an answer in the middle, with an error in the protocol's form.
func (c *call) cutAnswer(w http.ResponseWriter, over *over) {
	_, _ = fmt.Fprintf(w, "\n\nevent: error\ndata: %s\n\n", c.via.refusalText(http.StatusBadRequest, "pawl: "+over.why))
	_ = http.NewResponseController(w).Flush()
	c.landAnswer()
	c.g.config.End(over.ended, over.why)
}

// landAnswer counts the call, and reports a flaw of its answer.
func (c *call) landAnswer() {
	r := &c.reading
	u := c.g.account.bookAnsweredCall(c.flight, r)
	seen := agent.Event{Kind: agent.UsageSeen, Calls: 1, Model: u.model, Usage: u.usage.Usage}
	if u.priced {
		seen.Cost = u.total
	}
	c.g.emitEvent(seen)
	left := c.request.Context().Err() != nil
	hadLastWord := left && r.stop != ""
	r.done = r.done || hadLastWord // if not the stream's end
	if left && !r.done {
		return // the agent did not wait for the end
	}
	flaw := r.flawInAnswer(c.question.isAgentStep())
	if c.question.isAgentStep() {
		c.g.keepFlaw(flaw, len(c.question.tools))
	}
	if flaw != nil {
		c.g.emitEvent(agent.Event{Kind: agent.Retry, Error: flaw})
	}
}

// keepFlaw keeps what is wrong with an answer to a call that offered tools of that many bytes. One
// that offers much less than others is beside the work: it has a memory written, or the like.
func (g *Gateway) keepFlaw(flaw *failure.APIError, tools int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tools = max(g.tools, tools)
	if 2*tools > g.tools {
		g.flaw = flaw
	}
}

func (g *Gateway) emitEvent(e agent.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.Emit(e)
}
