// Package session runs turns. Every session that has work has one lane: a
// goroutine with a mailbox, the only writer of its turns. Everybody else posts
// to it. A lane never waits for an engine: opening, prompting, answering and
// cancelling run in goroutines of their own and come back as messages.
//
//	queued ──► running ──► completed | failed | cancelled | interrupted
//	             ▲ │
//	             │ └─► waiting (permission, question) ──► running
//
// An end is a claim with a generation; the first one for the active turn wins
// and settles it once. What comes later is dropped.
package session

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/store"
)

// Models answers what prompts need to know of models.
type Models interface {
	// CheckModel says (Invalid, with the reason and the usable models) why a
	// model cannot be used; nil if it can.
	CheckModel(ref rouse.ModelRef) error
	// DefaultModel is the model of a session that names none; zero if there
	// is none to give.
	DefaultModel() rouse.ModelRef
}

// Agent is what intake needs to know of an agent.
type Agent struct {
	Name    string // canonical: "build" is answered as "builder"
	Primary bool   // may be a session's agent
	Model   rouse.ModelRef
	// Program: it is an agent program, whose models are its own. Another
	// provider's model, named for it, is meant as the program names it.
	Program bool
}

// named is a model as it is meant for the agent. One of another agent program is
// an Invalid error.
func (a Agent) named(m rouse.ModelRef) (rouse.ModelRef, error) {
	switch {
	case !a.Program || m.IsZero() || m.Provider == a.Model.Provider:
		return m, nil
	case strings.HasPrefix(m.Provider, rouse.AgentProvider):
		return m, rouse.FieldError("session: model", "model", "the agent is %s, and the model %s is of another agent: name one of them", a.Name, rouse.Clip(m.String(), 100))
	}
	return rouse.ModelRef{Provider: a.Model.Provider, Model: m.Provider + "/" + m.Model}, nil
}

// Agents finds agents by name; "" is the default.
type Agents interface {
	FindAgent(name string) (Agent, error) // Invalid with the known names
}

// Deps is what the lanes stand on; all of it is required except where said.
type Deps struct {
	Store  *store.Store
	Feed   *feed.Feed
	Models Models
	Agents Agents
	// Engine gives the engine of a session by name ("native", "drill", …).
	Engine func(name string) (engine.Engine, error)
	// EngineOf chooses the engine of a turn by its model where that decides;
	// "" is the session's own. Nil never does.
	EngineOf func(model rouse.ModelRef) string
	// DefaultEngine is the engine of new sessions; "" is "native".
	DefaultEngine string
	// Boot is this server's lease; Live tells whether a boot is alive.
	Boot string
	Live func(boot string) bool
	// Env is given to processes of a session; nil is none.
	Env func(sessionID string) []string
	Log *slog.Logger

	// Gate decides about walls; nil admits everything.
	Gate Gate
	// Judge says what is made of a session whose last turn ended so, with the
	// walls of its provider; nil says nothing.
	Judge func(now time.Time, t *rouse.Turn, walls []rouse.Wall) rouse.Verdict

	// MaxQueued bounds waiting prompts per session; default 256.
	MaxQueued int
	// MaxRunning bounds turns that run at once; 0 is no bound.
	MaxRunning int
	// Linger is how long an idle lane keeps its conversation; default 1 min.
	Linger time.Duration
	// Pace is how long a lane is patient; zero fields are DefaultPace's.
	Pace Pace
}

// Lanes is all lanes of this server.
type Lanes struct {
	Deps

	mu       sync.Mutex
	lanes    map[string]*lane
	stopping bool
	ctx      context.Context // of Serve: lanes live in it
	stop     context.CancelCauseFunc
	wg       sync.WaitGroup

	waits waits
	slots slots
	hold  hold
	check projects
}

// New makes lanes; nothing runs before Serve.
func New(d Deps) *Lanes {
	if d.MaxQueued == 0 {
		d.MaxQueued = 256
	}
	if d.Linger == 0 {
		d.Linger = time.Minute
	}
	d.Pace = d.Pace.orDefault()
	if d.DefaultEngine == "" {
		d.DefaultEngine = "native"
	}
	if d.Log == nil {
		d.Log = slog.Default()
	}
	if d.Gate == nil {
		d.Gate = noGate{}
	}
	if d.Live == nil {
		d.Live = func(boot string) bool { return boot == d.Boot }
	}
	l := &Lanes{Deps: d, lanes: map[string]*lane{}, slots: slots{free: d.MaxRunning, bounded: d.MaxRunning > 0}}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	l.waits.of = map[string][]chan struct{}{}
	l.hold.changed = make(chan struct{})
	return l
}

// errShutdown is the cause of turns that end with the server.
var errShutdown = rouse.Errorf(rouse.Unavailable, "session: stop", "the server is shutting down")

// Serve puts queued prompts on their way and runs until ctx ends; then running
// turns are interrupted, within a few seconds, and all lanes have ended when
// it returns. Recover must have run before.
func (l *Lanes) Serve(ctx context.Context) error {
	busy, err := l.Store.BusySessions(ctx)
	if err != nil && ctx.Err() == nil { // told to stop already: lanes must end all the same
		return rouse.Wrap("session: serve", err)
	}
	for _, id := range busy {
		l.post(id, kick{})
	}
	<-ctx.Done()
	l.mu.Lock()
	l.stopping = true
	l.mu.Unlock()
	l.stop(errShutdown)
	l.wg.Wait()
	return nil
}

// post hands a message to a session's lane, starting it if need be. It reports
// false when the server is stopping.
func (l *Lanes) post(sessionID string, m any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping {
		return false
	}
	ln := l.lanes[sessionID]
	if ln == nil {
		ln = newLane(l, sessionID)
		l.lanes[sessionID] = ln
		l.wg.Add(1)
		go ln.run()
	}
	ln.box.put(m)
	return true
}

// postExisting hands a message to a lane if there is one.
func (l *Lanes) postExisting(sessionID string, m any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.lanes[sessionID]
	if ln == nil || l.stopping {
		return false
	}
	ln.box.put(m)
	return true
}

// retire removes an idle lane; false if a message came meanwhile.
func (l *Lanes) retire(ln *lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ln.box.empty() {
		return false
	}
	delete(l.lanes, ln.id)
	return true
}

// Vitals of the session's running turn; ok is false when none runs here.
func (l *Lanes) Vitals(sessionID string) (v rouse.Vitals, ok bool) {
	l.mu.Lock()
	ln := l.lanes[sessionID]
	l.mu.Unlock()
	if ln == nil {
		return v, false
	}
	return ln.sink.vitals()
}
