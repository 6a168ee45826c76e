package config

import "sync/atomic"

// Store holds the current configuration and replaces it as a whole. Readers
// take Get once per piece of work and keep what they got.
type Store struct {
	now  atomic.Pointer[Config]
	load func() (*Config, error)
}

// NewStore loads the first configuration; its error is load's.
func NewStore(load func() (*Config, error)) (*Store, error) {
	s := &Store{load: load}
	return s, s.Reload()
}

// Get gives the configuration as it is now; never change it.
func (s *Store) Get() *Config { return s.now.Load() }

// Reload reads everything again. On an error the old configuration stays.
func (s *Store) Reload() error {
	c, err := s.load()
	if err != nil {
		return err
	}
	s.now.Store(c)
	return nil
}
