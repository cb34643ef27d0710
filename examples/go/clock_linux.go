package main

import (
	"syscall"
	"time"
	"unsafe"
)

// CLOCK_BOOTTIME: nobody sets it, and it counts while the machine sleeps. The clock inside of time.Now stands still in sleep, on Linux.
const clockBoottime = 7

// now is a point in time that only other results of now can be compared with.
func now() time.Duration {
	var read syscall.Timespec
	_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&read)), 0)
	if failed != 0 {
		panic("no CLOCK_BOOTTIME: " + failed.Error())
	}
	return time.Duration(read.Nano())
}
