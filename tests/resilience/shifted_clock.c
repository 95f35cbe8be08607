/* Shifts the wall clock of a process by as many milliseconds as a file says. The file is mapped, so that a test can
 * step the clock while the server runs. Nothing here allocates: Redis reads the clock before its allocator is ready. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *shift_ms;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("SHIFTED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, sizeof(*shift_ms), PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) shift_ms = found;
    close(file);
}

static void shift(struct timespec *now) {
    int64_t ms = shift_ms ? *shift_ms : 0;
    now->tv_sec += ms / 1000;
    now->tv_nsec += ms % 1000 * 1000000;
    if (now->tv_nsec >= 1000000000) now->tv_sec++, now->tv_nsec -= 1000000000;
    if (now->tv_nsec < 0) now->tv_sec--, now->tv_nsec += 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) shift(now);
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found)) return (time_t)-1;
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}
