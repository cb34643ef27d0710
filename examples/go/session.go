package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Refused is the service's no: asking the same again is no use.
type Refused struct{ Code, Message string }

func (r *Refused) Error() string { return r.Code + ": " + r.Message }

// NoAnswer means that nothing came back, or nothing that settles it. What was asked for may have happened, or may happen yet.
type NoAnswer struct{ Why error }

func (n *NoAnswer) Error() string { return "no answer: " + n.Why.Error() }

// ErrNoGuard means that it is not certain that the lease is ours for as long as the work takes.
var ErrNoGuard = errors.New("no guard")

// Session is renewed by a goroutine of its own until it is closed. One renewal keeps all of its leases.
type Session struct {
	url, id, key       string
	ttl, usable, every time.Duration
	oneAtATime         sync.Mutex // renewals, so that an older answer never replaces a newer one
	closed             chan struct{}

	mutex sync.Mutex      // for what follows
	held  map[string]held // as the last renewal's answer had them
	over  error           // why the session is over, once it is
	last  int64           // the number of the last call
	open  map[int64]bool  // calls whose outcome is not known
}

type held struct {
	Resource         string `json:"resource"`
	Token            string `json:"token"`
	FenceToken       string `json:"fence_token"`
	ReleaseRequested bool   `json:"release_requested"`
	deadline         time.Duration
}

// numbered is a call with a number: sent again with it, it is done once and answered the same.
type numbered struct {
	path   string
	number int64
	asked  fields
}

// answered is what came of an acquire or a cancel.
type answered struct {
	Outcome string `json:"outcome"`
	Leases  []held `json:"leases"`
}

type fields map[string]any

// Open begins a session. The service says how often to renew it, and how much of the ttl to leave unused.
func Open(url, label string, ttl time.Duration) (*Session, error) {
	var opened struct {
		ID         string `json:"session"`
		Key        string `json:"session_key"`
		TTL        int64  `json:"ttl_ms"`
		Margin     *int64 `json:"margin_ms"`
		RenewEvery int64  `json:"renew_every_ms"`
	}
	s := &Session{url: url, closed: make(chan struct{}), open: make(map[int64]bool)}
	if err := s.call("sessions", 5*time.Second, fields{"label": label, "ttl_ms": ttl.Milliseconds()}, &opened); err != nil {
		return nil, err
	}
	if opened.Margin == nil {
		return nil, &Refused{"no-margin", fmt.Sprintf("a ttl of %v is too short for the clocks of this service", ttl)}
	}
	s.key, s.id = opened.Key, opened.ID
	s.ttl = time.Duration(opened.TTL) * time.Millisecond
	s.usable = time.Duration(opened.TTL-*opened.Margin) * time.Millisecond
	s.every = time.Duration(opened.RenewEvery) * time.Millisecond
	go s.keepRenewing()
	return s, nil
}

// renew sends one renewal. Whatever its answer lists is ours until `usable` after it was *sent*.
func (s *Session) renew() error {
	s.oneAtATime.Lock()
	defer s.oneAtATime.Unlock()
	sent := now()
	var answer struct {
		Leases []held `json:"leases"`
	}
	if err := s.call("sessions/"+s.id+"/renew", s.every/2, fields{}, &answer); err != nil {
		return err
	}
	all := make(map[string]held)
	for _, lease := range answer.Leases {
		lease.deadline = sent + s.usable
		all[lease.Token] = lease
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.held = all
	return nil
}

func (s *Session) keepRenewing() {
	for pause := s.every; ; {
		select {
		case <-s.closed:
			return
		case <-time.After(pause):
		}
		var refused *Refused
		switch err := s.renew(); {
		case err == nil:
			pause = s.every
		case errors.As(err, &refused):
			s.mutex.Lock()
			s.over = err
			s.mutex.Unlock()
			return
		default:
			pause = s.every / 4 // try again soon; the deadline stays where it is
		}
	}
}

// Acquire waits in the queue, while the goroutine keeps the session alive.
func (s *Session) Acquire(resource string, wait time.Duration) (*Lease, error) {
	call := s.begin("leases/acquire", fields{"resource": resource, "wait_ms": wait.Milliseconds()})
	end := now() + wait + s.ttl
	var granted answered
	for granted.Outcome != "granted" { // queued: it waits still, and the same call goes on with the wait
		err := s.say(call, min(wait, time.Minute)+5*time.Second, &granted)
		var refused *Refused
		if errors.As(err, &refused) {
			return nil, err
		}
		if err != nil && now() >= end {
			s.giveUp(call)
			return nil, err
		}
		if err != nil {
			time.Sleep(s.every / 4)
		}
	}
	token := granted.Leases[0].Token
	for { // what counts is that a renewal lists it. That also sets the first deadline.
		err := s.renew()
		var refused *Refused
		if err == nil {
			break
		}
		if errors.As(err, &refused) || now() >= end {
			return nil, err
		}
		time.Sleep(s.every / 4)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, listed := s.held[token]; !listed {
		return nil, &Refused{"ended", resource + " was granted and taken away at once"}
	}
	return &Lease{session: s, Resource: resource, Token: token}, nil
}

// giveUp cancels an acquire by its number: then it is never granted, even if it has yet to arrive.
func (s *Session) giveUp(call *numbered) {
	asked := fields{"acquire_number": strconv.FormatInt(call.number, 10)}
	cancel := s.begin("leases/cancel", asked)
	for end := now() + s.ttl; now() < end; time.Sleep(s.every / 4) {
		var came answered
		err := s.say(cancel, s.every, &came)
		var refused *Refused
		if err != nil && !errors.As(err, &refused) {
			continue
		}
		for _, lease := range came.Leases {
			(&Lease{session: s, Resource: lease.Resource, Token: lease.Token}).Release()
		}
		s.settle(call)
		return
	}
}

// begin gives a call the next number.
func (s *Session) begin(path string, asked fields) *numbered {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last++
	s.open[s.last] = true
	asked["number"] = strconv.FormatInt(s.last, 10)
	return &numbered{path, s.last, asked}
}

// say sends a call, the first time or again. Once it is answered its number is settled.
func (s *Session) say(call *numbered, limit time.Duration, answer *answered) error {
	s.mutex.Lock()
	settled := call.number
	for number := range s.open {
		settled = min(settled, number)
	}
	s.mutex.Unlock()
	call.asked["settled"] = strconv.FormatInt(settled, 10)
	err := s.call(call.path, limit, call.asked, answer)
	var refused *Refused
	if errors.As(err, &refused) || (err == nil && answer.Outcome != "queued") {
		s.settle(call)
	}
	return err
}

func (s *Session) settle(call *numbered) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.open, call.number)
}

// Close gives everything back. Not being heard is no harm: then it ends by itself after the ttl.
func (s *Session) Close() {
	close(s.closed)
	_ = s.call("sessions/"+s.id+"/close", 5*time.Second, fields{}, nil)
}

func (s *Session) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Lease is one resource, held. It belongs to one goroutine.
type Lease struct {
	session         *Session
	Resource, Token string
	givenBack       bool
}

// Guard is leave to act for so long, from now on: it gives the token to send along. Ask again for the next piece of work.
func (l *Lease) Guard(length time.Duration) (int64, error) {
	l.session.mutex.Lock()
	lease, listed := l.session.held[l.Token]
	over := l.session.over
	l.session.mutex.Unlock()
	left := lease.deadline - now()
	switch {
	case l.givenBack || l.session.isClosed():
		return 0, fmt.Errorf("%w: token %s was given back", ErrNoGuard, l.Token)
	case !listed && over != nil:
		return 0, fmt.Errorf("%w: token %s is over: %v", ErrNoGuard, l.Token, over)
	case !listed:
		return 0, fmt.Errorf("%w: token %s is over: the last renewal does not list it", ErrNoGuard, l.Token)
	case left < 0:
		return 0, fmt.Errorf("%w: token %s: its time was over %v ago", ErrNoGuard, l.Token, -left)
	case left < length:
		return 0, fmt.Errorf("%w: token %s: %v are certain, and %v are needed", ErrNoGuard, l.Token, left, length)
	}
	// A token is a text in JSON, because a number loses digits there. It fits a signed 64-bit column.
	return strconv.ParseInt(lease.FenceToken, 10, 64)
}

// IsWantedBack says whether somebody asked for it with `leasehold release`.
func (l *Lease) IsWantedBack() bool {
	l.session.mutex.Lock()
	defer l.session.mutex.Unlock()
	return l.session.held[l.Token].ReleaseRequested
}

// Release gives it back. It is not ours any more from the moment this is sent, whatever comes back: without an answer it ends
// with its session, and asking again would be safe too.
func (l *Lease) Release() {
	l.givenBack = true
	asked := fields{"resource": l.Resource, "token": l.Token}
	_ = l.session.call("leases/release", 5*time.Second, asked, nil)
}

// call posts one request. Its time limit covers everything from connecting to the last byte of the answer.
func (s *Session) call(path string, limit time.Duration, asked fields, answer any) error {
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	request, err := http.NewRequest("POST", s.url+"/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		request.Header.Set("Leasehold-Session", s.key)
	}
	client := http.Client{Timeout: limit}
	response, err := client.Do(request)
	if err != nil {
		return &NoAnswer{err}
	}
	defer response.Body.Close()
	var said struct{ Code, Kind, Detail string }
	decoder := json.NewDecoder(response.Body)
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusAccepted {
		if answer == nil {
			answer = &struct{}{}
		}
		if err := decoder.Decode(answer); err != nil {
			return &NoAnswer{err}
		}
		return nil
	}
	if err := decoder.Decode(&said); err != nil || said.Code == "" {
		return &NoAnswer{fmt.Errorf("%s: not the service's answer: status %s", path, response.Status)}
	}
	busy := response.StatusCode == 408 || response.StatusCode == 429 || response.StatusCode >= 500
	if said.Kind != "refused" && busy {
		return &NoAnswer{fmt.Errorf("%s: %s", path, said.Detail)}
	}
	return &Refused{said.Code, said.Detail}
}
