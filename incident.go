package rouse

import "time"

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

// Wall is a limit that stands in the way of a provider's account.
type Wall struct {
	ID         string    `json:"id"`
	Provider   string    `json:"provider"`
	Account    string    `json:"account"`
	LimitName  string    `json:"limit_name,omitempty"`
	Model      string    `json:"model,omitempty"` // empty: the whole account
	Class      Class     `json:"class"`
	State      string    `json:"state"` // open, half_open, closed
	OpenedAt   time.Time `json:"opened_at"`
	ResetAt    time.Time `json:"reset_at,omitzero"`
	Confidence string    `json:"confidence,omitempty"`
	Source     string    `json:"source,omitempty"`
}
