// faults.c — an injected library (LD_PRELOAD): a number in, the call of that number fails, is cut short or kills out.
//
// bw_arm(n, how, kind) counts down calls of one kind of the whole process: files (what writes, syncs, names) or memory.
// how: an errno; or KILL_BEFORE, KILL_AFTER, SHORT. Each call of files is also written to the descriptor bw_log names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KILL_BEFORE = -1, KILL_AFTER = -2, SHORT = -3 };
enum { NOTHING, FILES, MEMORY };

static volatile int kind_now = NOTHING, how_now, log_now = -1;
static volatile long left;
static volatile int fired;

void bw_arm(long n, int how, int kind) { left = n, how_now = how, fired = 0, kind_now = kind; }
int bw_disarm(void) { return kind_now = NOTHING, fired; }
void bw_log(int descriptor) { log_now = descriptor; }

static int hit(int kind) {
  if (kind_now != kind || fired || __atomic_fetch_sub(&left, 1, __ATOMIC_SEQ_CST) != 0) return 0;
  fired = 1;
  if (how_now == KILL_BEFORE) kill(getpid(), SIGKILL);
  return 1;
}
static void after(int now) {
  if (now && how_now == KILL_AFTER) kill(getpid(), SIGKILL);
}
static int fails(int now) {
  if (!now || how_now <= 0) return 0;
  errno = how_now;
  return 1;
}
static void told(const char* what, long a, long b, const char* name) {
  if (log_now < 0 || kind_now != FILES) return;
  char line[700];
  const int size = snprintf(line, sizeof line, "%s %ld %ld %s\n", what, a, b, name);
  syscall(SYS_write, log_now, line, (size_t)size);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define PLAIN(name, parameters, given, a, text)                                                                        \
  int name parameters {                                                                                                \
    const int now = hit(FILES);                                                                                        \
    if (fails(now)) return -1;                                                                                         \
    const int result = REAL(name) given;                                                                               \
    told(#name, a, 0, text);                                                                                           \
    after(now);                                                                                                        \
    return result;                                                                                                     \
  }
PLAIN(fsync, (int fd), (fd), fd, "")
PLAIN(fdatasync, (int fd), (fd), fd, "")
PLAIN(fchmod, (int fd, mode_t mode), (fd, mode), fd, "")
PLAIN(ftruncate64, (int fd, off64_t size), (fd, size), fd, "")
PLAIN(rename, (const char* from, const char* to), (from, to), 0, to)

ssize_t write(int fd, const void* data, size_t size) {
  struct stat about;
  if (kind_now != FILES || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return REAL(write)(fd, data, size);
  const int now = hit(FILES);
  if (fails(now)) return -1;
  const long at = lseek(fd, 0, SEEK_CUR);
  const ssize_t result = REAL(write)(fd, data, now && how_now == SHORT && size > 1 ? size / 2 : size);
  told("write", at, result, "");
  after(now);
  return result;
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  const int now = (flags & O_CREAT) ? hit(FILES) : 0;
  if (fails(now)) return -1;
  const int result = REAL(open64)(path, flags, mode);
  if (flags & (O_CREAT | O_DIRECTORY)) told("open", result, 0, path);
  after(now);
  return result;
}

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t), *__libc_memalign(size_t, size_t);
// Only what our module or the C++ library asks for: how numpy and Python bear a refusal is theirs to promise.
static int ours(const void* caller) {
  Dl_info about;
  const int kept = kind_now;
  kind_now = NOTHING; // dladdr may ask for memory itself
  const int found = dladdr(caller, &about) && about.dli_fname &&
                    (strstr(about.dli_fname, "libstdc++") || strstr(about.dli_fname, "beamwood/_core"));
  kind_now = kept;
  return found;
}
#define REFUSED()                                                                                                      \
  if (kind_now == MEMORY && ours(__builtin_return_address(0)) && hit(MEMORY)) return errno = ENOMEM, (void*)0
void* malloc(size_t size) { REFUSED(); return __libc_malloc(size); }
void* calloc(size_t n, size_t size) { REFUSED(); return __libc_calloc(n, size); }
void* realloc(void* old, size_t size) { REFUSED(); return __libc_realloc(old, size); }
void* aligned_alloc(size_t a, size_t size) { REFUSED(); return __libc_memalign(a, size); }
