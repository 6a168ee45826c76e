-- +goose Up
-- Rows keep their struct as JSON in body; columns are what SQL must see.
-- Times are integer milliseconds. One SQL text for SQLite and Postgres.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, directory TEXT NOT NULL, parent TEXT NOT NULL, title TEXT NOT NULL,
    created BIGINT NOT NULL, updated BIGINT NOT NULL, archived BIGINT NOT NULL,
    running TEXT NOT NULL, running_boot TEXT NOT NULL, queued INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX sessions_directory ON sessions (directory, updated DESC, id);
CREATE INDEX sessions_updated ON sessions (updated DESC, id);
CREATE INDEX sessions_parent ON sessions (parent);
CREATE INDEX sessions_busy ON sessions (id) WHERE running <> '' OR queued > 0;

CREATE TABLE turns (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, generation BIGINT NOT NULL, state TEXT NOT NULL,
    boot TEXT NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX turns_generation ON turns (session, generation);
CREATE INDEX turns_open ON turns (session, generation) WHERE state IN ('queued', 'running', 'waiting');

CREATE TABLE messages (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, created BIGINT NOT NULL, generation BIGINT NOT NULL,
    summary INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX messages_generation ON messages (session, generation, created, id);
CREATE INDEX messages_summary ON messages (session, generation) WHERE summary = 1;
CREATE INDEX messages_time ON messages (session, created, id);

-- Parts keep the order in which they were begun: n, not the id.
CREATE TABLE parts (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, message TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX parts_message ON parts (message, n);

-- Text of running parts, appended, folded into the part and deleted when it ends.
-- No index: the lane remembers its rows, and only a start after a crash scans.
CREATE TABLE chunks (
    n INTEGER PRIMARY KEY, part TEXT NOT NULL, body TEXT NOT NULL);

CREATE TABLE events (
    seq INTEGER PRIMARY KEY, at BIGINT NOT NULL, type TEXT NOT NULL, session TEXT NOT NULL,
    directory TEXT NOT NULL, turn TEXT NOT NULL, generation BIGINT NOT NULL, message TEXT NOT NULL,
    part TEXT NOT NULL, row_version BIGINT NOT NULL, data TEXT NOT NULL);
CREATE INDEX events_session ON events (session, seq);

CREATE TABLE requests (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX requests_session ON requests (session);
CREATE TABLE todos (session TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE grants (
    directory TEXT NOT NULL, permission TEXT NOT NULL, pattern TEXT NOT NULL, at BIGINT NOT NULL,
    PRIMARY KEY (directory, permission, pattern));

-- The only way in for prompts: what came with a key comes once.
CREATE TABLE idempotency (
    key TEXT PRIMARY KEY, hash TEXT NOT NULL, session TEXT NOT NULL, message TEXT NOT NULL,
    turn TEXT NOT NULL, generation BIGINT NOT NULL, intake TEXT NOT NULL, at BIGINT NOT NULL);
CREATE INDEX idempotency_at ON idempotency (at);

-- One lease per running server.
CREATE TABLE boots (
    id TEXT PRIMARY KEY, pid INTEGER NOT NULL, started BIGINT NOT NULL, renewed BIGINT NOT NULL, ended BIGINT NOT NULL);

CREATE TABLE incidents (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL, status TEXT NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL);
CREATE INDEX incidents_session ON incidents (session, status);
CREATE TABLE walls (
    id TEXT PRIMARY KEY, provider TEXT NOT NULL, account TEXT NOT NULL, state TEXT NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL);
CREATE TABLE notices (
    session TEXT NOT NULL, generation BIGINT NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (session, generation));
CREATE TABLE verdicts (
    session TEXT PRIMARY KEY, generation BIGINT NOT NULL, code TEXT NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL);

CREATE TABLE rescues (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, status TEXT NOT NULL, created BIGINT NOT NULL, body TEXT NOT NULL);
CREATE INDEX rescues_session ON rescues (session, created);
CREATE INDEX rescues_running ON rescues (id) WHERE status = 'running';
