/* Kills the process at its Nth system call that changes files, halfway through a write, or lets every call that
   needs space fail from the Nth on as on a full disk, or from the first to the Nth, or every change from the Nth on
   as on a read-only one. Also moves the system's clock for the process. Loaded with LD_PRELOAD; calls are counted
   after `failing_calls_set`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { OFF, KILL, FULL_FROM, FULL_UNTIL, READ_ONLY_FROM };
enum { SYNC, CHANGE, GROWTH };
static int mode = OFF;
static long at = 0, counted = 0, shift_s = 0;

void failing_calls_set(int new_mode, long new_at) { mode = new_mode; at = new_at; counted = 0; }
long failing_calls_count(void) { return counted; }
void failing_calls_shift(long seconds) { shift_s = seconds; }

static int is_next(void) { return __sync_fetch_and_add(&counted, 1) == at; }
static void die(void) { raise(SIGKILL); for (;;) pause(); }

/* Counts a call; returns whether it fails. */
static int fails(int kind) {
    int next = is_next();
    if (mode == KILL && next) die();
    int full = (mode == FULL_FROM && counted > at) || (mode == FULL_UNTIL && counted <= at);
    if (full && kind == GROWTH) { errno = ENOSPC; return 1; }
    if (mode == READ_ONLY_FROM && counted > at && kind != SYNC) { errno = EROFS; return 1; }
    return 0;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)
#define FAIL(kind) if (fails(kind)) return -1
/* A write that is killed has written its first half. */
#define WRITE(half, whole) \
    do { int dies = mode == KILL && counted == at; if (dies) { half; die(); } FAIL(GROWTH); return whole; } while (0)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    struct stat found;
    if (fd <= 2 || fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) return real(fd, data, size);
    WRITE(real(fd, data, size / 2), real(fd, data, size));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    WRITE(real(fd, data, size / 2, place), real(fd, data, size, place));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    WRITE(real(fd, data, size / 2, place), real(fd, data, size, place));
}
static ssize_t half_of(int in, size_t size) {
    struct stat found;
    return fstat(in, &found) == 0 && (size_t)found.st_size < size ? found.st_size / 2 : (ssize_t)(size / 2);
}
ssize_t sendfile(int out, int in, off_t *place, size_t size) {
    REAL(ssize_t, "sendfile", int, int, off_t *, size_t);
    WRITE(real(out, in, place, half_of(in, size)), real(out, in, place, size));
}
ssize_t sendfile64(int out, int in, off64_t *place, size_t size) {
    REAL(ssize_t, "sendfile64", int, int, off64_t *, size_t);
    WRITE(real(out, in, place, half_of(in, size)), real(out, in, place, size));
}
int ftruncate(int fd, off_t size) { REAL(int, "ftruncate", int, off_t); FAIL(size > 0 ? GROWTH : CHANGE); return real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(int, "ftruncate64", int, off64_t); FAIL(size > 0 ? GROWTH : CHANGE); return real(fd, size); }
int fsync(int fd) { REAL(int, "fsync", int); FAIL(SYNC); return real(fd); }
int fdatasync(int fd) { REAL(int, "fdatasync", int); FAIL(SYNC); return real(fd); }
int rename(const char *a, const char *b) { REAL(int, "rename", const char *, const char *); FAIL(CHANGE); return real(a, b); }
int renameat(int c, const char *a, int d, const char *b) {
    REAL(int, "renameat", int, const char *, int, const char *);
    FAIL(CHANGE);
    return real(c, a, d, b);
}
int unlink(const char *path) { REAL(int, "unlink", const char *); FAIL(CHANGE); return real(path); }
int unlinkat(int fd, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    FAIL(CHANGE);
    return real(fd, path, flags);
}
int mkdir(const char *path, mode_t how) { REAL(int, "mkdir", const char *, mode_t); FAIL(GROWTH); return real(path, how); }
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        mode_t how = 0; \
        if (flags & O_CREAT) { \
            struct stat found; \
            va_list list; va_start(list, flags); how = va_arg(list, mode_t); va_end(list); \
            if (stat(path, &found) != 0) FAIL(GROWTH); \
        } \
        if (mode == READ_ONLY_FROM && counted > at && (flags & O_ACCMODE) != O_RDONLY) { errno = EROFS; return -1; } \
        return real(path, flags, how); \
    }
OPEN(open)
OPEN(open64)
int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int result = real(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += shift_s;
    return result;
}
