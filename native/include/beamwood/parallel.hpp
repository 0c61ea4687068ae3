// Work in: a number of tasks and a function of (task, worker). Out: every task run once, by at most `threads` workers.
//
// The law: results never depend on which worker runs a task, so a task writes only what belongs to it.
//
// The pool is one per process, grows to what was asked for and is replaced after a fork (the child of a fork has
// no threads but its own). The calling thread works too and never waits for a worker that has not started: calls
// from many Python threads at once, or from inside a busy pool, cannot dead-lock. Exceptions of a task end the call
// and come out of it. Each worker computes in IEEE mode: round to nearest, no flush to zero.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace beamwood {

// Sets the IEEE floating-point mode and puts the caller's back when it goes: the sum law holds whatever the host
// process has done to its control word.
class FloatMode {
public:
#if defined(__x86_64__)
  FloatMode() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80u); }
  ~FloatMode() { _mm_setcsr(saved_); }

private:
  unsigned saved_;
#elif defined(__aarch64__)
  FloatMode() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~FloatMode() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

private:
  std::uint64_t saved_;
#else
  FloatMode() noexcept {}
#endif
public:
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;
};

// What two workers write to lies this far apart, or each would wait for the other's cache line (processors fetch pairs).
inline constexpr std::size_t kApart = 128;

// Thrown out of a call whose caller asked to stop (Ctrl-C).
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Thrown out of a call whose answer nobody waits for any more: its time is up, or whoever asked has left.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

// A flag that one thread sets to end the work of another, and that long work looks at between its steps.
using StopFlag = std::atomic<bool>;
inline void check_stop(const StopFlag* flag) {
  if (flag && flag->load(std::memory_order_relaxed)) throw Stopped{};
}

// How a call may use the machine: the number of workers, and a function that only the calling thread calls, after each
// of its tasks and while it waits: true when somebody asked to stop.
struct Workers {
  unsigned threads = 1;
  std::function<bool()> interrupted = [] { return false; };
};

namespace detail {

struct Job {
  std::function<void(unsigned)> work;
  std::mutex lock;
  std::condition_variable idle;
  unsigned next_worker = 1;
  unsigned running = 0;
  bool closed = false;

  void join_as_worker() {
    unsigned worker;
    {
      std::lock_guard guard(lock);
      if (closed) return;
      worker = next_worker++;
      ++running;
    }
    work(worker);
    std::lock_guard guard(lock);
    if (--running == 0) idle.notify_all();
  }
};

class Pool {
public:
  static Pool& instance() {
    std::lock_guard guard(birth());
    if (!current()) {
      static const int registered = pthread_atfork([] { birth().lock(); }, [] { birth().unlock(); },
                                                   [] {
                                                     current() = nullptr; // its threads stayed in the parent
                                                     birth().unlock();
                                                   });
      (void)registered;
      current() = new Pool; // lives as long as the process: workers may run while statics are torn down
    }
    return *current();
  }

  void offer(const std::shared_ptr<Job>& job, unsigned helpers) {
    std::lock_guard guard(lock_);
    try {
      while (workers_.size() < helpers) workers_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
    } catch (const std::exception&) { // no more threads, or no memory for them: those that are there do the work
    }
    if (workers_.empty()) return;
    try { // whoever has taken the job works for a caller that must not be gone: fewer helpers, but no exception
      for (unsigned i = 0; i < helpers; ++i) queue_.push_back(job);
    } catch (const std::bad_alloc&) {
    }
    wake_.notify_all();
  }

private:
  static std::mutex& birth() {
    static std::mutex* m = new std::mutex;
    return *m;
  }
  static Pool*& current() {
    static Pool* pool = nullptr;
    return pool;
  }

  void serve(const std::stop_token& stop) {
    const FloatMode mode;
    while (!stop.stop_requested()) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock guard(lock_);
        wake_.wait(guard, [this] { return !queue_.empty(); });
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      job->join_as_worker();
    }
  }

  std::mutex lock_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> queue_;
  std::vector<std::jthread> workers_;
};

// A function of (task, worker) of any type: its address, and what calls it. What hands out tasks is compiled once for all
// callers, and a caller's function once, not wherever a task may begin.
struct AnyTask {
  const void* function;
  void (*run)(const void* function, std::size_t task, unsigned worker);

  void operator()(std::size_t task, unsigned worker) const { run(function, task, worker); }
};

inline void run_all(const Workers& workers, std::size_t tasks, AnyTask fn) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto fail = [&](std::exception_ptr what) { // the first failure is the one that comes out
    std::lock_guard guard(failure_lock);
    if (!failure) failure = std::move(what);
    stop = true;
  };
  const auto drain = [&](unsigned worker, auto&& between_tasks) {
    try {
      for (std::size_t task; !stop.load(std::memory_order_relaxed) && (task = next.fetch_add(1)) < tasks;) {
        fn(task, worker);
        between_tasks();
      }
    } catch (...) {
      fail(std::current_exception());
    }
  };
  const auto ask = [&] {
    if (workers.interrupted()) throw Interrupted{};
  };
  const unsigned helpers = static_cast<unsigned>(std::min<std::size_t>(workers.threads, tasks)) - (tasks ? 1u : 0u);
  if (tasks <= 1 || helpers == 0) {
    drain(0, ask);
  } else {
    const auto job = std::make_shared<Job>();
    job->work = [&](unsigned worker) { drain(worker, [] {}); };
    Pool::instance().offer(job, helpers);
    drain(0, ask);
    std::unique_lock guard(job->lock);
    job->closed = true;
    while (!job->idle.wait_for(guard, std::chrono::milliseconds(50), [&] { return job->running == 0; })) {
      if (stop) continue;
      try { // a caller that waits for the last workers can still be stopped, and never leaves before they are done
        ask();
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

} // namespace detail

// Runs fn(task, worker) for every task in [0, tasks); worker is in [0, workers.threads) and no two tasks run at the
// same time under one worker number, so scratch memory can be kept per worker. Tasks are pieces of work, not rows: one
// costs a call through a pointer.
template <class F> void parallel_for(const Workers& workers, std::size_t tasks, const F& fn) {
  const auto run = [](const void* function, std::size_t task, unsigned worker) {
    (*static_cast<const F*>(function))(task, worker);
  };
  detail::run_all(workers, tasks, {std::addressof(fn), run});
}

} // namespace beamwood
