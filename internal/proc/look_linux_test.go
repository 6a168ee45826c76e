package proc_test

import (
	"os"
	"testing"

	"rouse/internal/proc"
)

func TestLook(t *testing.T) {
	if alive, rss := proc.Look(os.Getpid()); !alive || rss < 1<<20 {
		t.Errorf("this process: %v %d", alive, rss)
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if alive, rss := proc.Look(pid); alive || rss != 0 {
			t.Errorf("%d: %v %d", pid, alive, rss)
		}
	}
}
