package deviceplugin

import (
	"fmt"
	"time"
)

// Soon is within what everything comes that must come and that no requirement bounds: longer than the longest pause that the product takes
// between two tries (bcd's way to the control plane: 60 s, and 15 s for the try), and than Kubernetes' own, on a machine that is busy. What
// comes sooner is not waited for.
const Soon = 120 * time.Second

// Eventually tries until nil or until the time is over, and then says what was last wrong.
func Eventually(within time.Duration, try func() error) error {
	deadline := time.Now().Add(within)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Always tries for the whole time and gives the first error.
func Always(during time.Duration, try func() error) error {
	deadline := time.Now().Add(during)
	for time.Now().Before(deadline) {
		if err := try(); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// Expect is an error naming what was wanted and what was there.
func Expect[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, expected %v", what, got, want)
	}
	return nil
}
