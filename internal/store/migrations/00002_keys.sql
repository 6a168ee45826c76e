-- +goose Up
-- A client's key is its session's: two sessions may use the same one. A client
-- that repeats a prompt across the upgrade still gets its first answer.
UPDATE idempotency SET key = 'prompt:' || session || ':' || substr(key, 8) WHERE substr(key, 1, 7) = 'client:';
