package opencode

import "rouse"

// wireError is the error of a message and of session.error.
type wireError struct {
	Name string        `json:"name"`
	Data wireErrorData `json:"data"`
}

type wireErrorData struct {
	Message     string `json:"message"`
	StatusCode  int    `json:"statusCode,omitempty"`
	IsRetryable *bool  `json:"isRetryable,omitempty"`

	Reason     string      `json:"reason,omitempty"` // of an interruption
	Code       string      `json:"code,omitempty"`
	Class      rouse.Class `json:"class,omitempty"`
	ProviderID string      `json:"providerID,omitempty"`
	ModelID    string      `json:"modelID,omitempty"`
	ResetAt    int64       `json:"resetAt,omitempty"` // ms
	Attempts   int         `json:"attempts,omitempty"`
}

// renderMessageError names how a turn ended badly in this wire's own error
// types: cancelled and interrupted are aborts, a provider's refusal is an
// APIError, everything else an UnknownError (opencode 1.18.33 reports even a
// 401 as APIError).
func renderMessageError(e *rouse.MessageError) *wireError {
	if e == nil {
		return nil
	}
	switch e.State {
	case rouse.TurnCancelled:
		return &wireError{Name: "MessageAbortedError", Data: wireErrorData{Message: "Aborted"}}
	case rouse.TurnInterrupted:
		w := &wireError{Name: "MessageAbortedError", Data: wireErrorData{Message: "Interrupted", Reason: e.Reason}}
		if e.Reason != "" {
			w.Data.Message = "Interrupted: " + e.Reason
		}
		return w
	}
	f := e.Failure
	if f == nil {
		return &wireError{Name: "UnknownError", Data: wireErrorData{Message: "The turn failed without a reason.", Reason: e.Reason}}
	}
	w := &wireError{Name: "UnknownError", Data: wireErrorData{
		Message: f.Message, StatusCode: f.Status, Code: f.Code, Class: f.Class,
		ProviderID: f.Provider, ModelID: f.Model, ResetAt: millis(f.ResetAt),
		Attempts: f.Attempts,
	}}
	if w.Data.Message == "" {
		w.Data.Message = failureText(f)
	}
	if f.Status != 0 || f.Source == "provider_http" || f.Source == rouse.SourceWall || f.Source == "acp_error" {
		w.Name = "APIError"
		w.Data.IsRetryable = &f.Retryable
	}
	return w
}

// failureText is said of a failure whose own words were not fit to be shown.
func failureText(f *rouse.Failure) string {
	who := "The provider"
	if f.Provider != "" {
		who = "Provider " + f.Provider
	}
	switch f.Class {
	case rouse.ClassQuota:
		return who + " says that its usage limit is reached."
	case rouse.ClassRate:
		return who + " is limiting the rate of requests."
	case rouse.ClassBilling:
		return who + " refuses for a billing reason."
	case rouse.ClassAuth:
		return who + " refused the credentials."
	case rouse.ClassCapacity, rouse.ClassNetwork:
		return who + " cannot be used at the moment."
	case rouse.ClassContext:
		return "The conversation is too long for the model."
	case rouse.ClassModel:
		return who + " does not offer this model."
	default:
		return "The turn failed (" + f.Code + ")."
	}
}
