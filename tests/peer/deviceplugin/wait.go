package deviceplugin

import (
	"fmt"
	"time"
)

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
