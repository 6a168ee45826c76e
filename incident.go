package rouse

import (
	"strings"
	"time"
)

// Incident is what a person sees of a failure.
type Incident struct {
	ID             string    `json:"id"`
	SessionID      string    `json:"session"`
	TurnID         string    `json:"turn"`
	Generation     uint64    `json:"generation"`
	Kind           string    `json:"kind"` // one of the Code constants
	Source         string    `json:"source"`
	Provider       string    `json:"provider_id,omitempty"`
	Model          string    `json:"model_id,omitempty"`
	Message        string    `json:"message,omitempty"` // sanitized, bounded
	OccurredAt     time.Time `json:"occurred_at"`
	ResetAt        time.Time `json:"reset_at,omitzero"`
	RemediationURL string    `json:"remediation_url,omitempty"`
	// Status is open, resolved (a later turn completed) or superseded (a
	// newer incident of the session).
	Status string `json:"status"`
}

// The states of an incident.
const (
	IncidentOpen       = "open"
	IncidentResolved   = "resolved"   // a later turn of the session completed, or it was dismissed
	IncidentSuperseded = "superseded" // a newer incident of the session, or a fresh start, took its place
)

// IncidentOf is what a person has to see of a turn's end; ok is false for an
// end that is none: completed, or cancelled by somebody.
func IncidentOf(t *Turn, now time.Time) (i Incident, ok bool) {
	i = Incident{SessionID: t.SessionID, TurnID: t.ID, Generation: t.Generation, Provider: t.Model.Provider, Model: t.Model.Model,
		OccurredAt: now, Status: IncidentOpen, Source: "process"}
	switch {
	case t.State == TurnInterrupted:
		i.Kind, i.Message = CodeInterrupted, "the server stopped while this turn ran"
	case t.State == TurnFailed && t.Failure != nil:
		f := t.Failure
		i.Kind, i.Source, i.Message = f.Code, f.Source, Clip(f.Message, maxIncident)
		i.ResetAt, i.RemediationURL = f.ResetAt, f.RemediationURL
		if f.Provider != "" {
			i.Provider = f.Provider
			if f.Model != "" || !strings.HasPrefix(t.Model.Provider, AgentProvider) { // inside an agent it is the turn's
				i.Model = f.Model
			}
		}
	default:
		return Incident{}, false
	}
	if i.Kind == "" {
		i.Kind = CodeAgent
	}
	return i, true
}

// maxIncident bounds an incident's message, in bytes.
const maxIncident = 2000

// What can be done about an incident.
const (
	ActionResume   = "resume"        // the prompt once more, in the same session
	ActionFresh    = "fresh_start"   // the prompt in a new session
	ActionContinue = "continue_with" // the prompt once more, with another model
	ActionDismiss  = "dismiss"       // nothing; it is no longer shown
)

// Actions are what is offered: nothing for one that is closed, no resume for a
// turn that never started: it would not start again.
func (i *Incident) Actions() []string {
	switch {
	case i.Status != IncidentOpen:
		return []string{}
	case i.TurnID == "": // there is no prompt to repeat
		return []string{ActionDismiss}
	case i.Kind == CodeNever || i.Kind == CodeLaunch:
		return []string{ActionFresh, ActionContinue, ActionDismiss}
	default:
		return []string{ActionResume, ActionFresh, ActionContinue, ActionDismiss}
	}
}
