package provider

import (
	"crypto/rand"
	"slices"
	"strings"
)

// fold is what both decoders keep of an answer: what was given out, the calls
// that are open, how it ended.
type fold struct {
	yield func(Delta)
	began bool
	sent  bool
	size  int // bytes of the event at hand
	calls []*openCall
	res   Result
	end   string // finish reason in our words; "" while unknown
}

// openCall is a tool call whose arguments still come.
type openCall struct {
	index     int // the provider's
	id, name  string
	announced bool
	done      bool
	input     strings.Builder
}

func (f *fold) begin() {
	if !f.began {
		f.began = true
		f.yield(Delta{Kind: Began, Bytes: f.size})
	}
}

func (f *fold) give(d Delta) {
	f.begin()
	f.sent = true
	d.Bytes = f.size
	f.size = 0
	f.yield(d)
}

func (f *fold) text(s string) {
	if s != "" {
		f.give(Delta{Kind: Text, Text: s})
	}
}

func (f *fold) reasoning(s string) {
	if s != "" {
		f.give(Delta{Kind: Reasoning, Text: s})
	}
}

// open adds a call; without an id of its own, or with one that another call of
// the answer has, it gets a new one.
func (f *fold) open(index int, id, name string) int {
	if id == "" || slices.ContainsFunc(f.calls, func(c *openCall) bool { return c.id == id }) {
		id = "call_" + rand.Text()[:20]
	}
	f.calls = append(f.calls, &openCall{index: index, id: id, name: name})
	return len(f.calls) - 1
}

// input adds a fragment of a call's arguments and announces the call once its
// name is known.
func (f *fold) input(i int, fragment string) {
	c := f.calls[i]
	if !c.announced && c.name != "" {
		c.announced = true
		f.give(Delta{Kind: ToolBegan, Call: i, ID: c.id, Name: c.name})
		if held := c.input.String(); held != "" {
			f.give(Delta{Kind: ToolInput, Call: i, ID: c.id, Name: c.name, Text: held})
		}
	}
	if fragment == "" {
		return
	}
	c.input.WriteString(fragment)
	if c.announced {
		f.give(Delta{Kind: ToolInput, Call: i, ID: c.id, Name: c.name, Text: fragment})
	}
}

// complete closes a call.
func (f *fold) complete(i int) {
	c := f.calls[i]
	if c.done || !c.announced {
		return
	}
	c.done = true
	in := c.input.String()
	if strings.TrimSpace(in) == "" {
		in = "{}"
	}
	f.res.Calls = append(f.res.Calls, Call{ID: c.id, Name: c.name, Input: in})
	f.give(Delta{Kind: ToolDone, Call: i, ID: c.id, Name: c.name, Text: in})
}

// finish closes what is open, if the answer itself came to its end.
func (f *fold) finish() Result {
	f.res.Finish = f.end
	if f.end == "" {
		return f.res
	}
	f.begin()
	for i := range f.calls {
		f.complete(i)
	}
	if len(f.res.Calls) > 0 && (f.end == FinishStop || f.end == FinishOther) {
		f.res.Finish = FinishTools // some servers say "stop" after calls
	}
	return f.res
}

func (f *fold) finished() bool { return f.end != "" }
func (f *fold) emitted() bool  { return f.sent }
