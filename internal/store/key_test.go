package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"rouse"
	"rouse/internal/store"
)

// started accepts a prompt under a key.
func started(t *testing.T, s *store.Store, sessionID, key string) store.Started {
	t.Helper()
	now := time.Now()
	id := rouse.NewID(rouse.MessagePrefix, now)
	out, err := s.StartTurn(context.Background(), store.Start{SessionID: sessionID, Key: key, Hash: "h", Live: func(string) bool { return true },
		Message: rouse.Message{ID: id, SessionID: sessionID, Role: rouse.User},
		Turn:    &rouse.Turn{ID: rouse.NewID(rouse.TurnPrefix, now), SessionID: sessionID, UserMessage: id}}, rouse.DecideIntake)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A client's key of before the upgrade is its session's afterwards, also one
// that looks like a new one; the verbs' own keys stay as they are.
func TestOldKeysAreTheirSessions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	var one, two string
	before := map[string]store.Started{}
	t.Run("before", func(t *testing.T) {
		store.OldSchema(t, "00001_house.sql")
		s, _ := open(t, path)
		one, two = newSession(t, s, "/d").ID, newSession(t, s, "/d").ID
		for _, key := range []string{"client:k1", "client:prompt:x", "wake:w", "rescue:r:prompt", "message:m", "launch::k:prompt"} {
			before[key] = started(t, s, one, key)
		}
	})
	s, _ := open(t, path)
	for was, is := range map[string]string{"client:k1": "prompt:" + one + ":k1", "client:prompt:x": "prompt:" + one + ":prompt:x",
		"wake:w": "wake:w", "rescue:r:prompt": "rescue:r:prompt", "message:m": "message:m", "launch::k:prompt": "launch::k:prompt"} {
		if out := started(t, s, one, is); !out.Replayed || out.TurnID != before[was].TurnID {
			t.Errorf("%s, now %s: %+v, was %+v", was, is, out, before[was])
		}
	}
	if out := started(t, s, two, "prompt:"+two+":k1"); out.Replayed {
		t.Errorf("another session's: %+v", out)
	}
}
