package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/session"
	"rouse/internal/store"
)

// stubborn is an engine whose process ends only by force.
type stubborn struct{}

func (stubborn) Open(_ context.Context, _ engine.Spec, sink engine.Sink) (engine.Conversation, error) {
	return stubbornChat{sink}, nil
}

type stubbornChat struct{ engine.Sink }

// Prompt works until it is stopped; "limit" meets one before that.
func (c stubbornChat) Prompt(ctx context.Context, p rouse.Prompt) engine.Outcome {
	if p.Model.Model == "limit" {
		c.Update(ctx, engine.Update{Generation: p.Generation, Body: engine.Diagnostic{Terminal: true,
			Failure: rouse.Failure{Class: rouse.ClassQuota, Message: "used up", Source: rouse.SourceStderr}}})
	}
	<-ctx.Done()
	c.Update(context.WithoutCancel(ctx), engine.Update{Generation: p.Generation, Body: engine.Exit{Reason: "signal: killed", Killed: true}})
	return engine.Outcome{State: rouse.TurnCancelled}
}

func (stubbornChat) Answer(context.Context, string, rouse.Reply) error { return nil }
func (stubbornChat) Cancel(context.Context) error                      { return nil }
func (stubbornChat) Stop(context.Context) error                        { return nil }
func (stubbornChat) Probe(context.Context) error                       { return engine.ErrUnsupported }
func (stubbornChat) Info() engine.Info                                 { return engine.Info{} }
func (stubbornChat) Close() error                                      { return nil }

// Every rung of the ladder is an event, before and behind the end of a turn.
func TestRungs(t *testing.T) {
	for model, want := range map[string]string{
		"hang":  "requested, forced, killed signal: killed, cancelled",
		"limit": "failed, requested the turn has ended, its prompt is open, forced, killed signal: killed",
	} {
		t.Run(model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := openWith(t, t.TempDir(), "boo_1", func(d *session.Deps) {
					d.Engine = func(string) (engine.Engine, error) { return stubborn{}, nil }
				})
				defer w.stop()
				s := w.session()
				w.prompt(s.ID, model, "x")
				rest()
				if model == "hang" {
					if err := w.lanes.Abort(t.Context(), s.ID); err != nil {
						t.Fatal(err)
					}
				}
				w.wait(w.prompt(s.ID, "limit", "dispatched only when the engine is free"))
				if got := w.rungs(s.ID, 1); strings.Replace(got, "requested abort", "requested", 1) != want {
					t.Errorf("%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// rungs are the rungs of a generation's ladder and its end, in their order.
func (w *world) rungs(id string, generation uint64) string {
	w.t.Helper()
	events, _, err := w.store.Events(w.t.Context(), 0, store.EventFilter{Session: id}, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		switch {
		case e.Generation != generation:
		case e.Type == rouse.CancelStage:
			var f rouse.CancelFact
			if err := json.Unmarshal(e.Data, &f); err != nil {
				w.t.Fatal(err)
			}
			out = append(out, strings.TrimSpace(f.Stage+" "+f.Detail))
		case e.Type == rouse.TurnSettledEvent:
			var f rouse.SettledFact
			if err := json.Unmarshal(e.Data, &f); err != nil {
				w.t.Fatal(err)
			}
			out = append(out, string(f.State))
		}
	}
	return strings.Join(out, ", ")
}
