package session

import (
	"maps"
	"testing"

	"rouse"
	"rouse/internal/engine"
)

// told is a conversation that only says what it is.
type told struct {
	engine.Conversation
	info engine.Info
}

func (c told) Info() engine.Info { return c.info }

// TestKeepResume: the engine's id is kept under the engine's name, and one that
// it gave up is forgotten; ids of other engines stay.
func TestKeepResume(t *testing.T) {
	for _, c := range []struct {
		name, now    string
		before, want map[string]string
		writes       int
	}{
		{"the first", "a", nil, map[string]string{"x": "a"}, 1},
		{"the same", "a", map[string]string{"x": "a"}, map[string]string{"x": "a"}, 0},
		{"another", "b", map[string]string{"x": "a", "y": "c"}, map[string]string{"x": "b", "y": "c"}, 1},
		{"given up", "", map[string]string{"x": "a", "y": "c"}, map[string]string{"y": "c"}, 1},
		{"never had one", "", nil, nil, 0},
	} {
		before := maps.Clone(c.before)
		ln := &lane{sink: newSink(0), conv: told{info: engine.Info{EngineSession: c.now}},
			turn: newActive(&rouse.Turn{}, &rouse.Session{Engine: "x", Resume: c.before})}
		ln.keepResume()
		if got := ln.turn.session.Resume; !maps.Equal(got, c.want) || len(ln.turn.pending) != c.writes {
			t.Errorf("%s: %v, %d writes", c.name, got, len(ln.turn.pending))
		}
		if !maps.Equal(before, c.before) {
			t.Errorf("%s: the session's own was changed", c.name)
		}
	}
}
