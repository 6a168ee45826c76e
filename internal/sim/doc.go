// Package sim has no code of its own: its tests drive lanes, recovery and the
// watch from a seed, in virtual time, with a real database and the drill
// engine, through prompts, answers, aborts, pauses, rescues, refusing disks,
// restarts and crashes, and then check what must hold under any interleaving.
// A witness keeps what the engines said, so that every end in the log can be
// held against the words of its own generation.
//
//	make sim SEED=42     replays one failing seed
//	make mutants         breaks rules on purpose; each must be noticed
package sim
