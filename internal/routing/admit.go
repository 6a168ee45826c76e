// Package routing decides whether a prompt may be given to its provider while
// a usage limit is known to stand: one prompt tries a wall, the others wait or
// hear of it. The decision is pure; Gate keeps the clock of walls that open by
// themselves.
package routing

import (
	"time"

	"rouse"
)

// Decide is the table of admission.
//
//	a prompt                     wall open          half-open        being tried
//	a person's, fresh            tried              tried            refused
//	behind another turn          held               tried            held
//	launched                     refused            tried            refused
//	forced, or inside a turn     asked              asked            asked
//
// Of several walls in the way, the one that refuses counts, then the one that
// holds. walls may hold any; those that are closed or do not cover the model
// are passed over.
func Decide(now time.Time, b rouse.Bid, walls []rouse.Wall) rouse.Admission {
	out := rouse.Admission{Verdict: rouse.Admit}
	if b.Within {
		return out
	}
	for i := range walls {
		w := &walls[i]
		state := w.StateAt(now)
		if state == rouse.WallIsClosed || !w.Covers(b.Model) {
			continue
		}
		verdict := one(b, state, w.ProbeTurn != "" && w.ProbeTurn != b.TurnID)
		if rank(verdict) > rank(out.Verdict) {
			out.Verdict, out.Wall = verdict, w
		}
		if verdict == rouse.Admit && (w.ProbeTurn == "" || w.ProbeTurn == b.TurnID) {
			out.Probes = append(out.Probes, w.ID)
		}
	}
	if out.Verdict != rouse.Admit {
		out.Probes = nil
	}
	return out
}

// one decides about one wall.
func one(b rouse.Bid, state string, tried bool) rouse.AdmissionVerdict {
	switch {
	case b.Force:
		return rouse.Admit
	case tried && b.Behind:
		return rouse.Hold
	case tried:
		return rouse.Refuse
	case state == rouse.WallIsHalf:
		return rouse.Admit
	case b.Behind:
		return rouse.Hold
	case b.Unattended:
		return rouse.Refuse
	}
	return rouse.Admit
}

func rank(v rouse.AdmissionVerdict) int {
	switch v {
	case rouse.Refuse:
		return 2
	case rouse.Hold:
		return 1
	}
	return 0
}
