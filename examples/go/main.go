// A lease in Go, over HTTP, with nothing but the standard library (1.21 or later, Linux).
//
//	leasehold serve &
//	go run .              # take the lease, write three pages, give it back
//	go run . -pause 15s   # be stopped in the middle for longer than the lease lasts
//
// session.go and clock_linux.go are the part to copy. They promise that Guard gives leave to act only while nobody else can hold
// the lease, as long as this machine's clock runs at its usual rate. reports.go is the receiver: it refuses old tokens, whatever
// clocks do.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// oneWrite is the longest that one write may take: a guard is asked for so much.
const oneWrite = 500 * time.Millisecond

var (
	url      = flag.String("url", "http://127.0.0.1:7420", "the service")
	resource = flag.String("resource", "reports/nightly", "what to hold")
	file     = flag.String("file", "reports.json", "the receiver")
	ttl      = flag.Duration("ttl", 10*time.Second, "how long the session lives after a renewal")
	wait     = flag.Duration("wait", 30*time.Second, "how long to stand in the queue")
	pages    = flag.Int("pages", 3, "how many pages to write")
	work     = flag.Duration("work", 100*time.Millisecond, "time from page to page")
	pause    = flag.Duration("pause", 0, "stop this process for so long after the first page")
)

func main() {
	flag.Parse()
	token, lost, err := run(Reports{*file})
	if lost && *pause > 0 {
		err = writeTooLate(token, Reports{*file})
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "not done:", err)
		os.Exit(1)
	case lost:
		os.Exit(3)
	}
}

// run takes the lease, writes and gives it back. It says whether the lease was lost on the way.
func run(reports Reports) (token string, lost bool, err error) {
	session, err := Open(*url, fmt.Sprintf("example.go:%d", os.Getpid()), *ttl)
	if err != nil {
		return "", false, err
	}
	// Also tells the service that we have stopped, so that others need not wait for our time to end.
	defer session.Close()
	lease, err := session.Acquire(*resource, *wait)
	if err != nil {
		return "", false, err
	}
	fmt.Printf("acquired token %s\n", lease.Token)
	err = writePages(lease, reports)
	if errors.Is(err, ErrNoGuard) || errors.Is(err, ErrFenced) {
		fmt.Printf("lost token %s: %v\n", lease.Token, err)
		return lease.Token, true, nil
	}
	if err == nil {
		fmt.Printf("releasing token %s\n", lease.Token)
		lease.Release()
	}
	return lease.Token, false, err
}

func writePages(lease *Lease, reports Reports) error {
	if err := guarded(lease, reports.Seal); err != nil {
		return err
	}
	for number := 1; number <= *pages; number++ {
		if number == 2 && *pause > 0 {
			fmt.Printf("stopped token %s\n", lease.Token)
			if err := stopThisProcess(*pause); err != nil {
				return err
			}
		}
		if lease.IsWantedBack() {
			fmt.Printf("asked token %s\n", lease.Token)
			return nil
		}
		text := fmt.Sprintf("page %d", number)
		if err := guarded(lease, func(token int64) error { return reports.Write(token, text) }); err != nil {
			return err
		}
		fmt.Printf("wrote token %s %s\n", lease.Token, text)
		time.Sleep(*work)
	}
	return nil
}

// guarded does one piece of work with the token, if there is time for it.
func guarded(lease *Lease, act func(token int64) error) error {
	token, err := lease.Guard(oneWrite)
	if err != nil {
		return err
	}
	return act(token)
}

// stopThisProcess does what a debugger, a full machine or a closed laptop does: everything stands still, and nobody is told.
func stopThisProcess(length time.Duration) error {
	seconds := strconv.FormatFloat(length.Seconds(), 'f', 3, 64)
	waker := exec.Command("sh", "-c", `sleep "$1"; kill -CONT "$2"`, "sh", seconds, strconv.Itoa(os.Getpid()))
	if err := waker.Start(); err != nil {
		return err
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	return waker.Wait()
}

// writeTooLate does what a program must not do, to show who stops it: it writes with the token of a lease that is over.
func writeTooLate(old string, reports Reports) error {
	session, err := Open(*url, "example.go again", *ttl)
	if err != nil {
		return err
	}
	defer session.Close()
	lease, err := session.Acquire(*resource, *wait)
	if err != nil {
		return err
	}
	if err := guarded(lease, reports.Seal); err != nil {
		return err
	}
	fmt.Printf("sealed token %s\n", lease.Token)
	token, err := strconv.ParseInt(old, 10, 64)
	if err != nil {
		return err
	}
	if err := reports.Write(token, "too late"); !errors.Is(err, ErrFenced) {
		return fmt.Errorf("the write with token %s was taken (%v): the fence is broken", old, err)
	}
	fmt.Printf("fenced token %s\n", old)
	return nil
}
