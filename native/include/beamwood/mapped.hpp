// A mapped file in, its bytes out, and zeros in their place when the file is taken away under them.
//
// A page of a mapping that lies beyond the end of its file (somebody cut it, or copied another one over it), or that the
// disk cannot read, ends a process by SIGBUS. Here a handler puts zeros in the place of the whole mapping, marks it as
// broken and lets the read go on. The law: a call that read from a broken mapping ends with an error, and so does every
// later one; calls on other models notice nothing. Zeros are a damaged model like any other, whose numbers are checked
// when they are followed; what came of them is thrown away. The hot path pays one look at a coarse clock per call.
//
// The last page of a file that was cut inside it reads as zeros without a signal. So a call that ends more than 100 ms
// after the last look asks the system for the file's length. What is written into a file in place, with its length kept,
// nobody here can see: replace a model's file by renaming another into its place.
//
// The handler takes only faults inside our mappings; all others go to whoever handled SIGBUS before.
#pragma once
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace beamwood {

#ifdef CLOCK_MONOTONIC_COARSE
inline constexpr auto kCoarseClock = CLOCK_MONOTONIC_COARSE;
#else // macOS
inline constexpr auto kCoarseClock = CLOCK_MONOTONIC;
#endif

// One mapping as the handler sees it. Slots are never freed, only used again: the handler may look at any moment.
struct MappedRange {
  std::atomic<std::uintptr_t> begin{0}, end{0}; // end 0: nobody has this slot
  std::atomic<bool> broken{false};
  std::atomic<std::int64_t> next_look{0}; // in nanoseconds of the coarse clock
  int descriptor = -1;
  MappedRange* next = nullptr;

  // Whether what was just read was there.
  bool intact() noexcept {
    constexpr std::int64_t kPause = 100'000'000;
    timespec now{};
    clock_gettime(kCoarseClock, &now);
    const std::int64_t moment = now.tv_sec * 1'000'000'000 + now.tv_nsec;
    if (moment >= next_look.load(std::memory_order_relaxed)) {
      next_look.store(moment + kPause, std::memory_order_relaxed);
      struct stat about{};
      const std::uintptr_t size = end.load() - begin.load();
      if (fstat(descriptor, &about) != 0 || static_cast<std::uintptr_t>(about.st_size) < size) broken.store(true);
    }
    return !broken.load(std::memory_order_acquire);
  }
};

namespace detail {

inline std::atomic<MappedRange*> mapped_ranges{nullptr};
inline std::mutex mapped_lock; // of those who add and remove; the handler takes no lock
inline struct sigaction before_us;

inline MappedRange* range_at(std::uintptr_t address) noexcept {
  for (MappedRange* range = mapped_ranges.load(std::memory_order_acquire); range; range = range->next)
    if (address >= range->begin.load(std::memory_order_acquire) && address < range->end.load(std::memory_order_acquire))
      return range;
  return nullptr;
}

// Runs on the thread that read. Only atomics and system calls.
inline void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int kept = errno;
  MappedRange* const range = info->si_code > 0 ? range_at(reinterpret_cast<std::uintptr_t>(info->si_addr)) : nullptr;
  if (range) {
    range->broken.store(true, std::memory_order_seq_cst);
    const std::uintptr_t begin = range->begin.load(std::memory_order_acquire);
    void* const at = reinterpret_cast<void*>(begin); // NOLINT(performance-no-int-to-ptr)
    const bool done = mmap(at, range->end.load(std::memory_order_acquire) - begin, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    errno = kept;
    if (done) return;
  }
  if (before_us.sa_flags & SA_SIGINFO) return before_us.sa_sigaction(signal, info, context);
  if (before_us.sa_handler != SIG_DFL && before_us.sa_handler != SIG_IGN) return before_us.sa_handler(signal);
  sigaction(SIGBUS, &before_us, nullptr); // the read is tried again and ends the process, as it would have without us
}

// Ours is the handler from now on, unless it is already. Whoever sets another one later takes the guard away.
inline void catch_bus_errors() {
  struct sigaction now{};
  sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error) return;
  before_us = now;
  struct sigaction ours{};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, nullptr);
}

} // namespace detail

class MappedFile {
public:
  // Maps the whole of an open file, which is not empty. Throws std::system_error.
  explicit MappedFile(int descriptor) {
    struct stat about{};
    if (fstat(descriptor, &about) != 0) fail();
    size_ = static_cast<std::size_t>(about.st_size);
    if (size_ == 0) errno = EINVAL, fail();
    void* const at = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED) fail();
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) {
      const int why = errno;
      munmap(at, size_);
      errno = why;
      fail();
    }
    data_ = static_cast<const std::uint8_t*>(at);
    range_ = enter(reinterpret_cast<std::uintptr_t>(at), size_, copy);
  }
  ~MappedFile() {
    const int copy = range_->descriptor;
    range_->end.store(0, std::memory_order_release);
    close(copy);
    munmap(const_cast<std::uint8_t*>(data_), size_); // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::uint8_t* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool broken() const noexcept { return !range_->intact(); }
  void set_broken() noexcept { range_->broken.store(true); }

private:
  [[noreturn]] static void fail() { throw std::system_error(errno, std::generic_category()); }

  static MappedRange* enter(std::uintptr_t begin, std::size_t size, int descriptor) {
    const std::lock_guard guard(detail::mapped_lock);
    detail::catch_bus_errors();
    MappedRange* free = detail::mapped_ranges.load();
    while (free && free->end.load() != 0) free = free->next;
    if (!free) {
      free = new MappedRange;
      free->next = detail::mapped_ranges.load();
      detail::mapped_ranges.store(free, std::memory_order_release);
    }
    free->broken.store(false);
    free->next_look.store(0);
    free->descriptor = descriptor;
    free->begin.store(begin);
    free->end.store(begin + size, std::memory_order_release);
    return free;
  }

  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  MappedRange* range_ = nullptr;
};

// The mapping that memory lies in, or null.
inline MappedRange* range_of(const void* address) noexcept {
  return detail::range_at(reinterpret_cast<std::uintptr_t>(address));
}

// Memory that was read and is not needed for now: if it lies in a mapping, the system may have its pages back. Whoever
// reads it again gets the file's bytes again, or the zeros of a mapping that is broken.
inline void let_go(const void* address, std::size_t size) noexcept {
  const MappedRange* const range = range_of(address);
  if (!range) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(address) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + size;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED); // NOLINT(performance-no-int-to-ptr)
}

} // namespace beamwood
