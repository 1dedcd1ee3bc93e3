/* What a process believes of the clock and of its disk, told by somebody else through a page of memory.
 *
 * Preloaded into a node (LD_PRELOAD); the page is the file that PENSTOCK_SHIM names, and `shim.py` writes it while the
 * node runs. Calls that go to no file under the prefix, and all calls while nothing is wrong, cost one comparison.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OPENS = 1, READS = 2, WRITES = 4, SYNCS = 8 };
enum { PREFIX_BYTES = 1024 };

/* As in shim.py, field by field. */
struct page {
    volatile int64_t clock_step_ns;
    volatile uint32_t calls;
    volatile int32_t error;
    volatile uint32_t hanging;
    volatile uint32_t prefix_length;
    char prefix[PREFIX_BYTES];
};

static struct page nothing_wrong;
static struct page *page = &nothing_wrong;

__attribute__((constructor)) static void look_up(void)
{
    const char *path = getenv("PENSTOCK_SHIM");
    if (!path)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    void *found = mmap(NULL, sizeof(struct page), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (found != MAP_FAILED)
        page = found;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* -- the clock on the wall */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    REAL(clock_gettime);
    int result = real(clock, now);
    int64_t step = page->clock_step_ns;
    if (result == 0 && step && clock == CLOCK_REALTIME) {
        int64_t sum = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + step;
        now->tv_sec = sum / INT64_C(1000000000);
        now->tv_nsec = sum % INT64_C(1000000000);
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found))
        return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where)
{
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (where)
        *where = found.tv_sec;
    return found.tv_sec;
}

/* -- the disk */

static int concerns(const char *path)
{
    uint32_t length = page->prefix_length;
    return length && length < PREFIX_BYTES && strncmp(path, page->prefix, length) == 0;
}

/* Whether a call fails, which it is told in errno; one that hangs goes on when it is let. */
static int fails(uint32_t kind, const char *path, int fd)
{
    if (!(page->calls & kind))
        return 0;
    char link[64], target[4096];
    if (!path) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        if (length < 0)
            return 0;
        target[length] = 0;
        path = target;
    }
    if (!concerns(path))
        return 0;
    while ((page->calls & kind) && page->hanging)
        usleep(5000);
    if (!(page->calls & kind) || !page->error)
        return 0;
    errno = page->error;
    return 1;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, mode_t); \
        va_end(more); \
        REAL(name); \
        return fails(OPENS, path, -1) ? -1 : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OF_DESCRIPTOR(type, name, kind, declared, passed) \
    type name declared \
    { \
        REAL(name); \
        return fails(kind, NULL, fd) ? -1 : real passed; \
    }
OF_DESCRIPTOR(ssize_t, read, READS, (int fd, void *to, size_t size), (fd, to, size))
OF_DESCRIPTOR(ssize_t, pread, READS, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
OF_DESCRIPTOR(ssize_t, pread64, READS, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
OF_DESCRIPTOR(ssize_t, write, WRITES, (int fd, const void *from, size_t size), (fd, from, size))
OF_DESCRIPTOR(ssize_t, pwrite, WRITES, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
OF_DESCRIPTOR(ssize_t, pwrite64, WRITES, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at))
OF_DESCRIPTOR(ssize_t, pwritev, WRITES, (int fd, const struct iovec *from, int count, off_t at), (fd, from, count, at))
OF_DESCRIPTOR(ssize_t, pwritev64, WRITES, (int fd, const struct iovec *from, int count, off64_t at), (fd, from, count, at))
OF_DESCRIPTOR(int, ftruncate, WRITES, (int fd, off_t size), (fd, size))
OF_DESCRIPTOR(int, ftruncate64, WRITES, (int fd, off64_t size), (fd, size))
OF_DESCRIPTOR(int, fsync, SYNCS, (int fd), (fd))
OF_DESCRIPTOR(int, fdatasync, SYNCS, (int fd), (fd))
OF_DESCRIPTOR(int, syncfs, SYNCS, (int fd), (fd))
