package opencode

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// play makes the engine say and do random things for a while and gives the
// texts of the answer, part by part.
func play(tn *turn, rnd *rand.Rand, steps int) (texts []string) {
	text := ""
	flush := func() {
		if text != "" {
			texts = append(texts, text)
			text = ""
		}
	}
	for i := range steps {
		switch n := rnd.IntN(10); {
		case n < 8:
			piece := []string{"word ", "Ä€𝄞 ", "\"quoted\"\n", "x", strings.Repeat("long ", 50)}[rnd.IntN(5)]
			text += piece
			tn.say(piece)
		default:
			flush()
			id := fmt.Sprint("call", i)
			tn.send(engine.ToolStarted{CallID: id, Name: "bash", State: rouse.ToolRunning, Input: json.RawMessage(`{"command":"ls"}`)})
			tn.send(engine.ToolEnded{CallID: id, Title: "ls", Output: "out\n"})
		}
	}
	flush()
	return texts
}

// A reader that is cut off again and again and comes back with the last id it
// saw knows in the end what a reader knows that was never cut off: no event is
// missing, none comes twice, and every text is whole.
func TestReconnectAgainAndAgain(t *testing.T) {
	for seed := range uint64(6) {
		ring := []int{0, 16, 64}[seed%3]
		t.Run(fmt.Sprintf("seed %d ring %d", seed, ring), func(t *testing.T) {
			r := newRig(t, ring)
			rnd := rand.New(rand.NewPCG(seed, 1))
			id := r.create()
			whole := r.follow("/event")
			cut := r.follow("/event?directory=" + r.dir)
			r.prompt(id, "go")
			tn := r.next()
			done := make(chan []string, 1)
			go func() {
				said := play(tn, rand.New(rand.NewPCG(seed, 2)), 300)
				tn.finish()
				done <- said
			}()
			m, told, ids := texts{}, announced{}, map[int64]bool{}
			last := int64(0)
			take := func(f *received) bool {
				m.foldFor(t, told, []received{*f})
				if f.id == "" {
					return f.kind == "session.idle"
				}
				n, err := strconv.ParseInt(f.id, 10, 64)
				if err != nil || n <= last || ids[n] {
					t.Errorf("event %q after %d", f.id, last)
				}
				ids[n], last = true, n
				return f.kind == "session.idle"
			}
			for ended := false; !ended; {
				left := rnd.IntN(40) + 1
				cut.untilThat(func(f *received) bool { left--; ended = take(f); return ended || left == 0 })
				if !ended {
					cut.cancel()
					told = announced{}
					cut = r.follow("/event?directory="+r.dir, "Last-Event-ID", strconv.FormatInt(last, 10))
				}
			}
			want, steady := map[int64]bool{}, texts{}
			for _, f := range whole.until("session.idle") {
				steady.fold(t, []received{f})
				if f.id != "" {
					n, _ := strconv.ParseInt(f.id, 10, 64)
					want[n] = true
				}
			}
			for n := range want {
				// What was superseded before the reader came back is left out
				// when it is read from the store: the later event has it all.
				if !ids[n] && ring == 0 {
					t.Errorf("event %d is missing", n)
				}
			}
			said := <-done
			if len(said) == 0 {
				t.Fatal("nothing was said")
			}
			for part, text := range steady {
				if m[part] != text {
					t.Errorf("part %s: %q, want %q", part, m[part], text)
				}
			}
			for _, text := range said {
				if !hasText(steady, text) || !hasText(m, text) {
					t.Errorf("nobody has %.60q", text)
				}
			}
		})
	}
}

// A reader that takes nothing holds up neither the turn nor anybody else.
func TestSlowReader(t *testing.T) {
	r := newRig(t, 64)
	id := r.create()
	address := strings.TrimPrefix(r.server.URL, "http://")
	stuck, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	if _, err := fmt.Fprintf(stuck, "GET /event HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	s := r.follow("/event")
	r.prompt(id, "go")
	tn := r.next()
	piece := strings.Repeat("more than a socket's buffer takes ", 1000)
	for range 400 { // 13 MB
		tn.say(piece)
	}
	tn.finish()
	m := texts{}
	m.fold(t, s.until("session.idle"))
	if !hasText(m, strings.Repeat(piece, 400)) {
		t.Error("the quick reader has not everything")
	}
	// It reads now, and has everything, too.
	if err := stuck.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	buf := make([]byte, 1<<20)
	for !strings.Contains(all.String(), `"session.idle"`) {
		n, err := stuck.Read(buf)
		if err != nil {
			t.Fatalf("the slow reader was dropped after %d bytes: %v", all.Len(), err)
		}
		all.Write(buf[:n])
	}
	if all.Len() < 2*13_000_000 { // the deltas, and the whole at its end
		t.Errorf("the slow reader got %d bytes", all.Len())
	}
}
