package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	dp "better-compute/deviceplugin"
)

// program is one that is killed and started again.
type program struct {
	name        string
	kill, start func() error
}

func (c *cluster) programs(p *dp.Product) []program {
	part := func(name string) program {
		return program{name, func() error { return c.script("kill", name) }, func() error { return c.script("restart", name) }}
	}
	kubelet := part("kubelet")
	kubelet.start = func() error {
		was := time.Now()
		return dp.Eventually(dp.Soon, func() error {
			// Without containerd it gives up, and whoever supervises it starts it again.
			if c.script("kill", "kubelet", "0") != nil {
				if err := c.script("restart", "kubelet"); err != nil {
					return err
				}
			}
			return dp.MadeSocket(c, was)
		})
	}
	alive := func(ended func() bool, kill func() error) func() error {
		return func() error {
			if ended() {
				return errors.New("it had ended by itself")
			}
			return kill()
		}
	}
	bcd := program{"bcd", alive(p.NodeEnded, p.KillNode), p.StartNode}
	serve := program{"serve", alive(p.ServeEnded, p.KillServe), p.StartServe}
	return []program{bcd, serve, kubelet, part("containerd")}
}

// strike is one kill -9: when, after the round began, and for how long the program stays away.
type strike struct {
	program  int
	at, away time.Duration
}

const (
	strikesEach = 2 // of each program in a round
	strikesSpan = 42 * time.Second
	strikesAway = 3 * time.Second
)

// strikes are the kills of one round, by chance, in their order.
func strikes(r *rand.Rand, programs int) []strike {
	var all []strike
	for i := range programs * strikesEach {
		all = append(all, strike{i % programs, within(r, strikesSpan), within(r, strikesAway)})
	}
	slices.SortFunc(all, func(a, b strike) int { return cmp.Compare(a.at, b.at) })
	return all
}

func describe(all []strike, programs []program) string {
	var text strings.Builder
	for _, s := range all {
		fmt.Fprintf(&text, "  %.1f s %s for %.1f s", s.at.Seconds(), programs[s.program].name, s.away.Seconds())
	}
	return strings.TrimSpace(text.String())
}

// striker is at work until all strikes are done and everything runs again.
type striker struct {
	left int
	done chan error
}

func strikeAll(all []strike, programs []program) *striker {
	s := &striker{left: len(programs), done: make(chan error, len(programs))}
	start := time.Now()
	for i, p := range programs {
		go func() {
			var errs []error
			for _, one := range all {
				if one.program != i {
					continue
				}
				time.Sleep(time.Until(start.Add(one.at)))
				errs = append(errs, p.kill())
				time.Sleep(one.away)
				errs = append(errs, p.start())
			}
			if err := errors.Join(errs...); err != nil {
				s.done <- fmt.Errorf("%s: %w", p.name, err)
			} else {
				s.done <- nil
			}
		}()
	}
	return s
}

// over tells whether everything runs again.
func (s *striker) over() (bool, error) {
	for s.left > 0 {
		select {
		case err := <-s.done:
			s.left--
			if err != nil {
				return false, err
			}
		default:
			return false, nil
		}
	}
	return true, nil
}

// wait is for the end, whatever happened.
func (s *striker) wait() error {
	var errs []error
	for ; s.left > 0; s.left-- {
		errs = append(errs, <-s.done)
	}
	return errors.Join(errs...)
}

func within(r *rand.Rand, span time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(span)))
}
