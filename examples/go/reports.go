package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrFenced means that the receiver has seen a greater token.
var ErrFenced = errors.New("fenced")

// Reports is the receiver: a file that remembers the highest token and takes no smaller one. All processes of one machine may
// write to it. It stands for your database, where the same is one conditional statement in the transaction of the write.
type Reports struct{ Path string }

type contents struct {
	Token int64  `json:"token"`
	Pages []page `json:"pages"`
}

type page struct {
	Token int64  `json:"token"`
	Text  string `json:"text"`
}

// Seal comes before the first write: from now on older tokens are refused, even if we never write.
func (r Reports) Seal(token int64) error { return r.change(token, func(*contents) {}) }

// Write adds a page.
func (r Reports) Write(token int64, text string) error {
	return r.change(token, func(all *contents) { all.Pages = append(all.Pages, page{token, text}) })
}

// change compares and writes in one step: under a lock, and with one rename.
func (r Reports) change(token int64, change func(*contents)) error {
	lock, err := os.OpenFile(r.Path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which also unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	var all contents
	switch text, err := os.ReadFile(r.Path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
	}
	if token < all.Token {
		return fmt.Errorf("%w: token %d is below %d", ErrFenced, token, all.Token)
	}
	all.Token = token
	change(&all)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.Path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(r.Path+".new", r.Path)
}
