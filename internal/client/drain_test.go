package client

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A server that takes the connection and does not answer is still there: who
// starts the next one after a drain must not be told that it is gone.
func TestGoneIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, stopped := time.Now(), 2*time.Minute
		c := &Client{base: "http://127.0.0.1:1", http: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if time.Since(began) < stopped {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return nil, errors.New("connection refused")
		})}}
		if err := c.Gone(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < stopped {
			t.Errorf("gone after %s, while it was silent", took)
		}
	})
}
