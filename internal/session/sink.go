package session

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// The bounds of what an engine may be ahead of its lane.
const (
	sinkBytes  = 4 << 20
	sinkItems  = 4096
	textJoined = 16 << 10 // pieces of text are joined up to this size
)

// sink is the queue between an engine's reader and the lane. The reader stamps
// the vitals here, so a slow lane never fakes silence.
type sink struct {
	bell chan struct{}

	mu     sync.Mutex
	room   chan struct{} // closed when there is room again; nil when there is
	items  []engine.Update
	bytes  int
	v      rouse.Vitals
	tools  []rouse.OpenTool // top-level calls that run; the newest is shown
	grace  time.Duration    // how long an overdue retry is believed in
	pid    int              // of the conversation's process
	active bool
	closed bool
}

func newSink(grace time.Duration) *sink { return &sink{bell: make(chan struct{}, 1), grace: grace} }

var _ engine.Sink = (*sink)(nil)

// Update stamps vitals and queues the update, waiting for room if the lane is
// far behind.
func (s *sink) Update(ctx context.Context, u engine.Update) {
	if u.At.IsZero() {
		u.At = time.Now()
	}
	s.mu.Lock()
	s.stamp(&u)
	for s.room != nil && !s.closed {
		room := s.room
		s.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
	}
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.push(u)
	s.mu.Unlock()
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// push joins text to a waiting piece or appends.
func (s *sink) push(u engine.Update) {
	size := sizeOf(u)
	s.bytes += size
	if n := len(s.items); n > 0 && s.items[n-1].Generation == u.Generation && s.items[n-1].Genuine == u.Genuine {
		switch next := u.Body.(type) {
		case engine.Text:
			if last, ok := s.items[n-1].Body.(engine.Text); ok && len(last.Text) < textJoined {
				s.items[n-1].Body = engine.Text{Text: last.Text + next.Text}
				return
			}
		case engine.Reasoning:
			if last, ok := s.items[n-1].Body.(engine.Reasoning); ok && len(last.Text) < textJoined && next.Metadata == nil {
				last.Text += next.Text
				s.items[n-1].Body = last
				return
			}
		}
	}
	s.items = append(s.items, u)
	if s.bytes > sinkBytes || len(s.items) > sinkItems {
		s.room = make(chan struct{})
	}
}

func sizeOf(u engine.Update) int {
	switch b := u.Body.(type) {
	case engine.Text:
		return len(b.Text)
	case engine.Reasoning:
		return len(b.Text)
	case engine.ToolEnded:
		return len(b.Output) + len(b.Metadata)
	case engine.ToolProgress:
		return len(b.Metadata)
	default:
		return 64
	}
}

// take gives all waiting updates.
func (s *sink) take() []engine.Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := s.items
	s.items, s.bytes = nil, 0
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
	return items
}

// close lets go of a blocked reader; later updates are dropped.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// begin starts the vitals of a turn.
func (s *sink) begin(t *rouse.Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.tools = true, nil
	s.v = rouse.Vitals{TurnID: t.ID, Generation: t.Generation, Epoch: t.Epoch, Started: t.Started, Clock: time.Now()}
}

// end stops them.
func (s *sink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = false
}

func (s *sink) vitals() (rouse.Vitals, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.v, s.active
}

// mark changes the vitals from the lane's side.
func (s *sink) mark(change func(*rouse.Vitals)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.v)
}

// stamp counts an update of the active turn.
func (s *sink) stamp(u *engine.Update) {
	if !s.active || u.Generation != s.v.Generation {
		return
	}
	v := &s.v
	v.Counters.Events++
	if u.Bytes > 0 || u.Genuine {
		v.LastByte = u.At
	}
	switch b := u.Body.(type) {
	case engine.Text:
		v.Counters.TextBytes += int64(len(b.Text))
	case engine.Reasoning:
		v.Counters.TextBytes += int64(len(b.Text))
	case engine.StepEnded:
		v.Counters.OutputTokens += b.Usage.Tokens.Output
	case engine.ToolStarted:
		if b.Parent == "" && b.State == rouse.ToolRunning {
			s.toolRuns(rouse.OpenTool{ID: b.CallID, Name: b.Name, Title: shownTitle(b), Since: u.At})
		}
	case engine.ToolEnded:
		s.toolEnded(func(t rouse.OpenTool) bool { return t.ID == b.CallID })
	case engine.Retry:
		v.StandRetry(u.At, s.grace)
		v.Retry = &rouse.RetryFact{Attempt: b.Attempt, Next: b.Next, Class: b.Class, Message: b.Message}
		v.RetrySince = u.At
		if b.Broken {
			s.toolEnded(func(rouse.OpenTool) bool { return true })
		}
	case engine.Resumed:
		v.StandRetry(u.At, s.grace)
		v.Retry = nil
	case engine.Diagnostic:
		s.diagnosed(b)
	}
	if !u.Genuine {
		return
	}
	v.Counters.Genuine++
	v.Epoch++
	v.LastGenuine, v.Clock, v.Stood = u.At, u.At, 0
	if v.FirstGenuine == "" {
		v.FirstGenuine = kindOf(u.Body)
	}
}

// shownTitle is a call's title, or "" where it is the command itself: agents
// name a shell call by what it runs, and arguments are nobody's to see.
func shownTitle(b engine.ToolStarted) string {
	var in struct {
		Command json.RawMessage `json:"command"`
	}
	if b.Title == "" || len(b.Input) > 64<<10 || json.Unmarshal(b.Input, &in) != nil || in.Command == nil {
		return b.Title
	}
	var line string
	if json.Unmarshal(in.Command, &line) != nil {
		var words []string // an argument vector
		if json.Unmarshal(in.Command, &words) != nil || len(words) == 0 {
			return b.Title
		}
		line = words[len(words)-1]
	}
	line, title := strings.TrimSpace(line), strings.Trim(b.Title, "` \n")
	if line == "" || strings.Contains(title, line) || strings.Contains(line, strings.TrimSuffix(title, "…")) {
		return ""
	}
	return b.Title
}

// toolRuns notes a call that runs; the same call may be told again.
func (s *sink) toolRuns(t rouse.OpenTool) {
	for i := range s.tools {
		if s.tools[i].ID == t.ID {
			t.Since = s.tools[i].Since
			s.tools[i] = t
			s.showTool()
			return
		}
	}
	s.tools = append(s.tools, t)
	s.showTool()
}

func (s *sink) toolEnded(gone func(rouse.OpenTool) bool) {
	s.tools = slices.DeleteFunc(s.tools, gone)
	s.showTool()
}

func (s *sink) showTool() {
	s.v.OpenTool = nil
	if n := len(s.tools); n > 0 {
		newest := s.tools[n-1]
		s.v.OpenTool = &newest
	}
}

// diagnosed keeps what the engine's diagnostics brought, by class and reason.
func (s *sink) diagnosed(d engine.Diagnostic) {
	next := rouse.StderrFact{}
	if s.v.Stderr != nil {
		next = *s.v.Stderr
	}
	if d.Reason != "" {
		next.Ignored = maps.Clone(next.Ignored)
		if next.Ignored == nil {
			next.Ignored = map[string]int{}
		}
		next.Ignored[d.Reason] += max(1, d.Count)
	} else if d.Failure.Class != "" {
		next.LastClass = d.Failure.Class
	}
	s.v.Stderr = &next
}

func kindOf(b engine.Body) string {
	switch b.(type) {
	case engine.Text:
		return "text"
	case engine.Reasoning:
		return "reasoning"
	case engine.ToolStarted, engine.ToolProgress, engine.ToolEnded:
		return "tool"
	case engine.Plan:
		return "plan"
	case engine.PermissionAsked:
		return "permission"
	case engine.QuestionAsked:
		return "question"
	default:
		return "other"
	}
}
