package daemon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"rouse/internal/crash"
)

var errGone = errors.New("the server is gone")

// tryCall is call for a server that may die meanwhile.
func (l *ledger) tryCall(c *child, method, path string, body, into any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(method, c.r.URL+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.r.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, errGone
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		return res, errGone
	}
	if into != nil && res.StatusCode < 300 {
		return res, json.Unmarshal(out, into)
	}
	return res, nil
}

func (l *ledger) prompt(c *child, session, model, text string) error {
	res, err := l.tryCall(c, "POST", "/session/"+session+"/prompt_async", map[string]any{"model": "drill/" + model,
		"parts": []map[string]string{{"type": "text", "text": text}}}, nil)
	if err != nil {
		l.unsure++
		return err
	}
	if res.StatusCode/100 == 2 {
		l.turns[res.Header.Get("X-Rouse-Turn")] = session
	}
	return nil
}

// tour passes every point of a prompt's, an abort's, an answer's and a
// rescue's route; it ends early with errGone.
func (l *ledger) tour(c *child, session string) error {
	for _, step := range []func() error{
		func() error { return l.prompt(c, session, "tool", "[[drill tokens=5]] one") },
		func() error { return l.prompt(c, session, "echo", "two") },
		func() error { return l.until(c, session, "idle") },
		func() error { return l.prompt(c, session, "permission", "three") },
		func() error { return l.until(c, session, "waiting") },
		func() error {
			var asked []struct{ ID string }
			if _, err := l.tryCall(c, "GET", "/permission", nil, &asked); err != nil || len(asked) == 0 {
				return err
			}
			_, err := l.tryCall(c, "POST", "/permission/"+asked[0].ID+"/reply", map[string]string{"reply": "once"}, nil)
			return err
		},
		func() error { return l.until(c, session, "idle") },
		func() error { return l.prompt(c, session, "hang", "four") },
		func() error { return l.prompt(c, session, "echo", "five") },
		func() error { _, err := l.tryCall(c, "POST", "/session/"+session+"/abort", nil, nil); return err },
		func() error { return l.until(c, session, "idle") },
		func() error { return l.prompt(c, session, "hang", "six") },
		func() error { return l.prompt(c, session, "echo", "seven") },
		func() error {
			_, err := l.tryCall(c, "POST", "/rouse/v1/sessions/"+session+"/rescue", map[string]any{"model": "drill/echo", "force": true}, nil)
			return err
		},
		func() error { return l.until(c, session, "idle") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (l *ledger) until(c *child, session, state string) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		var out struct {
			State  string
			Queued int
		}
		if _, err := l.tryCall(c, "GET", "/session/"+session, nil, &out); err != nil {
			return err
		}
		if out.State == state && (state != "idle" || out.Queued == 0) {
			return nil
		}
		<-time.After(5 * time.Millisecond)
	}
	return errors.New("the session did not become " + state)
}

// TestCrashPoints kills the server at every named point of every route, and
// once more during the start that follows, and holds it to its word.
func TestCrashPoints(t *testing.T) {
	points := crash.Points()
	for i, point := range points {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			data := filepath.Join(dir, "data")
			l := &ledger{turns: map[string]string{}}
			first := point
			if point == crash.RecoverBefore || point == crash.RecoverAfter {
				first = crash.FoldAfter + ":2" // something has to be left to recover
			}
			c := spawn(t, data, "ROUSE_CRASH_AT="+first)
			var s struct{ ID string }
			call(t, c.r, "POST", "/session?directory="+dir, map[string]any{}, &s)
			if err := l.tour(c, s.ID); !errors.Is(err, errGone) {
				t.Fatalf("the server passed %s and lives: %v", first, err)
			}
			_ = c.cmd.Wait()
			if first != point {
				if spawnDies(t, data, "ROUSE_CRASH_AT="+point) {
					http.DefaultClient.CloseIdleConnections()
				} else {
					t.Fatalf("the start passed %s and lives", point)
				}
			}
			c = spawn(t, data)
			if err := l.tour(c, s.ID); err != nil { // it works on as if nothing had been
				t.Error(err)
			}
			awaitIdle(t, c.r, 1)
			c.kill()
			http.DefaultClient.CloseIdleConnections()
			l.check(t, filepath.Join(data, "rouse.db"))
		})
	}
}
