package session_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/session"
)

// meter watches how many requests a provider has at once.
type meter struct {
	mu        sync.Mutex
	inFlight  int
	limitedAt bool // the provider refuses
	class     rouse.Class
	reset     time.Duration
}

// Prompts, launches, queues, aborts, closes by hand, restarts and a provider
// whose limit comes and goes, in any order: in the end every prompt that was
// accepted has ended once, and no wall is stuck.
func TestWallsInAnyOrder(t *testing.T) {
	seeds := 16
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { wallsInAnyOrder(t, rand.New(rand.NewPCG(uint64(seed), 7))) })
		})
	}
}

// wait lets virtual time pass.
func wait(d time.Duration) { <-time.After(d) }

func wallsInAnyOrder(t *testing.T, r *rand.Rand) {
	m := &meter{}
	provider := &scripted{hold: map[string]chan struct{}{}}
	pace := rand.New(rand.NewPCG(r.Uint64(), 7)) // the provider's own, under its lock
	provider.set(func(string) engine.Outcome {
		m.mu.Lock()
		m.inFlight++
		refuse, class, reset := m.limitedAt, m.class, m.reset
		takes := time.Duration(pace.IntN(3000)) * time.Millisecond
		m.mu.Unlock()
		<-time.After(takes) // virtual
		m.mu.Lock()
		m.inFlight--
		m.mu.Unlock()
		if refuse {
			return limited(class, reset)("")
		}
		return fine("")
	})
	dir := t.TempDir()
	w := openWalled(t, dir, "boo_0", provider)
	defer func() { w.stop() }()
	var sessions []string
	for range 4 {
		sessions = append(sessions, w.session().ID)
	}
	var accepted []session.Accepted
	for step := range 60 {
		id := sessions[r.IntN(len(sessions))]
		switch r.IntN(12) {
		case 0, 1, 2:
			accepted = append(accepted, w.say(id, fmt.Sprint("p", step), ""))
		case 3, 4:
			accepted = append(accepted, w.say(id, fmt.Sprint("l", step), "launch"))
		case 5:
			accepted = append(accepted, w.say(id, fmt.Sprint("f", step), "force"))
		case 6, 7:
			m.mu.Lock()
			m.limitedAt = !m.limitedAt
			m.class = []rouse.Class{rouse.ClassQuota, rouse.ClassBilling, rouse.ClassQuota}[r.IntN(3)]
			m.reset = []time.Duration{0, 30 * time.Second, time.Hour}[r.IntN(3)]
			m.mu.Unlock()
		case 8, 9:
			wait(time.Duration(r.IntN(3600)) * time.Second)
		case 10:
			if err := w.lanes.Abort(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		case 11:
			if r.IntN(3) == 0 {
				w.stop()
				w = openWalled(t, dir, fmt.Sprint("boo_", step+1), provider)
			}
		}
		if r.IntN(3) == 0 {
			wait(time.Duration(r.IntN(5000)) * time.Millisecond)
		}
	}
	m.mu.Lock()
	m.limitedAt = false
	m.mu.Unlock()
	wait(3 * time.Hour) // every wall but billing has its try by then
	rest()
	walls, err := w.store.Walls(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, wall := range walls {
		if wall.ProbeTurn != "" {
			t.Errorf("a try that nobody makes: %+v", wall)
		}
		if _, err := w.lanes.CloseWall(t.Context(), wall.ID); err != nil {
			t.Fatal(err)
		}
	}
	wait(time.Hour)
	rest()
	for _, acc := range accepted {
		if turn, err := w.store.Turn(t.Context(), acc.TurnID); err != nil || !turn.State.Settled() {
			t.Errorf("turn %s is %v %v", acc.TurnID, turn, err)
		}
	}
	settled := 0
	for _, kind := range w.events("turn.") {
		if kind == string(rouse.TurnSettledEvent) {
			settled++
		}
	}
	if settled != len(accepted) {
		t.Errorf("%d ends of %d prompts", settled, len(accepted))
	}
	for _, id := range sessions {
		w.nothingOpen(id)
	}
	if m.inFlight != 0 {
		t.Errorf("%d requests still run", m.inFlight)
	}
}
