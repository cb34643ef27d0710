/*
 * Makes the clocks of one process wrong, for tests.
 *
 * SHIM_RATE   how fast CLOCK_BOOTTIME and CLOCK_MONOTONIC_RAW run, for example 1.05
 * SHIM_WALL   a file with one 64-bit number: nanoseconds added to the time of day. It may change at any time: a step.
 * SHIM_WALL_RATE  how fast the time of day runs, for example 2
 *
 * The program reads its two clocks past the C library, through the vDSO, which it finds in its auxiliary vector. So the vDSO is
 * left out wherever it may ask for that vector, and it falls back to system calls. A filter turns each of them that asks for one of
 * the two clocks into a signal, whose handler answers it. A call with a third argument that nobody else gives passes the filter: that
 * is how the handler asks the kernel.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PASS 0x1ea5e401d
#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif

static double rate = 1.0, wall_rate = 1.0;
static const volatile int64_t *wall;
static int64_t began[16];
static unsigned long vector[128];
static size_t vector_size;

static int64_t real_nanos(int clock)
{
	struct timespec t;
	syscall(SYS_clock_gettime, clock, &t, PASS);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int is_scaled(int clock)
{
	return clock == CLOCK_BOOTTIME || clock == CLOCK_MONOTONIC_RAW;
}

static void answer(int clock, struct timespec *to)
{
	int64_t nanos = real_nanos(clock);
	if (is_scaled(clock))
		nanos = began[clock] + (int64_t)((double)(nanos - began[clock]) * rate);
	else if (clock == CLOCK_REALTIME)
		nanos = began[clock] + (int64_t)((double)(nanos - began[clock]) * wall_rate) + (wall ? *wall : 0);
	to->tv_sec = nanos / 1000000000;
	to->tv_nsec = nanos % 1000000000;
}

unsigned long getauxval(unsigned long type)
{
	static unsigned long (*next)(unsigned long);
	if (type == AT_SYSINFO_EHDR)
		return 0;
	if (!next)
		next = (unsigned long (*)(unsigned long))dlsym(RTLD_NEXT, "getauxval");
	return next(type);
}

int clock_gettime(clockid_t clock, struct timespec *to)
{
	if (is_scaled(clock) || clock == CLOCK_REALTIME) {
		answer(clock, to);
		return 0;
	}
	return (int)syscall(SYS_clock_gettime, clock, to, PASS);
}

static void trapped(int signal, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	unsigned long first, second, third, result = 0;
	(void)signal;
#if defined(__x86_64__)
	first = (unsigned long)at->uc_mcontext.gregs[REG_RDI];
	second = (unsigned long)at->uc_mcontext.gregs[REG_RSI];
	third = (unsigned long)at->uc_mcontext.gregs[REG_RDX];
#elif defined(__aarch64__)
	first = at->uc_mcontext.regs[0];
	second = at->uc_mcontext.regs[1];
	third = at->uc_mcontext.regs[2];
#else
#error "only for x86-64 and 64-bit ARM"
#endif
	if (info->si_syscall == SYS_prctl) {
		memcpy((void *)second, vector, third < vector_size ? third : vector_size);
		result = vector_size;
	} else {
		answer((int)first, (struct timespec *)second);
	}
#if defined(__x86_64__)
	at->uc_mcontext.gregs[REG_RAX] = (greg_t)result;
#else
	at->uc_mcontext.regs[0] = result;
#endif
}

static void must(int good, const char *what)
{
	if (!good) {
		(void)!write(2, what, __builtin_strlen(what));
		_exit(99);
	}
}

static void hide_vdso(void)
{
	int file = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
	must(file >= 0, "shim: no auxiliary vector\n");
	ssize_t size = read(file, vector, sizeof vector);
	close(file);
	must(size > 0 && size < (ssize_t)sizeof vector, "shim: a strange auxiliary vector\n");
	vector_size = (size_t)size;
	for (size_t i = 0; i < vector_size / sizeof *vector; i += 2)
		if (vector[i] == AT_SYSINFO_EHDR)
			vector[i] = AT_IGNORE;
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("SHIM_RATE");
	if (text)
		rate = atof(text);
	text = getenv("SHIM_WALL_RATE");
	if (text)
		wall_rate = atof(text);
	text = getenv("SHIM_WALL");
	if (text) {
		int file = open(text, O_RDONLY | O_CLOEXEC);
		must(file >= 0, "shim: SHIM_WALL cannot be opened\n");
		wall = mmap(NULL, sizeof *wall, PROT_READ, MAP_SHARED, file, 0);
		must(wall != MAP_FAILED, "shim: SHIM_WALL cannot be mapped\n");
		close(file);
	}
	began[CLOCK_REALTIME] = real_nanos(CLOCK_REALTIME);
	began[CLOCK_BOOTTIME] = real_nanos(CLOCK_BOOTTIME);
	began[CLOCK_MONOTONIC_RAW] = real_nanos(CLOCK_MONOTONIC_RAW);
	if (rate == 1.0)
		return;
	hide_vdso();
	struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
	must(sigaction(SIGSYS, &action, NULL) == 0, "shim: no handler\n");
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 8),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)PASS, 6, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_BOOTTIME, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_MONOTONIC_RAW, 2, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_GET_AUXV, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "shim: no_new_privs\n");
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "shim: no filter\n");
}
